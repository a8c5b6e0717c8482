"""A frame holds its text and its attributes, and nothing leaves it."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.assembly.breakouts import BREAKOUTS
from tests.assembly.test_escape import HOSTILE

from rung.assembly.frames import Frame, parse_frames, render_frame, tag_name
from rung.assembly.invisible import treat_invisible
from rung.assembly.marking import apply_mark, remove_mark
from rung.assembly.messages import Block
from rung.errors import InputError
from rung.records.types import BUILTIN_TYPES
from rung.tokens import safe_joint

ATTR_NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True).filter(
    lambda name: name not in ("id", "source", "marked")
)
MARKS = st.sampled_from(["^", "~", "\ue000", "^~", "◆"])
BLOCKS = st.builds(
    Block,
    item_id=st.just("i1"),
    form=st.just("quoted"),
    type=st.sampled_from([kind.name for kind in BUILTIN_TYPES] + ["support_ticket"]),
    source=HOSTILE,
    text=HOSTILE,
    label=HOSTILE,
    attrs=st.lists(st.tuples(ATTR_NAMES, HOSTILE), max_size=3).map(tuple),
    mark=st.none() | MARKS,
)


def expected(block: Block) -> Frame:
    attrs = [("id", block.label or block.item_id or "")]
    attrs += [("source", block.source)] if block.source else []
    attrs += block.attrs
    attrs += [("marked", block.mark)] if block.mark else []
    return Frame(tag=block.type, attrs=tuple(attrs), text=block.text)


@pytest.mark.parametrize("chat", [False, True])
@settings(max_examples=60)
@given(blocks=st.lists(BLOCKS, min_size=1, max_size=4))
def test_parsing_gives_back_exactly_what_was_framed(blocks: list[Block], chat: bool) -> None:
    rendered = [render_frame(block, invisible="keep", chat=chat) for block in blocks]
    assert parse_frames("".join(rendered)) == tuple(expected(block) for block in blocks)


@settings(max_examples=40)
@given(block=BLOCKS)
def test_a_frame_begins_and_ends_where_counts_add_up(block: Block) -> None:
    out = render_frame(block)
    assert out[0] == "<"
    assert out.endswith(">\n")
    assert safe_joint(out, out)


@settings(max_examples=40)
@given(block=BLOCKS, name=st.text(max_size=12), kind=st.text(max_size=12))
def test_names_that_cannot_be_names_are_made_safe(block: Block, name: str, kind: str) -> None:
    odd = Block(type=kind, label=block.label, text=block.text, attrs=((name, "v"), ("id", "forged")))
    (frame,) = parse_frames(render_frame(odd, invisible="keep"))
    assert frame.tag == tag_name(kind)
    assert frame.text == block.text
    assert [key for key, _ in frame.attrs].count("id") == bool(block.label)
    assert frame.attrs[-1] == ("x_id", "forged")


@pytest.mark.parametrize("text", BREAKOUTS)
def test_exactly_one_opening_and_one_closing_tag(text: str) -> None:
    out = render_frame(Block(type="evidence", label="e1", source="kb", text=text), invisible="keep")
    assert len(re.findall(r"<\s*/?\s*evidence", out, re.IGNORECASE)) == 2
    assert [frame.text for frame in parse_frames(out)] == [text]


@given(text=HOSTILE, mark=MARKS)
def test_a_mark_replaces_each_space_and_comes_out_again(text: str, mark: str) -> None:
    from rung.assembly.escape import escape, unescape

    marked = apply_mark(escape(text), mark)
    assert " " not in marked
    assert unescape(remove_mark(marked, mark)) == text


@pytest.mark.parametrize("mark", ["", " ", "a", "<", "&", "^" * 9, "\n", "1", ";"])
def test_a_mark_that_tags_or_text_are_made_of_is_refused(mark: str) -> None:
    with pytest.raises(InputError, match="mark"):
        apply_mark("x", mark)


INVISIBLE = [
    ("tag characters", "a\U000e0049\U000e0067b", "ab", 2),
    ("zero-width space", "ig\u200bnore", "ignore", 1),
    ("bidi override", "a\u202eb\u202cc", "abc", 2),
    ("isolates", "\u2066a\u2069", "a", 2),
    ("word joiner and soft hyphen", "a\u2060b\u00adc", "abc", 2),
    ("byte order mark", "\ufeffa", "a", 1),
    ("a run of variation selectors", "a\ufe01\ufe02\ufe03", "a\ufe01", 2),
    ("supplementary selectors after a letter", "a\U000e0101\U000e0102", "a", 2),
    ("Hangul filler", "a\u3164b", "ab", 1),
    ("family emoji", "\U0001f468\u200d\U0001f469\u200d\U0001f467", None, 0),
    ("emoji with skin tone and joiner", "\U0001f469\U0001f3fd\u200d\U0001f4bb", None, 0),
    ("heart with selector", "\u2764\ufe0f\u200d\U0001f525", None, 0),
    ("flag of Scotland", "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f", None, 0),
    ("keycap", "1\ufe0f\u20e3", None, 0),
    ("Persian non-joiner", "\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None, 0),
    ("Hindi joiner", "\u0915\u094d\u200d\u0937", None, 0),
    ("ideograph variation", "\u8fbb\U000e0100", None, 0),
    ("tags after a flag without an end", "\U0001f3f4\U000e0067\U000e0062", "\U0001f3f4", 2),
    ("a joiner between Latin letters", "a\u200db", "ab", 1),
]


@pytest.mark.parametrize(("text", "stripped", "count"), [row[1:] for row in INVISIBLE], ids=[r[0] for r in INVISIBLE])
def test_invisible_characters_go_and_useful_ones_stay(text: str, stripped: str | None, count: int) -> None:
    assert treat_invisible(text, "strip") == (text if stripped is None else stripped, count)
    assert treat_invisible(text, "keep") == (text, count)
    shown, found = treat_invisible(text, "show")
    assert found == count
    assert shown.count("[U+") == count
