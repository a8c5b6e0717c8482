"""Where many texts may have literals: a superset, found in a few passes over all of them.

What is found are pieces of the texts, each with what is to be looked for in it. A long text has something of each kind
somewhere, and to look for all of it everywhere would cost more than the index.
"""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from typing import Literal as OneOf

import numpy as np
from numpy.typing import NDArray

from .addresses import BRACKETED
from .joint import Joint, long_runs
from .numbers import GAP, NUMBER_DIGITS

Sign = OneOf["url", "email", "iban", "number", "hex", "token", "spelled"]
"""What a text may have: literals of a kind, or addresses that are written to be read (`host[.]com`)."""
ALL_SIGNS: frozenset[Sign] = frozenset(("url", "email", "iban", "number", "hex", "token", "spelled"))

HEX_DIGITS = 16
TOKEN_LENGTH = 24

_PIECE = 2048
# The sign of a literal lies in a piece; so much of it may stand before and after that.
_BEFORE, _AFTER = 256, 512
_DIGIT, _HEXISH, _WORD, _LETTER, _OPEN, _IN_BRACKETS, _D, _T = (1 << i for i in range(8))


def _marks() -> bytes:
    table = bytearray(256)
    for bit, chars in (
        (_DIGIT, string.digits),
        (_HEXISH, string.hexdigits + " -:._"),
        (_WORD, string.ascii_letters + string.digits + "+/_-"),
        (_LETTER, string.ascii_letters),
        (_OPEN, "[({<"),
        (_IN_BRACKETS, "@.:aAdD \t"),
        (_D, "dD"),
        (_T, "tT"),
    ):
        for char in chars:
            table[ord(char)] |= bit
    return bytes(table)


_MARKS = _marks()
_COLON = ord(":")


def pieces(joint: Joint) -> Iterator[tuple[int, str, set[Sign]]]:
    """Index of a text, a piece of it and the signs that it has."""
    found: dict[tuple[int, int], set[Sign]] = {}
    ends = np.array(joint.ends, dtype=np.int64)
    starts = np.concatenate(([1], ends[:-1] + 1))

    def note(places: Sequence[int] | NDArray[np.int64], *signs: Sign) -> None:
        if len(places):
            at = np.asarray(places, dtype=np.int64)
            owners = np.searchsorted(ends, at, side="right")
            keys = np.unique(owners << 32 | np.maximum(at - starts[owners], 0) // _PIECE)
            for key in keys.tolist():
                found.setdefault((key >> 32, key & 0xFFFFFFFF), set()).update(signs)

    data = joint.looks
    marks = np.frombuffer(data.translate(_MARKS), dtype=np.uint8)
    slashes = _all(data, b"//")
    note([at for at in slashes if data[at - 1] == _COLON], "url")
    note([at for at in slashes if data[at - 2 : at] == b": "], "url", "spelled")
    note(_all(data, b"www."), "url")
    note(_all(data, b"@"), "email")
    brackets = np.flatnonzero((((marks[:-1] & _OPEN) << 1) & marks[1:]).view(bool))
    dots = np.flatnonzero((((marks[:-2] & _D) << 1) & marks[2:]).view(bool))
    spelled = [at for at in brackets.tolist() if BRACKETED.match(data, at)]
    spelled += [at for at in dots.tolist() if data[at - 1 : at + 4].lower() == b" dot "]
    note(spelled, "url", "email", "spelled")
    digits = np.flatnonzero((marks & _DIGIT).view(bool))
    note(_dense(digits), "number", "iban")
    note(_after_letters(marks, digits), "iban")
    note(_along(long_runs(np.not_equal(marks & _HEXISH, 0), HEX_DIGITS)), "hex")
    note(_along(long_runs(np.not_equal(marks & _WORD, 0), TOKEN_LENGTH)), "token")
    for index in joint.unseen:
        for piece in range(-(-len(joint.texts[index]) // _PIECE)):
            found[index, piece] = set(ALL_SIGNS)
    for (index, piece), has in found.items():
        start = piece * _PIECE
        yield index, joint.texts[index][max(start - _BEFORE, 0) : start + _PIECE + _AFTER], has


def _all(data: bytes, wanted: bytes) -> list[int]:
    found: list[int] = []
    at = data.find(wanted)
    while at >= 0:
        found.append(at)
        at = data.find(wanted, at + 1)
    return found


def _along(runs: Sequence[tuple[int, int]]) -> list[int]:
    """A place in each piece that a run reaches."""
    return [at for start, end in runs for at in (*range(start, end, _PIECE), end - 1)]


def _dense(digits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Digits that are followed by others close enough together for a number."""
    far = np.concatenate(([0], np.cumsum(np.diff(digits) > GAP + 1)))
    last = NUMBER_DIGITS - 1
    found: NDArray[np.int64] = digits[:-last][far[last:] == far[:-last]]
    return found


def _after_letters(marks: NDArray[np.uint8], digits: NDArray[np.int64]) -> NDArray[np.int64]:
    """Places of two digits after two letters."""
    at = digits[(digits > 1) & (digits + 1 < len(marks))]
    is_after = (marks[at - 1] & marks[at - 2] & _LETTER).astype(bool) & (marks[at + 1] & _DIGIT).astype(bool)
    found: NDArray[np.int64] = at[is_after]
    return found
