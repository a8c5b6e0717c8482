"""Sorted arrays of keys that merge as they grow: cheap to add to, few to search."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .hashing import DOC_BITS, MOST_DOCS, distinct

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .hashing import Keys

    Levels = tuple[list["Level"], frozenset[int]]

_DOC_MASK = np.uint64(MOST_DOCS - 1)
_DOC_BITS = np.uint64(DOC_BITS)
_BUFFER = 1 << 16
_GROWTH = 3
_PER_BUCKET = 16
_SMALL = 1 << 16


class Level:
    """Sorted keys with the place where each bucket of their upper bits begins.

    The hashes are spread evenly, so a bucket is short: a search there touches one or two lines of memory where a
    binary search over all keys touches many.
    """

    __slots__ = ("_shift", "_starts", "keys")

    def __init__(self, keys: Keys) -> None:
        self.keys = keys
        bits = max((len(keys) // _PER_BUCKET).bit_length(), 1)
        self._shift = np.uint64(64 - bits)
        bounds = np.arange(1 << bits, dtype=np.uint64) << self._shift
        # Of more than 2**32 keys a level would take 32 GiB.
        self._starts = np.append(np.searchsorted(keys, bounds), len(keys)).astype(np.uint32)

    def __len__(self) -> int:
        return len(self.keys)

    def nbytes(self) -> int:
        """Bytes that the level takes."""
        return int(self.keys.nbytes + self._starts.nbytes)

    def first_at_least(self, wanted: Keys) -> NDArray[np.int64]:
        """For each wanted key the place of the first key that is not below it."""
        if len(self.keys) < _SMALL:
            return np.searchsorted(self.keys, wanted)
        bucket = (wanted >> self._shift).astype(np.int64)
        low, high = self._starts[bucket].astype(np.int64), self._starts[bucket + 1].astype(np.int64)
        last = len(self.keys) - 1
        while (low < high).any():
            middle = (low + high) >> 1
            is_below = (self.keys[np.minimum(middle, last)] < wanted) & (low < high)
            low, high = np.where(is_below, middle + 1, low), np.where(is_below, high, np.minimum(middle, high))
        return low


class KeyLevels:
    """A multiset of (hash, document) keys. New keys wait unsorted; a level is merged into one not much
    larger."""

    def __init__(self) -> None:
        self._waiting: list[Keys] = []
        self._waiting_count = 0
        self._levels: list[Level] = []
        self._removed: set[int] = set()
        self._removed_now: frozenset[int] | None = None

    def __len__(self) -> int:
        return self._waiting_count + sum(map(len, self._levels))

    def nbytes(self) -> int:
        """Bytes that the keys take."""
        return 8 * self._waiting_count + sum(level.nbytes() for level in self._levels)

    def add(self, keys: Keys) -> None:
        """Add keys; a document that was removed may not come back."""
        if len(keys):
            self._waiting.append(keys)
            self._waiting_count += len(keys)
            if self._waiting_count >= _BUFFER:
                self._settle()

    def remove(self, docs: set[int]) -> None:
        """Forget the keys of documents; they are dropped at once from results and in time from memory."""
        self._removed |= docs
        self._removed_now = None
        if len(self._removed) > 1024 and len(self._removed) * 64 > len(self):
            self.purge()

    def purge(self) -> None:
        """Drop the keys of removed documents from memory."""
        self._settle()
        if self._removed:
            kept = [self._without_removed(level.keys) for level in self._levels]
            self._levels = [Level(keys) for keys in kept if len(keys)]
            self._removed.clear()
            self._removed_now = None

    def _without_removed(self, keys: Keys) -> Keys:
        gone = np.fromiter(self._removed, dtype=np.uint64, count=len(self._removed))
        return keys[~np.isin(keys & _DOC_MASK, gone)]

    def _settle(self) -> None:
        if not self._waiting:
            return
        # Text that repeats itself gives the same key again and again.
        keys = distinct(np.concatenate(self._waiting))
        self._waiting, self._waiting_count = [], 0
        while self._levels and len(self._levels[-1]) < _GROWTH * len(keys):
            # Stable sorting of two sorted runs is a merge.
            keys = np.sort(np.concatenate((self._levels.pop().keys, keys)), kind="stable")
        self._levels.append(Level(keys))

    def levels(self) -> Levels:
        """The sorted arrays as they are now, and the documents to leave out."""
        self._settle()
        if self._removed_now is None:
            self._removed_now = frozenset(self._removed)
        return list(self._levels), self._removed_now


def matches(
    levels: list[Level], hashes: Keys, until: NDArray[np.int64] | None = None
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """For sorted, distinct hashes: pairs of (index in `hashes`, document number).

    `until` gives for each hash the document number from which on nothing is looked for.
    """
    last = _DOC_MASK if until is None else (np.clip(until, 1, MOST_DOCS) - 1).astype(np.uint64)
    ends = hashes | last
    which = [np.empty(0, dtype=np.int64)]
    docs = [np.empty(0, dtype=np.int64)]
    for level in levels:
        keys = level.keys
        low = level.first_at_least(hashes)
        hit = np.flatnonzero(keys[np.minimum(low, len(keys) - 1)] >> _DOC_BITS == hashes >> _DOC_BITS)
        if not len(hit):
            continue
        counts = np.searchsorted(keys, ends[hit], side="right") - low[hit]
        total = int(counts.sum())
        steps = np.arange(total) - np.repeat(np.cumsum(counts) - counts, counts)
        which.append(np.repeat(hit, counts))
        docs.append((keys[np.repeat(low[hit], counts) + steps] & _DOC_MASK).astype(np.int64))
    return np.concatenate(which), np.concatenate(docs)
