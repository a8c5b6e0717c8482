"""Characters that a reader does not see and a model does: tag characters, zero-width and bidi controls.

What has a use is left alone: flag emoji spelled with tag characters, the joiner inside an emoji or between
letters of a script that joins, one variation selector after the character it varies.
"""

from __future__ import annotations

import re
from typing import Literal

Invisible = Literal["keep", "strip", "show"]

# Emoji bases, coarse on purpose: the blocks of Unicode Technical Standard 51 that hold pictographs.
_PICTURE = (
    "\u00a9\u00ae\u203c\u2049\u2122\u2139\u2190-\u21ff\u2300-\u23ff\u24c2\u25a0-\u27bf\u2900-\u297f\u2b00-\u2bff"
    "\u3030\u303d\u3297\u3299\U0001f000-\U0001faff"
)
# Scripts in which U+200C and U+200D change the shape of letters (Unicode Core Specification, 9.2 and 12).
_JOINING = "\u0600-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u18af\ua840-\ua87f\U00011000-\U000118ff"
_HIDDEN = (
    "\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff" + "\ufe00-\ufe0f"
)
_PRESENT = re.compile(f"[{_HIDDEN}]")
_PATTERN = re.compile(
    # A flag: black flag, tag letters or digits, cancel tag (UTS 51, emoji tag sequences).
    "(?P<flag>\U0001f3f4[\U000e0030-\U000e0039\U000e0061-\U000e007a]{2,8}\U000e007f)"
    f"|(?P<joined>(?<=[{_PICTURE}\ufe0f])\u200d(?=[{_PICTURE}])"
    f"|(?<=[{_JOINING}])[\u200c\u200d](?=[{_JOINING}])|(?<=[{_JOINING}])\u200d)"
    # Standard selectors vary symbols and letters; the supplementary ones vary ideographs only.
    f"|(?P<varied>(?<=[^\\s{_HIDDEN}])[\ufe00-\ufe0f]"
    "|(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff])[\U000e0100-\U000e01ef])"
    f"|(?P<hidden>[{_HIDDEN}])"
)


def treat_invisible(text: str, mode: Invisible) -> tuple[str, int]:
    """The text under a rule for invisible characters, and how many it holds.

    Args:
        text: any text.
        mode: `keep` changes nothing, `strip` removes them, `show` writes each as `[U+200B]`. Only `strip`
            and `show` change the text; the count is the same for all three.
    """
    if text.isascii() or _PRESENT.search(text) is None:
        return text, 0
    count = 0

    def replace(found: re.Match[str]) -> str:
        nonlocal count
        hidden = found["hidden"]
        if hidden is None:
            return found[0]
        count += 1
        if mode == "keep":
            return hidden
        return "" if mode == "strip" else f"[U+{ord(hidden):04X}]"

    return _PATTERN.sub(replace, text), count
