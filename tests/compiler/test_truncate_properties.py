"""What holds of every truncation, whatever the text, the limit and the tokenizer."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.compiler.truncate import RULES, truncate
from rung.tokens import BlockCounter, CallableTokenizer, EstimateTokenizer, TiktokenTokenizer, Tokenizer

THIRDS = CallableTokenizer(lambda text: -(-len(text) // 3), name="thirds")
MERGING = CallableTokenizer(lambda text: len(text.split()) + text.count(" \n") % 3, name="merging")
TOKENIZERS: list[Tokenizer] = [
    TiktokenTokenizer(),
    TiktokenTokenizer("cl100k_base"),
    BlockCounter(TiktokenTokenizer(), block_chars=16),
    EstimateTokenizer(),
    THIRDS,
    MERGING,
]
each_tokenizer = pytest.mark.parametrize("tokenizer", TOKENIZERS, ids=repr)

_BITS = [
    "word ", "Wort", " a", "\n", "\n\n", "\r\n", "# Head\n", "## Part\n", "Title\n===\n", "```py\n", "```\n", "~~~\n",
    "| a | b |\n", "|---|---|\n", "| 1 | 2 |\n", "a,b,c\n", '1,"x\ny",3\n', "a\tb\n", "- item\n", "1. one\n",
    "<p>text</p>", "<div>", "</div>", "<h2>T</h2>", "<br/>", "Source: here\n", "---\n",
    "👩‍👩‍👧‍👦", "🇩🇪🇫🇷", "e\u0301", "한", "中文字", "\u200d",
    '{"a":', "[1,2", "]}", "a < b > c", "\ud800", "\x00", "x" * 40, " " * 30, "[… 3 lines left out …]",
]  # fmt: skip
texts = st.one_of(
    st.lists(st.sampled_from(_BITS), max_size=80).map("".join),
    st.builds(
        lambda bit, times, end: bit * times + end, st.sampled_from(_BITS), st.integers(1, 120), st.text(max_size=20)
    ),
    st.text(max_size=200),
)
scalars = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=40)
)
values = st.recursive(
    scalars | st.text(min_size=100, max_size=150),
    lambda inner: (
        st.lists(inner, max_size=12) | st.dictionaries(st.text(max_size=8) | st.just("$omitted"), inner, max_size=8)
    ),
    max_leaves=20,
)
kinds = st.sampled_from(["text/plain", "text/csv", "text/tab-separated-values", "text/html", "text/markdown"])


@each_tokenizer
@settings(max_examples=20, deadline=None)
@given(text=texts, rule=st.sampled_from(RULES), limit=st.integers(0, 120), kind=kinds)
def test_never_over_the_limit_and_the_same_below_it(
    tokenizer: Tokenizer, text: str, rule: str, limit: int, kind: str
) -> None:
    made = truncate(text, rule, limit, tokenizer, media_type=kind)
    assert made.tokens == tokenizer.count(made.text) <= limit
    if tokenizer.count(text) <= limit:
        assert (made.text, made.changed) == (text, False)
    else:
        assert made.changed
        assert made.fits == (made.text != "")
        made.text.encode()
    assert made == truncate(text, rule, limit, tokenizer, media_type=kind)


@each_tokenizer
@settings(max_examples=20, deadline=None)
@given(value=values, limit=st.integers(0, 150), indent=st.sampled_from([None, 2]))
def test_cut_json_is_json_and_says_what_is_missing(
    tokenizer: Tokenizer, value: Any, limit: int, indent: int | None
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=False)
    made = truncate(text, "json", limit, tokenizer)
    if made.fits and made.changed and made.rule == "json":
        result = msgspec.json.decode(made.text)
        assert type(result) is type(value)
        if made.left_out == (0, "elements"):
            assert result == value
        else:
            assert "$omitted" in made.text or "left out" in made.text


@each_tokenizer
@settings(max_examples=12, deadline=None)
@given(value=st.lists(values, min_size=3, max_size=8), limit=st.integers(20, 200))
def test_elements_shown_and_elements_counted_are_all_elements(
    tokenizer: Tokenizer, value: list[Any], limit: int
) -> None:
    made = truncate(json.dumps(value), "json", limit, tokenizer)
    if made.fits and made.changed:
        *shown, last = json.loads(made.text)
        if len(shown) + 1 < len(value):
            assert last == {"$omitted": len(value) - len(shown)}
            assert made.left_out[0] >= len(value) - len(shown)


lines = st.lists(st.text(st.characters(codec="ascii", exclude_categories=["C"]), max_size=30), min_size=1, max_size=60)


@pytest.mark.parametrize("tokenizer", [TOKENIZERS[0], TOKENIZERS[1], THIRDS], ids=repr)
@settings(max_examples=25, deadline=None)
@given(rows=lines, rule=st.sampled_from(["head", "tail", "log", "middle", "rows", "section", "json"]))
def test_a_smaller_limit_never_keeps_more(tokenizer: Tokenizer, rows: list[str], rule: str) -> None:
    text = json.dumps(list(range(len(rows) * 9))) if rule == "json" else "".join(f"x,{row}\n" for row in rows)
    before: dict[str, int] = {}
    for limit in range(0, tokenizer.count(text), 3):
        made = truncate(text, rule, limit, tokenizer, media_type="text/csv")
        assert made.kept >= before.get(made.left_out[1], 0) or not made.fits
        before[made.left_out[1]] = made.kept


@each_tokenizer
@settings(max_examples=20, deadline=None)
@given(text=texts, rule=st.sampled_from(["head", "tail", "middle", "log", "section"]), limit=st.integers(30, 150))
def test_a_wrapping_element_keeps_both_tags(tokenizer: Tokenizer, text: str, rule: str, limit: int) -> None:
    body = text.replace("\ud800", "").replace("</doc", "")
    made = truncate(f'<doc source="s">\n{body}\n</doc>', rule, limit, tokenizer)
    if made.fits:
        assert made.text.startswith('<doc source="s">\n')
        assert made.text.endswith("</doc>")
