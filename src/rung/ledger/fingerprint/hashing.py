"""Hashes of k-grams and of whole short texts, over the bytes of `fold.codes`.

A key holds 36 bits of hash above 28 bits of document number, so that a sorted array of keys is an index.
The hashes only nominate: what they find is verified on the text.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, TypeVar

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Keys = NDArray[np.uint64]

_T = TypeVar("_T", np.uint64, np.int64)

DOC_BITS = 28
MOST_DOCS = 1 << DOC_BITS
_DOC_MASK = np.uint64(MOST_DOCS - 1)
_M1 = np.uint64(0x9E3779B97F4A7C15)
_M2 = np.uint64(0xBF58476D1CE4E5B9)
_BASE = 0xD6E8FEB86659FD93
_WORD = 1 << 64
_BLOCK = 1 << 15


def distinct(hashes: Keys) -> Keys:
    """The hashes sorted, each once. (`numpy.unique` builds a hash table first, which takes longer.)"""
    ordered = np.sort(hashes)
    kept = np.ones(len(ordered), dtype=bool)
    np.not_equal(ordered[1:], ordered[:-1], out=kept[1:])
    return ordered[kept]


def among(ordered: NDArray[_T], values: NDArray[_T]) -> NDArray[np.bool_]:
    """For each value whether it is one of some sorted ones."""
    if not len(ordered):
        return np.zeros(len(values), dtype=bool)
    at = np.searchsorted(ordered, values)
    return np.equal(ordered[np.minimum(at, len(ordered) - 1)], values)


def _finished(hashes: Keys) -> Keys:
    hashes ^= hashes >> np.uint64(32)
    hashes *= _M2
    hashes ^= hashes >> np.uint64(29)
    hashes &= ~_DOC_MASK
    return hashes


def _grams(data: bytes, k: int, stride: int, count: int) -> Keys:
    """Hashes of `count` k-grams at every `stride`-th offset; `data` holds them all."""
    out = np.empty(count, dtype=np.uint64)
    offsets = [*range(0, k - 7, 8)]
    if k % 8:
        offsets.append(k - 8)
    for low in range(0, count, _BLOCK):
        rows = min(_BLOCK, count - low)
        total = np.zeros(rows, dtype=np.uint64)
        for offset in offsets:
            word = np.ndarray((rows,), dtype="<u8", buffer=data, offset=low * stride + offset, strides=(stride,))
            total ^= word
            total *= _M1
            total ^= total >> np.uint64(31)
        out[low : low + rows] = _finished(total)
    return out


def every_gram(data: bytes, k: int) -> Keys:
    """Hashes of the k-grams at every offset."""
    return _grams(data, k, 1, max(len(data) - k + 1, 0))


def sampled_grams(texts: Sequence[bytes], k: int, stride: int) -> tuple[Keys, NDArray[np.int64]]:
    """Hashes of the k-grams at offsets 0, stride, 2·stride, … of each text, and the index of the text of
    each."""
    # Each text is padded to whole strides, so that all samples of all texts lie on one stride.
    padded = b"".join([text.ljust(-(-len(text) // stride) * stride, b"\0") for text in texts])
    lengths = np.fromiter(map(len, texts), dtype=np.int64, count=len(texts))
    rows = -(-lengths // stride)
    counts = np.maximum((lengths - k) // stride + 1, 0)
    hashes = _grams(padded + bytes(k), k, stride, int(rows.sum()))
    owners = np.repeat(np.arange(len(texts), dtype=np.int64), rows)
    first_row = np.cumsum(rows) - rows
    kept = np.arange(len(hashes)) - first_row[owners] < counts[owners]
    return hashes[kept], owners[kept]


@cache
def _powers(base: int, count: int) -> Keys:
    steps = np.full(count, base, dtype=np.uint64)
    steps[:1] = 1
    return np.cumprod(steps, dtype=np.uint64)


def whole_texts(texts: Sequence[bytes], most: int) -> Keys:
    """A hash for each text of at most `most` bytes; `substrings` gives the same for a part of a longer
    text."""
    padded = b"".join([text.ljust(most, b"\0") for text in texts])
    table = np.frombuffer(padded, dtype=np.uint8).reshape(len(texts), most).astype(np.uint64)
    return _finished((table * _powers(_BASE, most)).sum(axis=1, dtype=np.uint64))


def substrings(data: bytes, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Keys:
    """The hashes of `data[start:end]`."""
    powers = _powers(_BASE, _rounded(len(data)))
    inverse = _powers(pow(_BASE, -1, _WORD), _rounded(len(data)))
    terms = np.frombuffer(data, dtype=np.uint8).astype(np.uint64) * powers[: len(data)]
    sums = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(terms, dtype=np.uint64)))
    return _finished((sums[ends] - sums[starts]) * inverse[starts])


def _rounded(length: int) -> int:
    return 1 << max(length, 1).bit_length()


def of_literal(kind: str, value: str) -> int:
    """The hash of a typed literal."""
    digest = hashlib.blake2b(f"{kind}:{value}".encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest, "little") >> DOC_BITS << DOC_BITS
