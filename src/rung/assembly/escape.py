"""Escaping: one rule says which characters of a text could begin a tag, and only those are changed.

A less-than sign, or a character that looks like one, becomes a character reference where a name could
follow it: where what comes next, after any white space, slashes and invisible characters, is a letter that
can be read as Latin, or one of `! ? % |`. So no text can open or close a tag, whatever its name, while
`a <= b`, `x << 2` and `<3` stay as they are. An ampersand that would read as such a reference becomes
`&amp;`, which makes the mapping one to one: `unescape(escape(x)) == x` for every text. Each function takes
time linear in its input.

`shield` is the narrower rule for text that stays literal: only the tags that the library itself puts into a
message are kept from being spelled.
"""

from __future__ import annotations

import re

from rung.assembly.controls import BRACKET_TOKEN, HEADING, SPEAKER
from rung.assembly.lookalikes import COMBINING, GAP, IGNORABLE, LESS_THAN, NAME_START

RESERVED_TAGS = (
    "operator-notice",
    "system-reminder",
    "chat-message",
    "chat-call",
    "chat-tools",
    "chat-tool",
    "chat-media",
    "chat-reply-schema",
)
"""Tags of the library's own. A context type's name holds no hyphen, so it never equals one."""

_REFERENCE = r"(?i:(?:amp;?)*(?:lt|lang|lsaquo|#))"
_OPENING = rf"[{LESS_THAN}](?={GAP}{NAME_START})|&(?={_REFERENCE})"
_QUOTED = re.compile(_OPENING)
_CHAT = re.compile(rf"{SPEAKER}|{HEADING}|{BRACKET_TOKEN}|{_OPENING}")
_ESCAPED = re.compile(rf"&amp;(?={_REFERENCE})|&lt;|&#x([0-9A-F]{{2,6}});")
_SUSPECT = re.compile(rf"[&{LESS_THAN}]")

# Between two letters of a reserved name anything without a shape may stand, and any joint for the hyphen.
_UNSEEN = rf"[{IGNORABLE}{COMBINING}]*"
_RESERVED = "|".join(
    _UNSEEN.join(r"[\s_\-\u2010-\u2015\u2212]*" if letter == "-" else letter for letter in name)
    for name in sorted(RESERVED_TAGS, key=len, reverse=True)
)
_TAG = rf"{GAP}(?i:{_RESERVED})"
_ENTITY = r"(?:lt|#x[0-9A-F]{2,6});"
_SHIELD = re.compile(rf"[{LESS_THAN}](?={_TAG})|&(?=(?:amp;)*{_ENTITY}{_TAG})")
_SHIELDED = re.compile(rf"&amp;(?=(?:amp;)*{_ENTITY}{_TAG})|&lt;(?={_TAG})|&#x([0-9A-F]{{2,6}});(?={_TAG})")


def reference(character: str) -> str:
    """The character reference that stands for one character."""
    if character == "<":
        return "&lt;"
    return "&amp;" if character == "&" else f"&#x{ord(character):X};"


def _replace(found: re.Match[str]) -> str:
    return reference(found[0])


def _replace_chat(found: re.Match[str]) -> str:
    if found["colon"]:
        return found["speaker"] + reference(found["colon"])
    if found["hash"]:
        return found["indent"] + reference(found["hash"])
    return reference(found[0])


def _restore(found: re.Match[str]) -> str:
    code = found[1]
    if code:
        number = int(code, 16)
        return chr(number) if number <= 0x10FFFF else found[0]
    return "&" if found[0] == "&amp;" else "<"


def escape(text: str, *, chat: bool = False) -> str:
    """The text with every character changed that could begin a tag or a reference to one.

    Args:
        text: any text.
        chat: also neutralise what chat templates give a meaning: bracketed control tokens, speaker names at
            the start of a line, instruction headings (`rung.assembly.controls`). For output that is one
            plain text.
    """
    if chat:
        return _CHAT.sub(_replace_chat, text)
    if text.isascii() and "<" not in text and "&" not in text:
        return text
    return _QUOTED.sub(_replace, text)


def unescape(text: str) -> str:
    """The text that `escape` was given, with either setting of `chat`."""
    return _ESCAPED.sub(_restore, text) if "&" in text else text


def shield(text: str) -> str:
    """The text with the library's own tags kept from being spelled, and every other byte as it was."""
    if text.isascii() and "<" not in text and "&" not in text:
        return text
    return _SHIELD.sub(_replace, text) if _SUSPECT.search(text) else text


def unshield(text: str) -> str:
    """The text that `shield` was given."""
    return _SHIELDED.sub(_restore, text) if "&" in text else text


_ATTRIBUTE = re.compile(rf"[&>\"{LESS_THAN}\x00-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]")
_ATTRIBUTE_ESCAPED = re.compile(r"&(?:(amp|lt|gt|quot)|#x([0-9A-F]{1,6}));")
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_NAMED_BACK = {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}


def escape_attribute(value: str, *, chat: bool = False) -> str:
    """The value as it stands between double quotes in an opening tag: on one line, without brackets."""
    out = _ATTRIBUTE.sub(lambda found: _NAMED.get(found[0]) or f"&#x{ord(found[0]):X};", value)
    if chat:
        out = re.sub(BRACKET_TOKEN, lambda found: f"&#x{ord(found[0]):X};", out)
    return out


def unescape_attribute(value: str) -> str:
    """The value that `escape_attribute` was given."""
    return _ATTRIBUTE_ESCAPED.sub(lambda found: _NAMED_BACK[found[1]] if found[1] else chr(int(found[2], 16)), value)
