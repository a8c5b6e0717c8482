"""Shared runs between the views of two texts, verified character by character."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING
from typing import Literal as OneOf

import numpy as np

from .fold import codes
from .hashing import among, distinct, every_gram

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .hashing import Keys
    from .views import Normalised

NEVER = np.iinfo(np.int64).max
"""Stands for the document number from which on a character is held, where no earlier text holds it."""

_MOST_PLACES = 16
MOST_RUNS = 32
"""Runs reported for one pair of views; text that repeats itself would otherwise give one for each
repetition."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What a protected text shares with an untrusted document.

    `kind`: `run` (at least N characters), `short` (the whole of a shorter text, of either side) or `literal` (an
    address or number). `span` and `doc_span` are in the original texts, `length` in normalised characters (for a
    literal, of its value), `novel` is how many of them no earlier protected text held in a row, `view` and
    `doc_view` say how each text was read.
    """

    doc: int
    kind: OneOf["run", "short", "literal"]
    span: tuple[int, int]
    doc_span: tuple[int, int]
    length: int
    novel: int
    view: str
    doc_view: str


class Windows:
    """The windows of n characters of one view, by hash."""

    def __init__(self, view: Normalised, n: int) -> None:
        self.view, self.n = view, n
        self.data = codes(view.text)

    @cached_property
    def hashes(self) -> Keys:
        """The hash of the window at each offset."""
        return every_gram(self.data, self.n)

    @cached_property
    def distinct(self) -> Keys:
        """The hashes, sorted, each once."""
        return distinct(self.hashes)

    def found_in(self, other: Windows) -> NDArray[np.bool_]:
        """For each window whether the other view seems to hold it (by hash)."""
        # The other text is only looked through, never sorted: most of them share nothing.
        common = other.hashes[among(self.distinct, other.hashes)]
        return among(distinct(common), self.hashes)


def stretches(mask: NDArray[np.bool_]) -> list[tuple[int, int]]:
    """Maximal stretches of true values as (start, end)."""
    edges = np.flatnonzero(np.diff(np.concatenate(([False], mask, [False])).astype(np.int8)))
    return [(int(a), int(b)) for a, b in zip(edges[::2], edges[1::2], strict=True)]


def shared(left: Windows, right: Windows, wanted: NDArray[np.bool_] | None = None) -> Iterator[tuple[int, int, int]]:
    """Runs of at least n characters of `left` that `right` holds: start, end, start in `right`.

    Every window of n characters of `left` (only the `wanted` ones) that `right` holds lies in one of them.
    A run reaches as far on both sides as the texts agree.
    """
    text, other, n = left.view.text, right.view.text, left.n
    both = left.found_in(right)
    for first, last in stretches(both if wanted is None else both & wanted):
        at, end = first, last + n - 1
        while at + n <= end:
            place = other.find(text[at:end])
            stop = end
            if place < 0:
                # The windows come from several places, or a hash collided: follow the first place from here.
                place = other.find(text[at : at + n])
                if place < 0:
                    at += 1
                    continue
                stop = at + _agreement(text, at, other, place)
            back = _agreement_before(text, at, other, place)
            yield at - back, stop, place - back
            at = stop - n + 1


def reaches(text: str, place: int, k: int, n: int, other: str) -> bool:
    """Whether the k characters at a place may be part of a run of n characters in the other text."""
    gram = text[place : place + k]
    at = other.find(gram)
    for _ in range(_MOST_PLACES):
        if at < 0:
            return False
        before = _agreement_before(text, place, other, at, n - k)
        if before + k + _agreement(text[place + k : place + n], 0, other[at + k : at + n], 0) >= n:
            return True
        at = other.find(gram, at + 1)
    return at >= 0


def _agreement(text: str, at: int, other: str, place: int) -> int:
    """Number of equal characters from two places on."""
    most = min(len(text) - at, len(other) - place)
    low, step = 0, 64
    while low < most:
        size = min(step, most - low)
        if text[at + low : at + low + size] == other[place + low : place + low + size]:
            low, step = low + size, step * 2
        elif size == 1:
            break
        else:
            most = min(most, low + size)
            step = max(size // 2, 1)
    return low


def _agreement_before(text: str, at: int, other: str, place: int, most: int = sys.maxsize) -> int:
    count, most = 0, min(at, place, most)
    while count < most and text[at - count - 1] == other[place - count - 1]:
        count += 1
    return count


def longest_novel(held: NDArray[np.int64], doc: int) -> int:
    """Length of the longest stretch that no text held before the document came."""
    return max((end - start for start, end in stretches(held > doc)), default=0)


def outermost(runs: Sequence[Run]) -> list[Run]:
    """The runs without those that lie inside another of the same document on both sides."""
    kept: list[Run] = []
    for run in sorted(runs, key=lambda r: (r.doc, r.span[0] - r.span[1], r.kind != "run", -r.length)):
        inside = any(
            o.doc == run.doc
            and o.span[0] <= run.span[0]
            and run.span[1] <= o.span[1]
            and (o.doc_span[0] <= run.doc_span[0] and run.doc_span[1] <= o.doc_span[1])
            for o in kept
        )
        if not inside:
            kept.append(run)
    return sorted(kept, key=lambda r: (r.doc, r.span, r.doc_span))
