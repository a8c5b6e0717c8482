"""Account and telephone numbers: digits that name something, however they are grouped.

A number is known by nine of its digits in a row. Of an untrusted text those that begin with a group of digits are kept,
and the last ones: a country code, a trunk prefix, check digits or another number before it do not change them. A
protected text is looked through at every digit.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

NUMBER_DIGITS = 9
GAP = 4
"""So many characters that are neither letters nor digits may stand between two digits of one number."""

_STRETCH = re.compile(rf"[0-9](?:[\W_]{{0,{GAP}}}[0-9]){{{NUMBER_DIGITS - 1},}}")
_GROUP = re.compile("[0-9]+")
_BYTE = r"(?:25[0-5]|2[0-4][0-9]|1?[0-9]?[0-9])"
_DAY, _MONTH = r"(?:0?[1-9]|[12][0-9]|3[01])", r"(?:0?[1-9]|1[0-2])"
# Dates, times and addresses of machines are everybody's.
_EVERYDAY = re.compile(
    r"(?<![0-9])(?:"
    rf"(?:19|20)[0-9]{{2}}([-./]){_MONTH}\1{_DAY}"
    rf"|{_DAY}([-./]){_DAY}\2(?:19|20)[0-9]{{2}}"
    rf"|{_DAY}([./]){_DAY}\3[0-9]{{2}}"
    r"|(?:19|20)[0-9]{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])(?:[0-9]{4}(?:[0-9]{2})?)?"
    r"|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,][0-9]{1,9})?)?"
    rf"|{_BYTE}(?:\.{_BYTE}){{3}}"
    r")(?![0-9])"
)
_VERSION = re.compile(r"(?<![+0-9.])[0-9]{1,4}(?:\.[0-9]{1,5}){2,4}(?![0-9])")
_YEAR = re.compile("(?:19|20)[0-9]{2}")
_LONG_ROW = 40
# Pi, e, the root of 2, limits of integers, the time in every manual about tokens.
_CONSTANTS = (
    "31415926535897932384626433832795",
    "27182818284590452353602874713526",
    "14142135623730950488016887242097",
    "2147483647",
    "2147483648",
    "4294967295",
    "4294967296",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "9007199254740991",
    "1516239022",
)
_LEAST_TELLING = 5
_COUNTER_DIGITS = 6


@dataclass(frozen=True, slots=True)
class Number:
    """Digits that belong together, where they stand, and those nine of them by which they are known."""

    digits: str
    span: tuple[int, int]
    grams: tuple[str, ...]


def numbers(text: str, start: int = 0, end: int | None = None) -> Iterator[Number]:
    """The numbers of a text that name something: no dates, rows of years, versions, round or counted numbers."""
    for stretch in _STRETCH.finditer(text, start, len(text) if end is None else end):
        for groups in _parts(text, *stretch.span()):
            digits = "".join(text[a:b] for a, b in groups)
            grams = grams_of(digits, [b - a for a, b in groups])
            if grams:
                yield Number(digits, (groups[0][0], groups[-1][1]), grams)


def digit_runs(text: str) -> Iterator[tuple[str, list[int]]]:
    """All digits that may be one number, and the place of each: how a protected text is looked through."""
    for stretch in _STRETCH.finditer(text):
        places = [at for at in range(*stretch.span()) if text[at] in "0123456789"]
        yield "".join(text[at] for at in places), places


def _parts(text: str, start: int, end: int) -> Iterator[list[tuple[int, int]]]:
    """The stretch's groups of digits, cut where they do not belong together."""
    groups = [found.span() for found in _GROUP.finditer(text, start, end)]
    # Digits that are stuck to letters are part of a name, unless they are a number by themselves.
    if text[start - 1 : start].isalpha() and groups[0][1] - start < NUMBER_DIGITS:
        groups = groups[1:]
    if groups and text[end : end + 1].isalpha() and end - groups[-1][0] < NUMBER_DIGITS:
        groups = groups[:-1]
    taken = [found.span() for found in _EVERYDAY.finditer(text, start, end)]
    taken += [found.span() for found in _VERSION.finditer(text, start, end) if min(map(len, found[0].split("."))) == 1]
    taken.sort()
    part: list[tuple[int, int]] = []
    at = 0
    for i, group in enumerate(groups):
        while at < len(taken) and taken[at][1] <= group[0]:
            at += 1
        is_taken = at < len(taken) and taken[at][0] < group[1]
        if is_taken or _counts_on(text, groups, i):
            yield from _enough(part)
            part = [] if is_taken else [group]
        else:
            part.append(group)
    yield from _enough(part)


def _enough(part: list[tuple[int, int]]) -> Iterator[list[tuple[int, int]]]:
    if sum(b - a for a, b in part) >= NUMBER_DIGITS:
        yield part


def _counts_on(text: str, groups: list[tuple[int, int]], i: int) -> bool:
    """Whether a group goes on counting from the one before it: 11 after 10, 30 after 10 and 20, 2027 after 2026."""
    if not i or max(b - a for a, b in groups[i - 1 : i + 1]) > _COUNTER_DIGITS:
        return False
    last, this = (text[slice(*group)] for group in groups[i - 1 : i + 1])
    step = int(this) - int(last)
    if abs(step) == 1 or (_YEAR.fullmatch(last) and _YEAR.fullmatch(this) and abs(step) <= 10):
        return True
    return any(
        first >= 0 and first + 2 < len(groups) and _is_progression([text[slice(*g)] for g in groups[first : first + 3]])
        for first in (i - 2, i - 1)
    )


def _is_progression(said: list[str]) -> bool:
    if max(map(len, said)) > _COUNTER_DIGITS:
        return False
    first, second, third = map(int, said)
    return second - first == third - second


def grams_of(digits: str, sizes: list[int]) -> tuple[str, ...]:
    """The nine digits by which a number is known, of groups of these sizes."""
    found: dict[str, None] = {}
    at, least = 0, 4 if len(digits) > _LONG_ROW else 1
    for size in sizes:
        if size >= least and at + NUMBER_DIGITS <= len(digits):
            found[digits[at : at + NUMBER_DIGITS]] = None
        at += size
    found[digits[-NUMBER_DIGITS:]] = None
    return tuple(gram for gram in found if is_telling(gram))


def is_telling(gram: str) -> bool:
    """Whether nine digits name something: enough of them are neither repeated nor counted up or down."""
    if len(set(gram)) <= 2 or any(gram in known for known in _CONSTANTS):
        return False
    return telling(gram) >= _LEAST_TELLING


def telling(digits: str, base: int = 10) -> int:
    """How many digits are neither repeated nor counted up or down, of four in a row and more."""
    steps = [(int(b, base) - int(a, base)) % base for a, b in pairwise(digits)]
    count, at = len(digits), 0
    while at < len(steps):
        end = at
        while end < len(steps) and steps[end] == steps[at]:
            end += 1
        if steps[at] in (0, 1, base - 1) and end - at >= 3:
            count -= end - at
        at = end
    return count
