from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.tokens import EstimateTokenizer, TiktokenTokenizer, Tokenizer
from rung.tokens.estimate import _words

from .hostile import ENGLISH, SCRIPTS, hostile_text

Both = tuple[TiktokenTokenizer, ...]
ESTIMATE = EstimateTokenizer()


def highest(both: Both, text: str) -> int:
    return max(tokenizer.count(text) for tokenizer in both)


@pytest.mark.parametrize("text", SCRIPTS.values(), ids=SCRIPTS)
@pytest.mark.parametrize("times", [1, 2, 7])
def test_never_below_the_exact_count_of_any_script(both: Both, text: str, times: int) -> None:
    assert ESTIMATE.count(text * times) >= highest(both, text * times)


@settings(max_examples=200, deadline=None)
@given(text=hostile_text)
def test_never_below_the_exact_count_of_hostile_text(both: Both, text: str) -> None:
    assert ESTIMATE.count(text) >= highest(both, text)


@settings(max_examples=120, deadline=None)
@given(text=st.text(alphabet="abcdefghijklmnopqrstuvwxyz' AQ", max_size=40))
def test_never_below_the_exact_count_of_random_letters(both: Both, text: str) -> None:
    assert ESTIMATE.count(text) >= highest(both, text)


def test_never_below_for_runs_of_blanks_of_any_length(both: Both) -> None:
    for length in [*range(1, 140), 255, 256, 257, 1_000, 4_001]:
        for before, after in [("", ""), ("a", "b"), ("a", " the"), ("\n", "("), ("1", "2"), ("é", "é")]:
            text = before + " " * length + after
            assert ESTIMATE.count(text) >= highest(both, text), (before, length, after)


def test_never_below_for_every_character(both: Both) -> None:
    chars = [chr(code) for code in range(0x110000)]
    random.Random(7).shuffle(chars)
    for start in range(0, 200_000, 100):
        text = "".join(chars[start : start + 100])
        assert ESTIMATE.count(text) >= highest(both, text)


def test_common_words_are_one_token_behind_a_blank(both: Both) -> None:
    words = _words()
    assert len(words) == 6_000
    for tokenizer in both:
        assert {word for word in words if tokenizer.count(f" {word}") != 1} == set()


def test_english_costs_less_than_twice_the_exact_count(both: Both) -> None:
    text = ENGLISH * 5
    assert ESTIMATE.count(text) < 2 * min(tokenizer.count(text) for tokenizer in both)


@settings(max_examples=80, deadline=None)
@given(text=hostile_text)
def test_additive_where_it_says_so(text: str) -> None:
    assert ESTIMATE.joints is not None
    places = [0, *(match.start() for match in ESTIMATE.joints.finditer(text)), len(text)]
    parts = [text[start:end] for start, end in pairwise(places)]
    assert sum(map(ESTIMATE.count, parts)) == ESTIMATE.count(text)


def test_the_name_says_estimate() -> None:
    assert isinstance(ESTIMATE, Tokenizer)
    assert not ESTIMATE.exact
    assert ESTIMATE.name == "estimate"
    assert EstimateTokenizer(name="claude").name == "claude-estimate"
