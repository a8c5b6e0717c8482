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
from functools import cache
from typing import NamedTuple

from rung.assembly.controls import BRACKET_TOKEN, BRACKETS, LINE
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

# Each pattern begins with a character class, for which `re` skips ahead. Where the only bracket is `<`, as
# nearly always, the class is a small one: that is several times faster.
_REFERENCE = r"(?i:(?:amp;?)*(?:lt|lang|lsaquo|#))"
_QUOTED = rf"(?:(?<=&)(?={_REFERENCE})|(?<!&)(?={GAP}{NAME_START}))"
_QUOTED_ASCII = re.compile(rf"[&<]{_QUOTED}")
_QUOTED_ANY = re.compile(rf"[&{LESS_THAN}]{_QUOTED}")
_RARE = LESS_THAN.replace("<", "")
_TOKEN = re.compile(rf"[{BRACKETS}](?={BRACKET_TOKEN})")
_LINE = re.compile(LINE)
_ESCAPED = re.compile(rf"&amp;(?={_REFERENCE})|&lt;|&#x([0-9A-F]{{2,6}});")

_ENTITY = r"(?:lt|#x[0-9A-F]{2,6});"


class _Shield(NamedTuple):
    common: re.Pattern[str]
    every: re.Pattern[str]
    undo: re.Pattern[str]


@cache
def _shield(ascii_only: bool) -> _Shield:
    """The patterns of `shield`, made when they are first needed: for text beyond ASCII they are large."""
    # Between two letters of a reserved name anything without a shape may stand, and any joint for the hyphen.
    # The class stands outside `(?i:)`, under which the compiler would look at each character of its ranges.
    unseen = r"[\x00-\x08\x0e-\x1f\x7f]*" if ascii_only else rf"(?-i:[{IGNORABLE}{COMBINING}])*"
    joint = r"[\s_\-]*" if ascii_only else r"[\s_\-\u2010-\u2015\u2212]*"
    names = "|".join(
        unseen.join(joint if letter == "-" else letter for letter in name)
        for name in sorted(RESERVED_TAGS, key=len, reverse=True)
    )
    gap = r"[\s/\\\x00-\x08\x0e-\x1f\x7f]*" if ascii_only else GAP
    tag = rf"{gap}(?i:{names})"
    found = rf"(?:(?<!&)(?={tag})|(?<=&)(?=(?:amp;)*{_ENTITY}{tag}))"
    return _Shield(
        common=re.compile(rf"[&<]{found}"),
        every=re.compile(rf"[&{LESS_THAN}]{found}"),
        undo=re.compile(rf"&amp;(?=(?:amp;)*{_ENTITY}{tag})|&lt;(?={tag})|&#x([0-9A-F]{{2,6}});(?={tag})"),
    )


def reference(character: str) -> str:
    """The character reference that stands for one character."""
    if character == "<":
        return "&lt;"
    return "&amp;" if character == "&" else f"&#x{ord(character):X};"


def _replace(found: re.Match[str]) -> str:
    return reference(found[0])


def _change(text: str, common: re.Pattern[str], every: re.Pattern[str]) -> str:
    """The text with each find replaced by its reference, by the cheapest pattern that finds all."""
    if not text.isascii():
        for bracket in _RARE:
            if bracket in text:
                return every.sub(_replace, text)
    return common.sub(_replace, text) if "<" in text or "&" in text else text


def _replace_line(found: re.Match[str]) -> str:
    sign = found["colon"] or found["hash"]
    return found[0][: -len(sign)] + reference(sign)


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
    text = _change(text, _QUOTED_ASCII, _QUOTED_ANY)
    if chat:
        if "[" in text or "\uff3b" in text:
            text = _TOKEN.sub(_replace, text)
        text = _LINE.sub(_replace_line, "\n" + text)[1:]
    return text


def unescape(text: str) -> str:
    """The text that `escape` was given, with either setting of `chat`."""
    return _ESCAPED.sub(_restore, text) if "&" in text else text


def shield(text: str) -> str:
    """The text with the library's own tags kept from being spelled, and every other byte as it was."""
    if "<" not in text and "&" not in text and (text.isascii() or not any(bracket in text for bracket in _RARE)):
        return text
    patterns = _shield(text.isascii())
    return _change(text, patterns.common, patterns.every)


def unshield(text: str) -> str:
    """The text that `shield` was given."""
    return _shield(text.isascii()).undo.sub(_restore, text) if "&" in text else text


_ATTRIBUTE = re.compile(rf"[&>\"{LESS_THAN}\x00-\x1f\x7f-\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff]")
_ATTRIBUTE_ESCAPED = re.compile(r"&(?:(amp|lt|gt|quot)|#x([0-9A-F]{1,6}));")
_NAMED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_NAMED_BACK = {"amp": "&", "lt": "<", "gt": ">", "quot": '"'}


def escape_attribute(value: str, *, chat: bool = False) -> str:
    """The value as it stands between double quotes in an opening tag: on one line, without brackets."""
    out = _ATTRIBUTE.sub(lambda found: _NAMED.get(found[0]) or f"&#x{ord(found[0]):X};", value)
    if chat:
        out = _TOKEN.sub(_replace, out)
    return out


def unescape_attribute(value: str) -> str:
    """The value that `escape_attribute` was given."""
    return _ATTRIBUTE_ESCAPED.sub(lambda found: _NAMED_BACK[found[1]] if found[1] else chr(int(found[2], 16)), value)
