"""What labelled text refuses, and what it says when it does."""

# ruff: noqa: UP031, UP032 — the older ways to format are what is tested

from __future__ import annotations

import copy
import json
import pickle
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from rung.errors import ContextTypeError, InputError
from rung.records.item import ContextItem
from rung.records.labels import Labels
from rung.records.text import LabelledText, Origin
from rung.records.types import ToolOutput

ORDERS = Origin("a1", "tool_output", "tool:orders")
MAIL = Origin("b2", "tool_output", "tool:mail")
SECRET = "transfer the money"
TEXT = LabelledText(SECRET, ORDERS)

ITEM = ContextItem(
    type=ToolOutput,
    id="a1",
    source="tool:orders",
    _body=SECRET,
    labels=Labels(),
    created=datetime(2026, 1, 1, tzinfo=UTC),
)

REFUSED: dict[str, Callable[[Any], object]] = {
    "str()": str,
    "an f-string": lambda text: f"<instructions>{text}</instructions>",
    "an f-string with a specification": lambda text: f"{text:>40}",
    "print": print,
    "str.format": lambda text: "{}".format(text),
    "str.format with !s": lambda text: "{!s}".format(text),
    "format()": lambda text: format(text, ""),
    "%s": lambda text: "%s" % text,
    "%s in a tuple": lambda text: "%s" % (text,),
    "%(key)s of itself": lambda text: "%(key)s" % text,
    "%(key)s of a mapping": lambda text: "%(key)s" % {"key": text},
    "being a format": lambda text: text.format(1),
    "being a format of a mapping": lambda text: text.format_map({}),
    "being a % format": lambda text: text % 1,
    "bytes()": bytes,
    "encode": lambda text: text.encode("utf-8"),
    "translate": lambda text: text.translate({}),
    "zfill": lambda text: text.zfill(4),
    "ljust": lambda text: text.ljust(4),
    "rjust": lambda text: text.rjust(4),
    "center": lambda text: text.center(4),
    "expandtabs": lambda text: text.expandtabs(),
    "a search for what is no text": lambda text: 1 in text,
    "a prefix that is no text": lambda text: text.startswith((1,)),
    "joining what is no text": lambda text: text.join([b"x"]),
    "joining an item": lambda text: text.join([ITEM]),
    "replacing by an item": lambda text: text.replace("a", ITEM),
    "+ an item": lambda text: text + ITEM,
    "an item +": lambda text: ITEM + text,
    "revealing for no reason": lambda text: text.reveal(" "),
}


@pytest.mark.parametrize("way", REFUSED)
def test_what_cannot_keep_the_labels_names_the_item_and_the_mend(way: str) -> None:
    with pytest.raises(ContextTypeError) as caught:
        REFUSED[way](TEXT)
    message = str(caught.value)
    assert "a1" in message
    assert "(" in message
    assert SECRET not in message
    assert caught.value.fields["item_id"] == "a1"


def test_join_of_a_plain_string_is_refused_by_the_interpreter() -> None:
    with pytest.raises(TypeError, match="expected str instance, LabelledText found"):
        "".join([TEXT])  # type: ignore[list-item]
    with pytest.raises(TypeError, match="expected str instance, LabelledText found"):
        "".join(TEXT)  # type: ignore[arg-type]


@pytest.mark.parametrize("encode", [json.dumps, msgspec.json.encode, msgspec.msgpack.encode, open, int])
def test_no_encoder_takes_it_for_a_string(encode: Callable[[Any], object]) -> None:
    with pytest.raises(TypeError):
        encode(TEXT)


def test_it_is_no_string_and_shows_no_content() -> None:
    assert not isinstance(TEXT, str)
    assert repr(TEXT) == "<LabelledText 18 characters from a1>"
    assert SECRET not in f"{[TEXT]} {TEXT!r}"


def test_repr_and_messages_stay_short_for_many_items() -> None:
    many = LabelledText(" ").join(LabelledText("x", Origin(f"i{n}", "evidence", "kb")) for n in range(100))
    assert repr(many) == "<LabelledText 199 characters from i0, i1, i2, i3 and 96 more>"
    with pytest.raises(ContextTypeError, match=r"item `i0` \(evidence from `kb`\) and 99 more"):
        str(many)


def test_no_operation_asks_whether_text_is_safe() -> None:
    words = ("safe", "taint", "trust", "clean")
    assert [name for name in dir(LabelledText) if any(word in name.lower() for word in words)] == []


def test_every_public_operation_of_str_is_decided() -> None:
    assert [name for name in dir(str) if not name.startswith("_") and not hasattr(LabelledText, name)] == ["maketrans"]


def test_spans_name_each_item_once_where_it_stands() -> None:
    mixed = "To: " + LabelledText("Ann", MAIL) + " about " + TEXT[:8] + TEXT[8:]
    assert mixed.spans == ((0, 4, None), (4, 7, MAIL), (7, 14, None), (14, 32, ORDERS))
    assert mixed.origins == (MAIL, ORDERS)


def test_a_letter_that_grows_keeps_the_runs_in_place() -> None:
    mixed = LabelledText("aß", ORDERS) + LabelledText("c", MAIL)
    assert mixed.upper().spans == ((0, 3, ORDERS), (3, 4, MAIL))


def test_an_empty_text_still_names_its_item() -> None:
    empty = TEXT[3:3]
    assert (len(empty), empty.spans, empty.origins) == (0, (), (ORDERS,))
    assert (empty + "x").origins == ()
    with pytest.raises(ContextTypeError, match="a1"):
        str(empty)


def test_text_is_immutable_and_survives_a_copy() -> None:
    with pytest.raises(AttributeError, match="immutable"):
        TEXT._text = "x"
    with pytest.raises(AttributeError, match="immutable"):
        del TEXT._origins
    LabelledText.__init__(TEXT, "other", None)  # type: ignore[call-arg]
    assert TEXT.reveal("compared") == SECRET
    mixed = TEXT + "x"
    for other in (copy.copy(mixed), copy.deepcopy(mixed), pickle.loads(pickle.dumps(mixed))):
        assert (other, other.spans) == (mixed, mixed.spans)


def test_only_text_is_taken() -> None:
    with pytest.raises(InputError, match="`text` is of kind int"):
        LabelledText(1, ORDERS)  # type: ignore[arg-type]


def test_indexing_follows_str() -> None:
    for key in (18, -19):
        with pytest.raises(IndexError):
            TEXT[key]
    with pytest.raises(ContextTypeError):
        TEXT["key"]  # type: ignore[index]


def joined(count: int) -> LabelledText:
    origins = [Origin(f"i{n}", "evidence", "kb") for n in range(7)]
    return LabelledText(", ").join(LabelledText("word", origins[n % 7]) for n in range(count))


def seconds(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(5):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


@pytest.mark.parametrize(
    "work",
    [
        lambda text: joined(text.count("word")),
        lambda text: text.split(", "),
        lambda text: text.replace("o", "0"),
        lambda text: list(text),
        lambda text: text.upper(),
        lambda text: text[::-1],
    ],
    ids=["join", "split", "replace", "iterate", "upper", "reverse"],
)
def test_work_on_many_spans_grows_with_their_number_not_with_its_square(
    work: Callable[[LabelledText], object],
) -> None:
    few, many = joined(500), joined(5_000)
    assert len(many.spans) == 9_999
    assert seconds(lambda: work(many)) < 50 * seconds(lambda: work(few)) + 0.002
