"""Escapes and markup: what a reader, a browser or a parser would see instead of the characters that are
written."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator

from .fold import beyond_ascii
from .joint import Joint
from .layers import Edit, Layer

ESCAPE_ROUNDS = 2
"""How often escapes inside escapes are undone (`&amp;#105;`, `%2569`)."""

# The first character stands alone, so that the search for it is fast.
_ESCAPES = re.compile(
    r"[\\%&](?:"
    r"(?<=\\)(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|u\{[0-9A-Fa-f]{1,6}\}|U[0-9A-Fa-f]{8}|[0-7]{2,3}|[nrtbfav])"
    r"|(?<=%)[0-9A-Fa-f]{2}(?:%[0-9A-Fa-f]{2})*"
    r"|(?<=&)\#?[0-9A-Za-z]{1,32};?"
    r")"
)
_TAG_OR_TARGET = re.compile(r"<[A-Za-z/!?][^<>]*>|\]\([^()\s]*\)")
_LIST_NUMBER = re.compile(r"\n[ \t>]*[0-9]{1,4}[.)][ \t]")
_LIST_NUMBER_BYTES = re.compile(_LIST_NUMBER.pattern.encode())
_FIRST_LIST_NUMBER = re.compile(r"[ \t>]*[0-9]{1,4}[.)][ \t]")
_TAG_CHARACTERS = re.compile("[\U000e0020-\U000e007e]+")


def _unescape(found: str) -> str:
    head = found[0]
    if head == "&":
        return html.unescape(found)
    if head == "%":
        return bytes.fromhex(found.replace("%", "")).decode("utf-8", "replace")
    kind = found[1]
    if kind in "xuU":
        code = int(found[2:].strip("{}"), 16)
    elif kind in "01234567":
        code = int(found[1:], 8)
    else:
        return " "
    # A lone surrogate is no character; a pair of them only ever spells what is no letter of a common script.
    return "" if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)


def _edits(text: str) -> list[Edit]:
    return [(m.start(), m.end(), new) for m in _ESCAPES.finditer(text) if (new := _unescape(m[0])) != m[0]]


def unescaped(layer: Layer) -> Layer:
    """The layer with its escapes undone; the same object where there are none."""
    for _ in range(ESCAPE_ROUNDS):
        text = layer.text
        if not ("\\" in text or "&" in text or "%" in text):
            return layer
        edits = _edits(text)
        if not edits:
            return layer
        layer = layer.edited(edits, "escapes")
    return layer


def _has_markup(text: str) -> bool:
    return bool("<" in text or "](" in text or _FIRST_LIST_NUMBER.match(text) or _LIST_NUMBER.search(text))


def without_markup(layer: Layer) -> Layer:
    """The layer without tags, link targets and list numbers; the same object where there are none."""
    text = layer.text
    if not _has_markup(text):
        return layer
    first = _FIRST_LIST_NUMBER.match(text)
    found = [first] if first else []
    found += _LIST_NUMBER.finditer(text)
    if "<" in text or "](" in text:
        found += _TAG_OR_TARGET.finditer(text)
        found.sort(key=lambda m: m.start())
    edits: list[Edit] = []
    end = 0
    for m in found:
        if m.start() >= end:
            end = m.end()
            edits.append((m.start(), end, ""))
    return layer.edited(edits, "markup") if edits else layer


def may_differ(joint: Joint) -> set[int]:
    """Indices of the texts that may have something to undo, to strip or to spell out."""
    found = set(joint.matchers(_LIST_NUMBER_BYTES))
    for mark in (b"\\", b"&", b"%", b"<", b"]("):
        found.update(joint.holders(mark))
    found.update(joint.speakers(_TAG_CHARACTERS))
    return found


def _has_tag_characters(text: str) -> bool:
    return any(map(_TAG_CHARACTERS.match, beyond_ascii(text)))


def contextual(layer: Layer) -> Iterator[Layer]:
    """The layer as written, with escapes undone, without markup, and what its tag characters spell."""
    yield layer
    plain = unescaped(layer)
    if plain is not layer:
        yield plain
    stripped = without_markup(layer)
    bare = without_markup(plain if stripped is layer else unescaped(stripped))
    if bare is not layer and bare is not plain:
        yield bare
    if _has_tag_characters(layer.text):
        yield _tag_text(layer)


def _tag_text(layer: Layer) -> Layer:
    edits: list[Edit] = []
    at = 0
    for found in _TAG_CHARACTERS.finditer(layer.text):
        edits += (
            (at, found.start(), ""),
            *((i, i + 1, chr(ord(layer.text[i]) - 0xE0000)) for i in range(found.start(), found.end())),
        )
        at = found.end()
    edits.append((at, len(layer.text), ""))
    return layer.edited(edits, "tags")
