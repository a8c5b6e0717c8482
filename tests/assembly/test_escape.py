"""No text can begin a tag, and every text comes back."""

from __future__ import annotations

import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.assembly.breakouts import BREAKOUTS

from rung.assembly.controls import CONTROLS
from rung.assembly.escape import (
    RESERVED_TAGS,
    escape,
    escape_attribute,
    shield,
    unescape,
    unescape_attribute,
    unshield,
)
from rung.assembly.lookalikes import LESS_THAN

PARTS = st.one_of(
    st.sampled_from(["<", "</", "\uff1c", "&", "&amp;", "&lt;", "&#x3C;", "&#xFF1C;", "amp;", "lt;", "#"]),
    st.sampled_from(["evidence", "operator-notice", "system-reminder", "chat-message", "Human", "INST", "a"]),
    st.sampled_from([">", "/", ":", "[", "]", "###", "\u200b", "Instruction", "\U000e0041", "x3C;", "AMP;"]),
    st.sampled_from([" ", "\n"]),
)
HOSTILE = st.lists(PARTS, max_size=24).map("".join) | st.text() | st.sampled_from(BREAKOUTS)


def test_the_corpus_is_large() -> None:
    assert len(set(BREAKOUTS)) >= 150


@pytest.mark.parametrize("chat", [False, True])
@settings(max_examples=250)
@given(text=HOSTILE)
def test_every_text_comes_back(text: str, chat: bool) -> None:
    assert unescape(escape(text, chat=chat)) == text


@settings(max_examples=250)
@given(text=HOSTILE)
def test_a_shielded_text_comes_back(text: str) -> None:
    assert unshield(shield(text)) == text


@given(text=HOSTILE)
def test_an_attribute_comes_back_and_stays_on_its_line(text: str) -> None:
    value = escape_attribute(text, chat=True)
    assert unescape_attribute(value) == text
    assert not set(value) & set(f'"<>\n\r{LESS_THAN}')
    assert len(value.splitlines()) <= 1


@settings(max_examples=200)
@given(text=HOSTILE)
def test_no_bracket_is_left_before_a_name(text: str) -> None:
    """Also for a reader that ignores white space, invisible characters, width and case."""
    seen = re.sub(r"[\s\u200b\u00ad\U000e0000-\U000e0fff]", "", escape(text))
    assert not re.search(rf"[{LESS_THAN}][/\\]*[A-Za-z!?|]", seen)


@pytest.mark.parametrize("text", BREAKOUTS)
def test_a_breakout_leaves_no_tag(text: str) -> None:
    assert not re.search(r"<\s*[/\\]?\s*[A-Za-z]", escape(text))
    assert unescape(escape(text)) == text


ORDINARY = [
    "a <= b and b >= c",
    "x << 2, y <- z, 3 < 4, i <3 u",
    "AT&T, R&D, a && b, &c",
    "if (a<0) { return; }",
    "Q: what? A: that.",
    "The user: was here (mid-line System: is text)",
    "see [1] and [INSTALL] and ### Notes",
    "“quoted” «mot» 〈書名〉",
    "日本語のテキスト",
    "",
]


@pytest.mark.parametrize("text", ORDINARY)
def test_ordinary_text_is_not_touched(text: str) -> None:
    assert escape(text) == text
    assert escape(text, chat=True) == text
    assert shield(text) == text


@pytest.mark.parametrize("control", CONTROLS, ids=lambda control: f"{control.family}:{control.text}")
@pytest.mark.parametrize("around", ["{}", "text\n{} more", "\n  {}"])
def test_a_control_text_is_neutralised_in_plain_output(control: object, around: str) -> None:
    text = around.format(control.text)  # type: ignore[attr-defined]
    out = escape(text, chat=True)
    assert control.text not in out  # type: ignore[attr-defined]
    assert unescape(out) == text


@pytest.mark.parametrize("tag", RESERVED_TAGS)
@pytest.mark.parametrize("form", ["<{}>", "</{}>", "< / {} >", "<{} id='1'>", "\uff1c{}>", "<\u200b{}>"])
def test_literal_text_cannot_spell_a_tag_of_ours(tag: str, form: str) -> None:
    for name in (tag, tag.upper(), tag.replace("-", "_"), tag.replace("-", "")):
        text = "before " + form.format(name) + " <div> & after"
        out = shield(text)
        assert "<" not in out.split("<div>")[0]
        assert "\uff1c" not in out
        assert out.endswith(" <div> & after")
        assert unshield(out) == text


HEAVY = [
    "<",
    "< ",
    "<" + " " * 3,
    "&amp;",
    "&",
    "amp;",
    "\n",
    "[",
    "[ ",
    "#",
    " ",
    "> ",
    "<s\u200b",
    "Human",
    "\u200b<",
]


@pytest.mark.parametrize("unit", HEAVY)
def test_time_is_linear(unit: str) -> None:
    """A text sixteen times as long takes about sixteen times as long, never 256 times."""

    def seconds(n: int) -> float:
        text = "&" + unit * (n // len(unit))
        best = 99.9
        for _ in range(4):
            start = time.process_time()
            unescape(escape(text, chat=True))
            unshield(shield(text))
            best = min(best, time.process_time() - start)
        return best

    assert seconds(64_000) < 80 * seconds(4_000) + 0.005
