"""Where in a protected text the kept grams of which documents occur."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .levels import matches

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .hashing import Keys
    from .levels import Level

    Places = NDArray[np.int64]

MANY = 16
"""A gram that the protected text holds at more places than this says nothing of where; its documents are all read."""


@dataclass(frozen=True, slots=True)
class Sightings:
    """Pairs of a document and a place, each as one number, ascending: `document * width + place`.

    A step along the text is the same step along the numbers, so that whether one gram follows another is one search.
    `often` are the documents that hold a gram which the text repeats.
    """

    keys: Places
    width: int
    often: frozenset[int]

    @staticmethod
    def of(hashes: Keys, levels: list[Level], places: Places, until: Places) -> Sightings:
        """The documents below `until`, for each of the places, that keep the gram there."""
        # A step beyond the last place must not lead into the next document.
        width = 2 * len(hashes)
        by_hash = np.argsort(hashes[places], kind="stable")
        order, until = places[by_hash], until[by_hash]
        ordered = hashes[order]
        firsts = changes(ordered)
        counts = np.diff(np.append(firsts, len(ordered)))
        which, docs = matches(levels, ordered[firsts], np.maximum.reduceat(until, firsts))
        often = frozenset(np.unique(docs[counts[which] > MANY]).tolist())
        which, docs = which[counts[which] <= MANY], docs[counts[which] <= MANY]
        times = counts[which]
        steps = np.arange(int(times.sum())) - np.repeat(np.cumsum(times) - times, times)
        keys = np.repeat(docs, times) * width + order[np.repeat(firsts[which], times) + steps]
        return Sightings(np.sort(keys), width, often)

    def split(self, keys: Places) -> tuple[Places, Places]:
        """The documents and the places of some of the keys."""
        docs = keys // self.width
        return docs, keys - docs * self.width


def changes(ordered: NDArray[np.uint64] | Places) -> Places:
    """Places in an ordered array where another value begins."""
    return np.concatenate((np.zeros(min(len(ordered), 1), dtype=np.int64), np.flatnonzero(np.diff(ordered)) + 1))
