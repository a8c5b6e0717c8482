from __future__ import annotations

import random
from itertools import pairwise

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from rung.errors import InputError
from rung.tokens import (
    BlockCounter,
    CallableTokenizer,
    EstimateTokenizer,
    TiktokenTokenizer,
    Tokenizer,
    safe_joint,
)
from rung.tokens.blocks import NEWLINE_JOINT
from rung.tokens.encodings import JOINTS

from .hostile import ENGLISH, hostile_text

WHOLE = CallableTokenizer(lambda text: -(-len(text) // 3), name="thirds")


@settings(max_examples=160, deadline=None)
@given(left=hostile_text, right=hostile_text)
def test_counts_add_up_at_a_newline_before_neither_blank_nor_slash(
    exact: TiktokenTokenizer, left: str, right: str
) -> None:
    left += "\n"
    assume(safe_joint(left, right))
    assert exact.count(left + right) == exact.count(left) + exact.count(right)


@settings(max_examples=160, deadline=None)
@given(text=hostile_text)
def test_counts_add_up_at_every_joint(exact: TiktokenTokenizer, text: str) -> None:
    places = [0, *(match.start() for match in JOINTS.finditer(text)), len(text)]
    parts = [text[start:end] for start, end in pairwise(places)]
    assert sum(map(exact.count, parts)) == exact.count(text)


@pytest.mark.parametrize(
    ("left", "right", "safe"),
    [
        ("a\n", "b", True),
        ("a\n", "中", True),
        ("a\n", "", True),
        ("", " b", True),
        ("a\n", " b", False),
        ("a\n", "\nb", False),
        ("a\n", "\u3000b", False),
        ("!\n", "/b", False),
        ("a", "b", False),
        ("a\r", "b", False),
    ],
)
def test_safe_joint_is_the_newline_rule(left: str, right: str, safe: bool) -> None:
    assert safe_joint(left, right) is safe


def test_sums_over_other_cuts_would_be_wrong(exact: TiktokenTokenizer) -> None:
    assert exact.count("!\n") + exact.count("\nb") != exact.count("!\n\nb")
    assert exact.count("hel") + exact.count("lo") != exact.count("hello")


@settings(max_examples=120, deadline=None)
@given(texts=st.lists(hostile_text, max_size=4), size=st.integers(1, 40), memory=st.integers(1, 400))
def test_block_counts_equal_whole_counts(exact: TiktokenTokenizer, texts: list[str], size: int, memory: int) -> None:
    counter = BlockCounter(exact, block_chars=size, max_chars=memory)
    for text in [*texts, "".join(texts), *texts]:
        assert counter.count(text) == exact.count(text)


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.one_of(hostile_text, hostile_text.map(lambda text: text + "\n")), max_size=6))
@pytest.mark.parametrize("tokenizer", [EstimateTokenizer(), WHOLE, TiktokenTokenizer()], ids=repr)
def test_joined_parts_count_as_their_text(tokenizer: Tokenizer, parts: list[str]) -> None:
    assert BlockCounter(tokenizer).count_joined(parts) == tokenizer.count("".join(parts))


@settings(max_examples=80, deadline=None)
@given(text=hostile_text, cuts=st.lists(st.integers(0, 200), max_size=8))
@pytest.mark.parametrize("tokenizer", [EstimateTokenizer(), WHOLE, TiktokenTokenizer()], ids=repr)
def test_a_stream_counts_as_its_text(tokenizer: Tokenizer, text: str, cuts: list[int]) -> None:
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    chunks = [text[start:end] for start, end in pairwise(places)]
    assert BlockCounter(tokenizer).count_stream(chunks) == tokenizer.count(text)


@settings(max_examples=30, deadline=None)
@given(texts=st.lists(hostile_text, max_size=8), seed=st.integers(0, 9))
def test_a_long_stream_is_cut_and_counts_as_its_text(exact: TiktokenTokenizer, texts: list[str], seed: int) -> None:
    text = "".join(texts) * 40
    draw = random.Random(seed)
    chunks: list[str] = []
    start = 0
    while start < len(text):
        size = draw.choice([1, 7, 500, 9_000])
        chunks.append(text[start : start + size])
        start += size
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rung.tokens.blocks.STREAM_CHARS", 64)
        assert BlockCounter(exact).count_stream(chunks) == exact.count(text)


def test_a_block_is_tokenised_once(exact: TiktokenTokenizer) -> None:
    counter = BlockCounter(exact)
    text = ENGLISH * 50
    counter.count(text)
    assert counter.tokenized_chars == len(text)
    counter.count(text)
    counter.count_many([text, text])
    assert counter.tokenized_chars == len(text)


def test_only_new_text_is_tokenised_as_a_conversation_grows(exact: TiktokenTokenizer) -> None:
    counter = BlockCounter(exact)
    messages: list[str] = []
    for turn in range(200):
        new = f"Message {turn}: {ENGLISH}"
        messages.append(new)
        before = counter.tokenized_chars
        counter.count_many(messages)
        assert counter.tokenized_chars - before == len(new)


def test_a_text_that_grows_costs_what_is_new_and_at_most_a_block(exact: TiktokenTokenizer) -> None:
    counter = BlockCounter(exact)
    text = ""
    for turn in range(100):
        new = f"{turn} {ENGLISH}"
        text += new
        before = counter.tokenized_chars
        assert counter.count(text) == exact.count(text)
        assert counter.tokenized_chars - before <= len(new) + 1_024 + 64


def test_memory_of_the_cache_is_bounded() -> None:
    counter = BlockCounter(WHOLE, max_chars=10_000)
    for turn in range(2_000):
        counter.count(f"{turn:099d}\n")
    assert sum(map(len, counter._new)) + sum(map(len, counter._old)) <= 10_200
    kept = counter.tokenized_chars
    counter.count(f"{1_999:099d}\n")
    assert counter.tokenized_chars == kept


def test_a_block_in_use_survives_others() -> None:
    counter = BlockCounter(WHOLE, max_chars=10_000)
    used = "kept " * 20
    counter.count(used)
    for turn in range(500):
        counter.count(f"{turn:099d}")
        before = counter.tokenized_chars
        counter.count(used)
        assert counter.tokenized_chars == before


def test_a_stream_holds_little_of_a_large_text(exact: TiktokenTokenizer) -> None:
    longest = 0

    def spy(text: str) -> int:
        nonlocal longest
        longest = max(longest, len(text))
        return exact.count(text)

    watched = CallableTokenizer(spy, name="spy", additive_newline=True)
    counter = BlockCounter(watched)
    line = '{"id":1,"note":"' + "x" * 80 + '"}\n'
    total = counter.count_stream(line for _ in range(20_000))
    assert total == 20_000 * exact.count(line)
    assert longest < 200_000
    assert counter.tokenized_chars == 20_000 * len(line)


def test_a_counter_is_a_tokenizer_of_the_same_name(exact: TiktokenTokenizer) -> None:
    counter = BlockCounter(exact)
    assert isinstance(counter, Tokenizer)
    assert (counter.name, counter.exact, counter.additive_newline) == (exact.name, True, True)
    assert counter.joints is JOINTS
    assert counter.tokenizer is exact
    assert repr(exact) in repr(counter)
    assert BlockCounter(WHOLE).joints is None
    lines = CallableTokenizer(len, name="lines", additive_newline=True)
    assert BlockCounter(lines).joints is NEWLINE_JOINT
    with pytest.raises(InputError, match="at least 1"):
        BlockCounter(exact, max_chars=0)
