"""Documents are cut where their structure allows it, and nowhere else."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.knowledge.chunks import Chunk, chunk
from rung.knowledge.read import parse_text
from rung.tokens import CallableTokenizer

WORDS = CallableTokenizer(str.split, name="words")


def cut(text: str, limit: int = 30, title: str = "T", kind: str = "markdown") -> tuple[Chunk, ...]:
    return chunk(parse_text(text, kind), WORDS, limit, title)  # type: ignore[arg-type]


def words(count: int, word: str = "word") -> str:
    return " ".join(f"{word}{place}" for place in range(count))


def test_a_section_is_a_chunk_with_its_path() -> None:
    text = f"# T\n\n## Fees\n\n{words(20)}\n\n### Late\n\n{words(20)}\n\n## Limits\n\n{words(20)}\n"
    assert [(one.anchor, one.section) for one in cut(text)] == [
        ("fees", "Fees"),
        ("fees/late", "Fees > Late"),
        ("limits", "Limits"),
    ]


def test_small_neighbours_share_a_chunk() -> None:
    chunks = cut("# T\n\n## One\n\na b\n\n## Two\n\nc d\n")
    assert [(one.anchor, one.text) for one in chunks] == [("one", "## One\n\na b\n\n## Two\n\nc d")]


def test_an_anchor_stays_when_text_is_added_elsewhere() -> None:
    section = f"## Fees\n\n{words(25)}\n"
    before = {one.anchor: one.text for one in cut(f"# T\n\n{section}")}
    after = {one.anchor: one.text for one in cut(f"# T\n\n## New\n\n{words(25, 'new')}\n\n{section}")}
    assert after["fees"] == before["fees"]


def test_two_sections_of_one_name_have_two_anchors() -> None:
    chunks = cut(f"## Fees\n\n{words(25)}\n\n## Fees\n\n{words(25)}\n")
    assert [one.anchor for one in chunks] == ["fees", "fees.2"]


def test_a_code_block_is_never_cut() -> None:
    code = "```python\n" + "\n\n".join(f"line {place}" for place in range(60)) + "\n```"
    chunks = cut(f"# T\n\n{words(20)}\n\n{code}\n\n{words(20)}\n")
    assert [one.text for one in chunks if "```" in one.text] == [code]


@pytest.mark.parametrize("fence", ["```", "~~~~", "    "], ids=["backticks", "tildes", "indented"])
def test_a_code_block_in_a_list_is_never_cut(fence: str) -> None:
    body = [f"   {'    ' if fence == '    ' else ''}code {place}" for place in range(40)]
    inner = [*body] if fence == "    " else [f"   {fence}", *body, f"   {fence}"]
    text = f"1. {words(20)}\n\n" + "\n".join(inner) + f"\n\n2. {words(20)}\n"
    holding = [one for one in cut(text) if "code 0" in one.text]
    assert len(holding) == 1
    assert "code 39" in holding[0].text


def test_a_cut_table_repeats_its_header_and_keeps_its_rows_whole() -> None:
    header = "| name | fee |\n| --- | --- |"
    rows = [f"| card {place} | {place} dollars each month |" for place in range(40)]
    chunks = cut("# T\n\n## Fees\n\n" + "\n".join([header, *rows]) + "\n")
    assert len(chunks) > 3
    assert all(header in one.text for one in chunks)
    assert [row for one in chunks for row in one.text.split("\n") if row.startswith("| card")] == rows
    assert all(one.section == "Fees" and one.tokens <= 30 for one in chunks)
    assert chunks[0].text.startswith("## Fees\n\n| name")


def test_a_long_paragraph_is_cut_between_sentences_and_a_long_sentence_between_words() -> None:
    sentences = [f"Sentence {place} has six words here." for place in range(20)]
    chunks = cut(" ".join(sentences))
    assert all(one.text.rstrip().endswith("here.") for one in chunks)
    assert " ".join(words(200).split()) == " ".join(" ".join(one.text for one in cut(words(200))).split())


ITEMS = [f"- {words(9, name)}" for name in "abcdef"]


@pytest.mark.parametrize(
    "lead",
    ["PREMIUM TIER:", "**Premium tier:**", "**Premium tier**", "### Premium tier", "Premium tier：", "- Premium tier:"],
)
@pytest.mark.parametrize("kind", ["markdown", "text"])
def test_a_line_that_announces_a_list_stands_with_its_first_item(lead: str, kind: str) -> None:
    if kind == "text" and lead.startswith("#"):
        lead = "Premium tier:"
    for before in range(10, 40):
        chunks = cut("\n".join([words(before), "", lead, *ITEMS]) + "\n", kind=kind)
        (holding,) = [one.text for one in chunks if lead in one.text]
        assert ITEMS[0] in holding
        assert all(one.tokens <= 30 for one in chunks)


def test_a_line_within_a_list_or_paragraph_announces_what_follows_it() -> None:
    tiers = "\n".join(f"{name} TIER:\n{words(12, name)}." for name in ("BASIC", "PREMIUM", "ELITE"))
    for text in (tiers, "\n".join(f"- {line}" for line in tiers.split("\n"))):
        for one in cut(text, limit=20):
            assert not one.text.rstrip().endswith(":")


def test_only_the_sentence_that_announces_moves() -> None:
    chunks = cut(f"{words(15)}. These are the fees:\n\n" + "\n".join(ITEMS) + "\n")
    assert chunks[0].text == f"{words(15)}."
    assert chunks[1].text.startswith("These are the fees:\n\n- a0")


def test_a_section_that_only_announces_the_next_stands_with_it() -> None:
    text = f"# T\n\n## One\n\na b\n\n## Codes\n\nThese are the codes:\n\n### 55\n\n{words(15)}\n"
    assert [(one.anchor, one.text.count("\n\n")) for one in cut(text)] == [("one", 1), ("codes", 3)]


def test_headings_in_code_quotes_and_lists_open_no_section() -> None:
    text = "```\n# no\n```\n\n> # no\n\n- # no\n\n# yes\n\ntext\n"
    assert {one.section for one in cut(text, limit=8)} == {"", "yes"}


def test_front_matter_gives_the_title_and_is_not_text() -> None:
    parsed = parse_text('---\ntitle: "Fees 2025"\ntags: [a]\n---\n# Other\n\ntext\n', "markdown")
    assert parsed.title == "Fees 2025"
    assert not any("tags" in block.text for block in parsed.blocks)


@given(st.text(alphabet=st.sampled_from("ab #`~|-\n>*1.é京"), max_size=300), st.integers(16, 40))
@settings(max_examples=150, deadline=None)
def test_nothing_of_a_text_is_lost_or_added_but_headers(text: str, limit: int) -> None:
    """Every letter comes in order, and only the lines of a cut table's header come again."""
    parsed = parse_text(text, "markdown")
    whole = "".join(re.findall(r"\w", "".join(block.text for block in parsed.blocks)))
    chunks = chunk(parsed, WORDS, limit, "no such title")
    got = "".join(re.findall(r"\w", "".join(one.text for one in chunks)))
    if not any(block.kind == "table" for block in parsed.blocks):
        assert got == whole
    assert len(got) >= len(whole)
    assert len({one.anchor for one in chunks}) == len(chunks)
    assert all(one.tokens == WORDS.count(one.text) for one in chunks)
