"""Frames: quoted data between an opening and a closing tag line, and the parser that reads them back.

    <evidence id="e1" source="kb" title="Returns">
    the text, escaped
    </evidence>

A frame begins with `<` and ends with `>` and a newline, so counts of tokens add up where two frames meet.
"""

from __future__ import annotations

import re
from functools import lru_cache

import msgspec

from rung.assembly.escape import escape, escape_attribute, unescape, unescape_attribute
from rung.assembly.invisible import Invisible, treat_invisible
from rung.assembly.marking import apply_mark, remove_mark
from rung.assembly.messages import Block

_TAG_NAME = re.compile(r"[a-z][a-z0-9_]{0,63}\Z")
_ATTR_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.]{0,63}\Z")
_OWN_ATTRS = frozenset({"id", "source", "marked"})
_PLACE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")
_FRAME = re.compile(
    r'^<([a-z][a-z0-9_-]*)((?: [A-Za-z_][A-Za-z0-9_.]*="[^"<>\n]*")*)>\n(.*?)\n</\1>\n',
    re.DOTALL | re.MULTILINE,
)
_ATTR = re.compile(r' ([A-Za-z_][A-Za-z0-9_.]*)="([^"]*)"')


class Frame(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One frame read back from rendered text: its tag, its attributes in order, and its original text."""

    tag: str
    attrs: tuple[tuple[str, str], ...]
    text: str


def tag_name(name: str) -> str:
    """The tag of a type: its name, or a safe form of what cannot name one."""
    if _TAG_NAME.match(name):
        return name
    safe = re.sub(r"[^a-z0-9_]", "_", name.lower())[:60]
    return safe if _TAG_NAME.match(safe) else f"x_{safe}"[:64] if safe else "data"


def attribute_name(name: str) -> str:
    """The name of an attribute: as given, or a safe form of what would not be one or would name ours."""
    if _ATTR_NAME.match(name) and name not in _OWN_ATTRS:
        return name
    return "x_" + re.sub(r"[^A-Za-z0-9_.]", "_", name)[:60]


def render_frame(block: Block, *, invisible: Invisible = "strip", chat: bool = False) -> str:
    """The block as a frame.

    Args:
        block: what is quoted; `label`, else `item_id`, is the `id` a reply can cite.
        invisible: what becomes of invisible characters in the text and the attributes.
        chat: neutralise chat-template control texts as well.

    Raises:
        InputError: the block's mark cannot be one.
    """
    # The same frames are shown turn after turn, and twice within one; the long ones are not worth the memory.
    return (_remembered if len(block.text) <= _REMEMBERED else _frame)(block, invisible, chat)


_REMEMBERED = 4_000


def _frame(block: Block, invisible: Invisible, chat: bool) -> str:
    tag = tag_name(block.type)
    parts = ["<", tag]
    named = block.label or block.item_id
    if named:
        parts += (' id="', _value(named, invisible, chat), '"')
    if block.source:
        parts += (' source="', _value(block.source, invisible, chat), '"')
    for name, value in block.attrs:
        parts += (" ", attribute_name(name), '="', _value(value, invisible, chat), '"')
    text, _ = treat_invisible(block.text, invisible)
    text = escape(text, chat=chat)
    if block.mark:
        text = apply_mark(text, block.mark)
        parts += (' marked="', escape_attribute(block.mark), '"')
    parts += (">\n", text, "\n</", tag, ">\n")
    return "".join(parts)


_remembered = lru_cache(maxsize=8_192)(_frame)


def _value(value: str, invisible: Invisible, chat: bool) -> str:
    return escape_attribute(treat_invisible(value, invisible)[0], chat=chat)


def parse_frames(rendered: str) -> tuple[Frame, ...]:
    """The frames of a rendered text, in order, each with its original text and attributes.

    The text is the original unless invisible characters were stripped or shown.
    """
    return tuple(_read(found) for found in _FRAME.finditer(rendered))


def _read(found: re.Match[str]) -> Frame:
    attrs = tuple((name, unescape_attribute(value)) for name, value in _ATTR.findall(found[2]))
    mark = next((value for name, value in attrs if name == "marked"), None)
    text = remove_mark(found[3], mark) if mark else found[3]
    return Frame(tag=found[1], attrs=attrs, text=unescape(text))


def fill_slots(text: str, slots: tuple[str, ...]) -> tuple[str | int, ...]:
    """An instruction's text cut at its slots: pieces of it, and the index of the slot that stands between.

    Each declared `{name}` is a place, once for every time that it occurs; every other brace is text. What
    stands in a slot is never looked at.
    """
    index = {name: i for i, name in enumerate(slots)}
    out: list[str | int] = []
    start = 0
    for found in _PLACE.finditer(text):
        slot = index.get(found[1])
        if slot is not None:
            out += (text[start : found.start()], slot)
            start = found.end()
    out.append(text[start:])
    return tuple(out)
