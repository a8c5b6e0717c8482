"""The prints of untrusted texts: what the index keeps of them. Made in batches, many texts in one pass."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from .fold import codes, fold, fold_ascii, readings, reads_by_case, spelled_in_ascii
from .hashing import sampled_grams, whole_texts
from .joint import Joint
from .layers import Layer
from .literals import literals
from .signs import pieces as pieces_of
from .views import inner_layers

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .hashing import Keys

    Owners = NDArray[np.int64]

SHORTEST = 12
"""Normalised characters from which a short document is found inside a protected text; a shorter one only as
a whole."""

_HEAD = struct.Struct("<IIII")


_GRAM = 16
_STRIDE = 13


@dataclass(frozen=True, slots=True)
class Sampling:
    """Which grams of an untrusted text are kept: those of k characters at every `stride`-th offset.

    A run of `shortest` characters (k + stride - 1) holds one of them wherever it lies, a longer one as many as its
    length allows, each `stride` after the one before. So few grams find both the short texts that were cut out of a
    long one and, where several in a row are asked for, the long runs without reading what only shares a phrase.
    """

    k: int
    stride: int

    @property
    def shortest(self) -> int:
        """The normalised characters from which a run is sure to hold a kept gram."""
        return self.k + self.stride - 1

    def least(self, length: int) -> int:
        """How many kept grams a run of this length holds at least."""
        return (length - self.k + 1) // self.stride


def sampling(n: int) -> Sampling:
    """The sampling for a bound of n characters: every run of n holds two kept grams at least."""
    k = min(_GRAM, max(8, n * 3 // 5))
    return Sampling(k, min(_STRIDE, (n - k + 1) // 2))


@dataclass(frozen=True, slots=True)
class Batch:
    """Hashes of three kinds (grams, short documents, literals), each with the index of the text it belongs
    to."""

    grams: tuple[Keys, Owners]
    shorts: tuple[Keys, Owners]
    literals: tuple[Keys, Owners]
    encoded: frozenset[int]

    def split(self, count: int) -> list[bytes]:
        """One serialised print for each of the `count` texts."""
        parts = [_by_owner(hashes, owners, count) for hashes, owners in (self.grams, self.shorts, self.literals)]
        return [
            _HEAD.pack(*map(len, row), index in self.encoded) + b"".join(h.astype("<u8").tobytes() for h in row)
            for index, row in enumerate(zip(*parts, strict=True))
        ]


def _by_owner(hashes: Keys, owners: Owners, count: int) -> list[Keys]:
    order = np.argsort(owners, kind="stable")
    cuts = np.searchsorted(owners[order], np.arange(1, count))
    return np.split(hashes[order], cuts)


def joined(prints: Sequence[bytes]) -> Batch:
    """The batch of serialised prints. Raises `ValueError` for bytes that are no prints."""
    parts: list[list[Keys]] = [[], [], []]
    sizes: list[tuple[int, ...]] = []
    encoded: list[int] = []
    for index, data in enumerate(prints):
        *counts, is_encoded = _HEAD.unpack_from(data) if len(data) >= _HEAD.size else (1, 0, 0, 0)
        if len(data) != _HEAD.size + 8 * sum(counts):
            raise ValueError("these bytes are no prints")
        sizes.append(tuple(counts))
        encoded += [index] * bool(is_encoded)
        at = _HEAD.size
        for part, count in zip(parts, counts, strict=True):
            part.append(np.frombuffer(data, dtype="<u8", count=count, offset=at).astype(np.uint64))
            at += 8 * count
    owners = np.arange(len(prints), dtype=np.int64)
    empty = np.empty(0, dtype=np.uint64)
    grams, shorts, values = (
        (np.concatenate([empty, *part]), np.repeat(owners, [size[i] for size in sizes] or 0))
        for i, part in enumerate(parts)
    )
    return Batch(grams, shorts, values, frozenset(encoded))


def batch(texts: Sequence[str], n: int, first_party: Sequence[str] = ()) -> Batch:
    """The prints of many texts at once."""
    plain: list[bytes] = []
    plain_owners: list[int] = []
    pieces: list[bytes] = []
    owners: list[int] = []
    encoded: set[int] = set()
    joint = Joint(texts)
    inner = inner_layers(joint, n)
    varied = reads_by_case(joint.beyond_ascii)
    for index, text in enumerate(texts):
        if index not in inner and not varied:
            spelled = joint.parts[index] if text.isascii() else spelled_in_ascii(text, joint.beyond_ascii)
            if spelled is not None:
                plain.append(spelled)
                plain_owners.append(index)
                continue
        for layer in inner.get(index) or (Layer(text),):
            # What an escape or an encoding hid is not among the characters of the joint text.
            by_case = varied or layer.path != ()
            for variant in readings(layer.text) if by_case else ("look",):
                piece = codes(fold(layer.text, variant))
                if layer.depth == 0 or len(piece) >= n:
                    pieces.append(piece)
                    owners.append(index)
                    if layer.depth:
                        encoded.add(index)
    grams, shorts = _hashed(fold_ascii(plain) + pieces, np.array(plain_owners + owners, dtype=np.int64), n)
    hidden = [(index, layer.text) for index, layers in inner.items() for layer in layers[1:]]
    said = [_literals(joint, range(len(texts)), n, first_party)]
    if hidden:
        said.append(_literals(Joint([text for _, text in hidden]), [index for index, _ in hidden], n, first_party))
    values = np.concatenate([hashes for hashes, _ in said]), np.concatenate([owners for _, owners in said])
    return Batch(grams, shorts, values, frozenset(encoded))


def _hashed(pieces: Sequence[bytes], owners: Owners, n: int) -> tuple[tuple[Keys, Owners], tuple[Keys, Owners]]:
    lengths = np.fromiter(map(len, pieces), dtype=np.int64, count=len(pieces))
    kept = sampling(n)
    long, short = np.flatnonzero(lengths >= kept.shortest), np.flatnonzero((lengths > 0) & (lengths < n))
    grams, which = sampled_grams([pieces[i] for i in long.tolist()], kept.k, kept.stride)
    whole = whole_texts([pieces[i] for i in short.tolist()], n)
    return (grams, owners[long][which]), (whole, owners[short])


def _literals(joint: Joint, texts: Sequence[int], n: int, first_party: Sequence[str]) -> tuple[Keys, Owners]:
    """The hashes of the literals of joined texts, and of the ways to write them; `texts` are their indices."""
    hashes: list[int] = []
    owners: list[int] = []
    forms: list[bytes] = []
    writers: list[int] = []
    for index, piece, signs in pieces_of(joint):
        found: set[int] = set()
        written: set[str] = set()
        for literal in literals(piece, first_party, signs, joint.few_looks):
            found |= literal.hashes()
            form = literal.form()
            if form is not None:
                written.add(form)
        hashes += sorted(found)
        owners += [texts[index]] * len(found)
        short = [codes(form) for form in sorted(written) if len(form) < n]
        forms += short
        writers += [texts[index]] * len(short)
    whole = whole_texts(forms, n) if forms else np.empty(0, dtype=np.uint64)
    return np.concatenate((np.array(hashes, dtype=np.uint64), whole)), np.array(owners + writers, dtype=np.int64)
