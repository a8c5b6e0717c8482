"""Characters that read like an angle bracket, a slash, or nothing at all.

Sources: Unicode Technical Standard 39 (confusables of `<`), the compatibility decompositions of the Unicode
Character Database, and its `Default_Ignorable_Code_Point` property.
"""

from __future__ import annotations

LESS_THAN = (
    "<"
    "\uff1c"  # fullwidth less-than sign
    "\ufe64"  # small less-than sign
    "\u2039"  # single left-pointing angle quotation mark
    "\u2329"  # left-pointing angle bracket
    "\u3008"  # left angle bracket
    "\u27e8"  # mathematical left angle bracket
    "\u276c\u276e\u2770"  # ornamental angle brackets
    "\u29fc"  # left-pointing curved angle bracket
    "\u02c2"  # modifier letter left arrowhead
    "\u227a"  # precedes
    "\u1438"  # Canadian syllabics pa
    "\u16b2"  # runic letter kauna
    "\U0001d236"  # Greek instrumental notation symbol 40
)
"""What may open a tag."""

SLASHES = "/\\\\\u2044\u2215\u2571\u27cb\u29f8\uff0f\uff3c\ufe68"
"""Slashes of both kinds, for a character class."""

IGNORABLE = (
    "\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f"
    "\u202a-\u202e\u2060-\u206f\u2800\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\uffff\ue000-\uf8ff"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""Characters without a shape of their own, for a character class."""

COMBINING = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
"""Marks that sit on the character before, for a character class."""

GAP = rf"[\s{SLASHES}{IGNORABLE}{COMBINING}]*"
"""Whatever may stand between the bracket of a tag and its name and still read as that tag."""

# Letters of scripts that nobody reads as a Latin name: Hebrew to Tibetan, Hangul, Khmer, kana and ideographs.
_OTHER_SCRIPTS = "\u0590-\u0fff\u1100-\u12ff\u1780-\u17ff\u2e80-\ua48f\uac00-\ud7ff\uf900-\ufaff\U00020000-\U0003ffff"

NAME_START = rf"(?:(?![{_OTHER_SCRIPTS}])[^\W\d_]|[!?%|\uff5c\u2460-\u24ff\U0001f100-\U0001f1ff])"
"""What a tag's name, a declaration, a comment or a control token can begin with."""
