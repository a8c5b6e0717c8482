"""The longest beginning or end of a text that fits a limit, at work bounded by the limit."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Literal

from rung.errors import InputError
from rung.tokens.blocks import BlockCounter, joints
from rung.tokens.protocol import Tokenizer

Side = Literal["head", "tail"]

_WINDOW = 2_048
_EXHAUSTIVE = 64


def grapheme_boundary(text: str, place: int) -> bool:
    """Whether `text` may be cut before index `place` without splitting what a reader sees as one character.

    Keeps together: CR LF, surrogate pairs, marks with their base, ZWJ sequences, variation selectors, emoji
    modifiers and tags, regional indicator pairs, and conjoining Hangul. As in Unicode UAX #29, but behind a
    ZWJ it cuts only before white space and ASCII, and it asks no table of emoji.
    """
    if place <= 0 or place >= len(text):
        return True
    left, right = text[place - 1], text[place]
    if right < "\u0300" and left < "\u0300":
        return not (left == "\r" and right == "\n")
    if left in "\r\n":
        return True
    if left == "\u200d":
        return right < "\u00a0" or right.isspace()
    if _extends(right):
        return False
    if "\ud800" <= left <= "\udbff" and "\udc00" <= right <= "\udfff":
        return False
    if _regional(right) and _regional(left):
        start = place
        while start > 0 and _regional(text[start - 1]):
            start -= 1
        return (place - start) % 2 == 0
    return not _hangul_joins(left, right)


def _extends(char: str) -> bool:
    return (
        unicodedata.category(char)[0] == "M"
        or char in "\u200c\u200d\uff9e\uff9f"
        or "\U0001f3fb" <= char <= "\U0001f3ff"
        or "\U000e0020" <= char <= "\U000e007f"
    )


def _regional(char: str) -> bool:
    return "\U0001f1e6" <= char <= "\U0001f1ff"


def _hangul_joins(left: str, right: str) -> bool:
    """Rules GB6 to GB8 of UAX #29 for conjoining jamo."""
    if "\u1100" <= left <= "\u115f":
        return "\u1100" <= right <= "\u11a7" or "\uac00" <= right <= "\ud7a3"
    vowel = "\u1160" <= left <= "\u11a7" or ("\uac00" <= left <= "\ud7a3" and (ord(left) - 0xAC00) % 28 == 0)
    if vowel:
        return "\u1160" <= right <= "\u11ff"
    return ("\u11a8" <= left <= "\u11ff" or "\uac00" <= left <= "\ud7a3") and "\u11a8" <= right <= "\u11ff"


def take_tokens(tokenizer: Tokenizer, text: str, limit: int, *, side: Side = "head") -> str:
    """The longest head (or tail) of `text` that counts at most `limit` tokens, cut between graphemes.

    Where the tokenizer is additive, whole blocks are summed up to the limit and only the last block is
    searched: the work is bounded by the limit and by the longest stretch without a safe joint. Inside such a
    stretch of more than 64 characters, and for a tokenizer without joints, counts of growing prefixes are
    taken as rising: the result never exceeds the limit, and one more grapheme would.

    Raises `InputError` for a negative limit or an unknown side.
    """
    if limit < 0:
        raise InputError(f"`limit` is {limit} tokens (give 0 or more)", field="limit")
    if side not in ("head", "tail"):
        raise InputError("`side` is `head` or `tail`", field="side")
    if not text or not limit:
        return ""
    if isinstance(tokenizer, BlockCounter):  # parts that are tried out are no blocks to remember
        tokenizer = tokenizer.tokenizer
    pattern = joints(tokenizer)
    end = _Forward(text) if side == "head" else _Backward(text)
    taken, room = 0, limit
    size = _WINDOW
    while taken < len(text) and room:
        ahead = len(text) if pattern is None else end.joint(pattern, taken, size)
        if ahead - taken > max(4 * _WINDOW, 8 * room):  # no joint near: search without counting it all
            if pattern is not None and size > 1:
                size = 1
                continue
            reached = _search(tokenizer, end, taken, ahead, room)
            if reached < ahead:
                return end.part(0, reached)
            tokens = tokenizer.count(end.part(taken, ahead))
        else:
            tokens = tokenizer.count(end.part(taken, ahead))
            if tokens > room and (pattern is None or size == 1):
                return end.part(0, _inside(tokenizer, end, taken, ahead, room))
        if tokens <= room:
            taken, room = ahead, room - tokens
        else:
            size = max(1, size // 16)
    return end.part(0, taken)


class _Forward:
    """Distances measured from the start of the text."""

    def __init__(self, text: str) -> None:
        self.text = text

    def part(self, near: int, far: int) -> str:
        return self.text[near:far]

    def boundary(self, distance: int) -> bool:
        return grapheme_boundary(self.text, distance)

    def joint(self, pattern: re.Pattern[str], near: int, size: int) -> int:
        """The first joint at least `size` characters on, or the end of the text."""
        match = pattern.search(self.text, min(near + size, len(self.text)))
        return match.start() if match else len(self.text)


class _Backward(_Forward):
    """Distances measured from the end of the text."""

    def part(self, near: int, far: int) -> str:
        return self.text[len(self.text) - far : len(self.text) - near]

    def boundary(self, distance: int) -> bool:
        return grapheme_boundary(self.text, len(self.text) - distance)

    def joint(self, pattern: re.Pattern[str], near: int, size: int) -> int:
        stop = len(self.text) - near - size  # the joint lies at or before this place
        width = _EXHAUSTIVE
        while stop > 0:
            start = max(1, stop - width)
            found = [match.start() for match in pattern.finditer(self.text, start, stop + 1)]
            if found:
                return len(self.text) - found[-1]
            if start == 1:
                break
            stop, width = start - 1, width * 2
        return len(self.text)


def _inside(tokenizer: Tokenizer, end: _Forward, near: int, far: int, room: int) -> int:
    """The largest distance in [near, far] whose part from `near` on counts at most `room` tokens."""
    if far - near > _EXHAUSTIVE:
        return _search(tokenizer, end, near, far, room)
    places = (place for place in range(far, near, -1) if end.boundary(place))
    return next((place for place in places if tokenizer.count(end.part(near, place)) <= room), near)


def _search(tokenizer: Tokenizer, end: _Forward, near: int, far: int, room: int) -> int:
    """The same for a long part: by interpolation, with counts of growing parts taken as rising."""

    def count(distance: int) -> int:
        return tokenizer.count(end.part(near, distance))

    low, low_tokens = near, 0
    high = high_tokens = 0
    step = max(_EXHAUSTIVE, 4 * room)
    while not high:  # grow from the limit's own size, so that the far text is never touched
        place = far if low + step >= far else _down(end, low + step, low)
        tokens = count(place) if place > low else 0
        if tokens > room:
            high, high_tokens = place, tokens
        elif place == far:
            return far
        else:
            low, low_tokens, step = place, tokens, 2 * step
    halve = False
    while high - low > 1:
        share = 0.5 if halve else (room - low_tokens + 0.5) / max(1, high_tokens - low_tokens)
        place = _down(end, min(high - 1, max(low + 1, low + int(share * (high - low)))), low)
        if place == low:
            place = next(_up(end, low, high - 1), high)
            if place == high:
                break
        tokens, before = count(place), high - low
        if tokens <= room:
            low, low_tokens = place, tokens
        else:
            high, high_tokens = place, tokens
        halve = not halve and high - low > before // 2
    for place in _up(end, low, far):
        if count(place) > room:
            break
        low = place
    return low


def _down(end: _Forward, place: int, floor: int) -> int:
    while place > floor and not end.boundary(place):
        place -= 1
    return place


def _up(end: _Forward, place: int, stop: int) -> Iterator[int]:
    for later in range(place + 1, stop + 1):
        if end.boundary(later):
            yield later
