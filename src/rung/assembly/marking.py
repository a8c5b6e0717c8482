"""Data-marking: a mark in place of each space of quoted text, so that a model can tell it from the rest.

After Hines and others, *Defending Against Indirect Prompt Injection Attacks With Spotlighting* (2024). The
mark also begins each line. It goes in after escaping, and a text's own mark characters become character
references, so that the mark can be taken out again.
"""

from __future__ import annotations

import re
from functools import lru_cache

from rung.assembly.escape import reference
from rung.errors import InputError

_PLAIN = "^~_+=*@$"


@lru_cache(maxsize=64)
def _own(mark: str) -> re.Pattern[str]:
    bad = not 0 < len(mark) <= 8 or any(
        c not in _PLAIN
        and (c.isascii() or c.isalnum() or c.isspace() or not ("\ue000" <= c <= "\uf8ff" or c.isprintable()))
        for c in mark
    )
    if bad:
        raise InputError(
            f"a mark is 1 to 8 characters out of `{_PLAIN}`, private use or non-ASCII symbols (try `^`)",
            field="mark",
        )
    return re.compile("[" + "".join(re.escape(c) for c in dict.fromkeys(mark)) + "]")


def apply_mark(escaped: str, mark: str) -> str:
    """The escaped text with the mark for each space and at the start of each line.

    Raises:
        InputError: the mark holds white space, a letter, a digit or a character that tags are made of.
    """
    text = _own(mark).sub(lambda found: reference(found[0]), escaped)
    return mark + text.replace(" ", mark).replace("\n", "\n" + mark)


def remove_mark(marked: str, mark: str) -> str:
    """The escaped text that `apply_mark` was given, its own mark characters still as references."""
    if not marked.startswith(mark):
        return marked
    return marked[len(mark) :].replace("\n" + mark, "\n").replace(mark, " ")
