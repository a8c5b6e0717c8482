"""Labelled text does what `str` does, and each character keeps its origin: checked against a plain model."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import given, settings
from hypothesis import strategies as st

from rung.records.text import LabelledText, Origin

ORIGINS = [Origin(f"item{n}", "tool_output", f"tool:t{n}") for n in range(3)]

# Characters whose case mappings grow, look at their neighbours, or are no letters; separators; white space.
ALPHABET = "abAB ,\n\r\t\u2028.ßİΣσςﬁŉªǅ\u0345\u0301😀1"

Model = list[tuple[str, Origin | None]]

words = st.text(ALPHABET, max_size=6)
pieces = st.lists(st.tuples(words, st.sampled_from([None, *ORIGINS])), min_size=1, max_size=5)


def labelled(parts: Sequence[tuple[str, Origin | None]]) -> LabelledText:
    out = LabelledText(*parts[0])
    for text, origin in parts[1:]:
        out = out + (text if origin is None else LabelledText(text, origin))
    return out


def model(parts: Sequence[tuple[str, Origin | None]]) -> Model:
    return [(char, origin) for text, origin in parts for char in text]


def plain(chars: Model) -> str:
    return "".join(char for char, _ in chars)


def seen(text: LabelledText) -> Model:
    """The origin of each character as the spans tell it, after checking that the spans are in form."""
    shown = text.reveal("compared with the model")
    out: Model = []
    end, before = 0, object()
    for span in text.spans:
        assert span.start == end
        assert span.end > span.start
        assert span.origin != before
        out += [(char, span.origin) for char in shown[span.start : span.end]]
        end, before = span.end, span.origin
    assert end == len(shown) == len(text)
    if shown:
        assert text.origins == tuple(dict.fromkeys(origin for _, origin in out if origin is not None))
    return out


def cut_like(whole: Model, parts: Sequence[str], places: Sequence[int]) -> list[Model]:
    return [whole[place : place + len(part)] for part, place in zip(parts, places, strict=True)]


def place_each(text: str, parts: Sequence[str], sep: str | None) -> list[int]:
    """Where each part of a split begins, by a walk that is independent of the code under test."""
    places, at = [], 0
    for n, part in enumerate(parts):
        if sep is None:
            while not text.startswith(part, at) or (n and part and text[at].isspace()):
                at += 1
        elif n:
            at += len(sep)
        places.append(at)
        at += len(part)
    return places


def case_model(chars: Model, method: str) -> Model:
    """Case mapping of a model: the whole is mapped, and each character's share is found from its prefixes."""
    text = plain(chars)
    mapped = getattr(text, method)()
    out: Model = []
    for n, (_, origin) in enumerate(chars):
        # Only lengths are taken from the prefix, so a final sigma does no harm.
        share = len(getattr(text[: n + 1], method)()) - len(getattr(text[:n], method)())
        out += [(char, origin) for char in mapped[len(out) : len(out) + share]]
    assert len(out) == len(mapped)
    return out


@given(pieces)
def test_putting_together_keeps_each_characters_origin(parts: list[tuple[str, Origin | None]]) -> None:
    assert seen(labelled(parts)) == model(parts)


@given(
    pieces,
    st.integers(-12, 12) | st.none(),
    st.integers(-12, 12) | st.none(),
    st.sampled_from([None, 1, 2, -1, -3]),
)
def test_a_slice_takes_the_origins_with_the_characters(
    parts: list[tuple[str, Origin | None]], start: int | None, stop: int | None, step: int | None
) -> None:
    assert seen(labelled(parts)[start:stop:step]) == model(parts)[start:stop:step]


@given(pieces)
def test_every_index_and_the_iteration_give_one_character(parts: list[tuple[str, Origin | None]]) -> None:
    text, chars = labelled(parts), model(parts)
    assert [seen(char)[0] for char in text] == chars
    assert [seen(text[n])[0] for n in range(-len(chars), len(chars))] == chars + chars


@given(pieces, st.sampled_from(["upper", "lower", "casefold", "swapcase", "capitalize", "title"]))
@settings(max_examples=150)
def test_case_changes_size_the_runs_again(parts: list[tuple[str, Origin | None]], method: str) -> None:
    assert seen(getattr(labelled(parts), method)()) == case_model(model(parts), method)


@given(pieces, words | st.none(), st.sampled_from(["strip", "lstrip", "rstrip"]))
def test_stripping_cuts_both_alike(parts: list[tuple[str, Origin | None]], chars: str | None, method: str) -> None:
    whole = model(parts)
    text = plain(whole)
    kept = getattr(text, method)(chars)
    start = 0 if method == "rstrip" else len(text) - len(text.lstrip(chars)) if kept else len(text)
    assert seen(getattr(labelled(parts), method)(chars)) == whole[start : start + len(kept)]


@given(
    pieces,
    st.text("ab ,", min_size=1, max_size=2) | st.none(),
    st.integers(-1, 3),
    st.sampled_from(["split", "rsplit"]),
)
@settings(max_examples=150)
def test_each_part_of_a_split_keeps_its_origins(
    parts: list[tuple[str, Origin | None]], sep: str | None, most: int, method: str
) -> None:
    whole = model(parts)
    expected = getattr(plain(whole), method)(sep, most)
    got = getattr(labelled(parts), method)(sep, most)
    places = place_each(plain(whole), expected, sep)
    assert [seen(part) for part in got] == cut_like(whole, expected, places)


@given(pieces, st.booleans())
def test_lines_keep_their_origins(parts: list[tuple[str, Origin | None]], keepends: bool) -> None:
    whole = model(parts)
    got = [seen(line) for line in labelled(parts).splitlines(keepends)]
    assert [plain(line) for line in got] == plain(whole).splitlines(keepends)
    if keepends:
        assert [char for line in got for char in line] == whole


@given(pieces, st.text("ab ,", min_size=1, max_size=2), st.sampled_from(["partition", "rpartition"]))
def test_partition_gives_the_whole_text_in_three(parts: list[tuple[str, Origin | None]], sep: str, method: str) -> None:
    whole = model(parts)
    got = [seen(part) for part in getattr(labelled(parts), method)(sep)]
    assert tuple(plain(part) for part in got) == getattr(plain(whole), method)(sep)
    assert [char for part in got for char in part] == whole


@given(pieces, st.text("ab ,", max_size=2), pieces, st.integers(-1, 4))
@settings(max_examples=150)
def test_replace_puts_in_text_with_its_own_origins(
    parts: list[tuple[str, Origin | None]], old: str, new: list[tuple[str, Origin | None]], most: int
) -> None:
    whole, fresh = model(parts), model(new)
    text = plain(whole)
    expected: Model = []
    at, done = 0, 0
    while at <= len(text):
        if done != most and text.startswith(old, at):
            expected += fresh
            done += 1
            if old:
                at += len(old)
                continue
        expected += whole[at : at + 1]
        at += 1
    got = labelled(parts).replace(old, labelled(new), most)
    assert got == text.replace(old, plain(fresh), most)
    assert seen(got) == expected


@given(pieces, st.lists(pieces, max_size=4), st.integers(-1, 4))
def test_join_and_repeat_lay_runs_one_after_another(
    sep: list[tuple[str, Origin | None]], many: list[list[tuple[str, Origin | None]]], times: int
) -> None:
    expected: Model = []
    for n, parts in enumerate(many):
        expected += (model(sep) if n else []) + model(parts)
    assert seen(labelled(sep).join(labelled(parts) for parts in many)) == expected
    assert seen(labelled(sep) * times) == model(sep) * times
    assert seen(times * labelled(sep)) == model(sep) * times


STEPS = {
    "upper": lambda text, chars: (text.upper(), case_model(chars, "upper")),
    "lower": lambda text, chars: (text.lower(), case_model(chars, "lower")),
    "head": lambda text, chars: (text[: len(chars) // 2 + 1], chars[: len(chars) // 2 + 1]),
    "tail": lambda text, chars: (text[1:], chars[1:]),
    "turned": lambda text, chars: (text[::-1], chars[::-1]),
    "after": lambda text, chars: (text + "aß", [*chars, ("a", None), ("ß", None)]),
    "before": lambda text, chars: ("B " + text, [("B", None), (" ", None), *chars]),
    "item": lambda text, chars: (text + LabelledText("x", ORIGINS[0]), [*chars, ("x", ORIGINS[0])]),
    "twice": lambda text, chars: (text * 2, chars * 2),
    "joined": lambda text, chars: (
        text.join(["a", LabelledText("b", ORIGINS[1])]),
        [("a", None), *chars, ("b", ORIGINS[1])],
    ),
    "swapped": lambda text, chars: (
        text.replace("a", LabelledText("é", ORIGINS[2])),
        [("é", ORIGINS[2]) if char == "a" else (char, origin) for char, origin in chars],
    ),
}


@given(pieces, st.lists(st.sampled_from(sorted(STEPS)), max_size=7))
@settings(max_examples=150)
def test_any_sequence_of_operations_keeps_text_and_origins(
    parts: list[tuple[str, Origin | None]], steps: list[str]
) -> None:
    text, chars = labelled(parts), model(parts)
    for step in steps:
        text, chars = STEPS[step](text, chars)
        assert seen(text) == chars


@given(words, words, st.integers(-8, 8) | st.none(), st.integers(-8, 8) | st.none())
def test_questions_are_answered_as_by_str(text: str, other: str, start: int | None, end: int | None) -> None:
    mine, theirs = LabelledText(text, ORIGINS[0]), LabelledText(other, ORIGINS[1])
    for asked in (other, theirs):
        for method in ("find", "rfind", "count", "startswith", "endswith"):
            assert getattr(mine, method)(asked, start, end) == getattr(text, method)(other, start, end)
        assert (mine == asked) == (text == other)
        assert (mine < asked, mine <= asked, mine > asked, mine >= asked) == (
            text < other,
            text <= other,
            text > other,
            text >= other,
        )
        assert (asked in mine) == (other in text)
        assert mine.startswith((asked, "a")) == text.startswith((other, "a"))
        assert seen(mine.removeprefix(asked)) == [(c, ORIGINS[0]) for c in text.removeprefix(other)]
        assert seen(mine.removesuffix(asked)) == [(c, ORIGINS[0]) for c in text.removesuffix(other)]
    assert hash(mine) == hash(text)
    assert bool(mine) == bool(text)
    for name in [name for name in dir(str) if name.startswith("is")]:
        assert getattr(mine, name)() == getattr(text, name)()
