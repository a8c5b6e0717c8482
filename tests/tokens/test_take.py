from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from rung.errors import InputError
from rung.tokens import (
    BlockCounter,
    CallableTokenizer,
    EstimateTokenizer,
    TiktokenTokenizer,
    Tokenizer,
    grapheme_boundary,
    take_tokens,
)

from .hostile import ENGLISH, SCRIPTS, hostile_text

Side = Literal["head", "tail"]
THIRDS = CallableTokenizer(lambda text: -(-len(text) // 3), name="thirds")
O200K = TiktokenTokenizer()
TOKENIZERS: list[Tokenizer] = [O200K, TiktokenTokenizer("cl100k_base"), EstimateTokenizer(), THIRDS]


def part(text: str, size: int, side: Side) -> str:
    return text[:size] if side == "head" else text[len(text) - size :]


def longest(tokenizer: Tokenizer, text: str, limit: int, side: Side) -> str:
    """By definition: the longest part between graphemes that fits."""
    for size in range(len(text), 0, -1):
        cut = size if side == "head" else len(text) - size
        if grapheme_boundary(text, cut) and tokenizer.count(part(text, size, side)) <= limit:
            return part(text, size, side)
    return ""


@settings(max_examples=60, deadline=None)
@given(text=hostile_text, limit=st.integers(0, 60))
@example(text="hello world\n  x", limit=2)
@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=repr)
def test_the_part_fits_and_one_more_grapheme_would_not(tokenizer: Tokenizer, side: Side, text: str, limit: int) -> None:
    taken = take_tokens(tokenizer, text, limit, side=side)
    assert taken == part(text, len(taken), side)
    assert tokenizer.count(taken) <= limit
    if len(taken) < len(text):
        cut = len(taken) if side == "head" else len(text) - len(taken)
        assert grapheme_boundary(text, cut)
        more = len(taken) + 1
        while not grapheme_boundary(text, more if side == "head" else len(text) - more):
            more += 1
        assert tokenizer.count(part(text, more, side)) > limit


@settings(max_examples=60, deadline=None)
@given(words=st.lists(st.sampled_from(ENGLISH.split()), max_size=40), limit=st.integers(0, 40))
@pytest.mark.parametrize("side", ["head", "tail"])
def test_the_part_is_the_longest(side: Side, words: list[str], limit: int) -> None:
    text = " ".join(words)
    assert take_tokens(O200K, text, limit, side=side) == longest(O200K, text, limit, side)


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
def test_the_part_is_the_longest_in_every_script(text: str, side: Side) -> None:
    for limit in range(0, O200K.count(text) + 2, 3):
        assert take_tokens(O200K, text, limit, side=side) == longest(O200K, text, limit, side)


@pytest.mark.parametrize("side", ["head", "tail"])
@pytest.mark.parametrize("text", [ENGLISH * 20_000, "x" * 3_000_000, "中文" * 500_000], ids=["en", "run", "han"])
def test_work_is_bounded_by_the_limit_and_not_by_the_text(text: str, side: Side) -> None:
    read = 0

    class Watched(TiktokenTokenizer):
        __slots__ = ()

        def count(self, text: str) -> int:
            nonlocal read
            read += len(text)
            return super().count(text)

    taken = take_tokens(Watched(), text, 500, side=side)
    assert 450 <= O200K.count(taken) <= 500
    assert read < 60_000 + 20 * len(taken)


@pytest.mark.parametrize(
    ("text", "place", "boundary"),
    [
        ("ab", 1, True),
        ("\r\n", 1, False),
        ("e\u0301", 1, False),
        ("\n\u0301", 1, True),
        ("👍🏽", 1, False),
        ("👩\u200d👧", 1, False),
        ("👩\u200d👧", 2, False),
        ("a\u200d b", 2, True),
        ("❤\ufe0f", 1, False),
        ("5\ufe0f\u20e3", 1, False),
        ("🇩🇪🇫🇷", 1, False),
        ("🇩🇪🇫🇷", 2, True),
        ("🇩🇪🇫🇷", 3, False),
        ("\ud83d\ude00", 1, False),
        ("각", 1, True),
        ("\u1100\u1161\u11a8", 1, False),
        ("\u1100\u1161\u11a8", 2, False),
        ("가\u11a8", 1, False),
        ("각\u1161", 1, True),
        ("中文", 1, True),
        ("", 0, True),
    ],
)
def test_graphemes_are_not_split(text: str, place: int, boundary: bool) -> None:
    assert grapheme_boundary(text, place) is boundary


def test_trying_cuts_leaves_no_blocks_in_a_cache() -> None:
    counter = BlockCounter(O200K)
    assert take_tokens(counter, ENGLISH, 9) == take_tokens(O200K, ENGLISH, 9)
    assert counter.tokenized_chars == 0


def test_limits_below_zero_and_unknown_sides_are_errors() -> None:
    with pytest.raises(InputError, match="`limit` is -1"):
        take_tokens(O200K, "a", -1)
    with pytest.raises(InputError, match="`head` or `tail`"):
        take_tokens(O200K, "a", 1, side="middle")  # type: ignore[arg-type]
    assert take_tokens(O200K, "abc", 0) == ""
    assert take_tokens(O200K, "abc", 99) == "abc"
