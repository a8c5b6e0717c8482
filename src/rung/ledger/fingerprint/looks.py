"""Characters as the ASCII ones that a reader takes them for, one for one: what typed literals are read in.

Unlike the fold, which is for comparing, this keeps case and punctuation: an address is known by its dots and slashes.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping

from .fold import beyond_ascii, spelled_letter

_INVISIBLE = re.compile(
    "[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f"
    "\u3164\ufe00-\ufe0f\ufeff\uffa0\U000e0000-\U000e01ef]"
)
_MARKS = {"\u3002": ".", "\uff61": ".", "\u2044": "/", "\u2215": "/", "\u29f8": "/", "\u2236": ":", "\ua789": ":"}
_TELLING = frozenset("@.:/-_ ?=&+")
"""Punctuation that tells what a literal is; quotation marks and brackets stay what they are."""


class _Looks(dict[str, str]):
    """Character → one ASCII character, nothing where it is not seen, or itself; filled as characters are met."""

    def __missing__(self, char: str) -> str:
        found = self[char] = _look(char)
        return found


_LOOKS = _Looks()


def _look(char: str) -> str:
    kind = unicodedata.category(char)
    if _INVISIBLE.match(char) or kind in ("Mn", "Me"):
        return ""
    if kind == "Zs":
        return " "
    if kind == "Pd":
        return "-"
    plain = _MARKS.get(char) or unicodedata.normalize("NFKC", char)
    if len(plain) == 1 and not plain.isascii():
        plain = spelled_letter(plain)
    if len(plain) == 1 and not plain.isascii():
        # An accent is a mark that was put on a letter.
        first, *rest = list(unicodedata.normalize("NFKD", plain))
        plain = first if all(unicodedata.category(mark) == "Mn" for mark in rest) else plain
    is_plain = len(plain) == 1 and plain.isascii() and (plain.isalnum() or plain in _TELLING)
    return plain if is_plain else char


def tells(char: str, look: str) -> bool:
    """Whether what a character looks like may tell where a literal is; a dash, a space and an accent do not."""
    return bool(look) and look not in "- " and not unicodedata.normalize("NFD", char).startswith(look)


def looks_of(text: str) -> dict[str, str]:
    """What those characters of a text look like that look like others."""
    return {char: seen for char in beyond_ascii(text) if (seen := _LOOKS[char]) != char}


def replaced(text: str, looks: Mapping[str, str]) -> str:
    """The text as it looks, as long as it was: what is not seen stays."""
    for char, seen in looks.items():
        if seen:
            text = text.replace(char, seen)
    return text


def unseen(text: str, looks: Mapping[str, str]) -> list[tuple[int, int, str]]:
    """The edits that take out what is not seen."""
    gone = "".join(char for char, seen in looks.items() if not seen)
    return [(found.start(), found.end(), "") for found in re.finditer(f"[{re.escape(gone)}]+", text)] if gone else []
