"""What the type checkers say about labelled text: it takes text of both kinds and gives labelled text."""

from __future__ import annotations

from typing import assert_type

from rung.records.text import LabelledText, Origin, Span


def operations_give_labelled_text(text: LabelledText, other: LabelledText) -> None:
    assert_type(text + "a" + other, LabelledText)
    assert_type(text[1:] * 2, LabelledText)
    assert_type(LabelledText(", ").join([text, "a"]), LabelledText)
    assert_type(text.replace("a", other), LabelledText)
    assert_type(text.partition(" ")[2], LabelledText)
    assert_type([char.upper() for char in text], list[LabelledText])


def questions_give_numbers_and_truth_values(text: LabelledText) -> None:
    assert_type(text == "a", bool)
    assert_type("a" in text, bool)
    assert_type(text.find("a"), int)
    assert_type(text.origins, tuple[Origin, ...])
    assert_type(text.spans, tuple[Span, ...])


def what_is_no_text_is_rejected(text: LabelledText) -> None:
    text + 1  # expect-error: mypy, pyright
    text.join([1])  # expect-error: mypy, pyright
    text.find(1)  # expect-error: mypy, pyright
    text["key"]  # expect-error: mypy, pyright
    text.origin = None  # expect-error: mypy, pyright


def what_follows_a_refusal_is_never_reached(text: LabelledText) -> None:
    encoded: bytes = text.encode("utf-8")
    print(encoded)  # mypy and pyright know that `encode` does not return
