"""Which texts may carry encoded runs: a superset, found for many texts in a few passes.

To decode every text at every alignment would cost more than all the rest. Text leaves traces in base64, though: any
three decoded bytes in a row must be able to stand in UTF-8 text. A few such triples, evenly spaced, are looked at
in all texts; the rest only where these are text.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .encodings import BASE64, CLASSES, FOLLOWS, OTHER, SKIP, base64_values, hex_values, joined_bytes, text_runs
from .fold import fold

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .encodings import Bytes, Indices

_FEW = 8
_MANY = 64
_JOINT = b"////z____"
# Between joined texts: bytes that are no text in either base64 alphabet, and a letter that ends a hex run.


def carriers(texts: Sequence[bytes], least: int) -> set[int]:
    """Indices of the ASCII texts in which an encoded run of at least `least` bytes of text may be."""
    everything = range(len(texts))
    # Without `-` and `_` both alphabets read the same.
    other = [i for i in everything if b"-" in texts[i] or b"_" in texts[i]]
    joined = _JOINT.join(texts)
    found = set(_base64_owners(texts, everything, joined, False, least))
    if other:
        part = joined if len(other) == len(texts) else _JOINT.join([texts[i] for i in other])
        found.update(_base64_owners(texts, other, part, True, least))
    for rot13 in (False, True):
        places = list(_hex_places(joined, rot13, least))
        if places:
            found.update(np.searchsorted(_ends(texts, everything), places, side="right").tolist())
    return found


def _ends(texts: Sequence[bytes], which: Sequence[int]) -> Indices:
    lengths = (len(texts[i]) + len(_JOINT) for i in which)
    return np.cumsum(np.fromiter(lengths, dtype=np.int64, count=len(which)))


def _base64_owners(
    texts: Sequence[bytes], which: Sequence[int], joined: bytes, url_safe: bool, least: int
) -> Iterator[int]:
    table = base64_values(url_safe, False)
    skipped = np.flatnonzero(table == SKIP).astype(np.uint8).tobytes()
    values = np.frombuffer(joined.translate(table.tobytes(), skipped), dtype=np.uint8)
    for rot13, places in enumerate(_base64_places(values, least)):
        if len(places) <= _MANY and len(which) > 1:
            # Chance, mostly; to find the text of each place takes longer than to look again.
            places = np.array([p for p in places.tolist() if _holds_text(values, p, least, bool(rot13))], int)
        if not len(places):
            continue
        at = np.flatnonzero(table[np.frombuffer(joined, dtype=np.uint8)] != SKIP)
        owners = np.searchsorted(_ends(texts, which), at[places], side="right")
        for owner in np.unique(owners).tolist():
            here = places[owners == owner][:_FEW].tolist()
            if len(here) == _FEW or any(_holds_text(values, p, least, bool(rot13)) for p in here):
                yield which[owner]


def _base64_places(values: Bytes, least: int) -> tuple[Indices, Indices]:
    """Places where a run may be, as it stands and by rot13."""
    # A run of `least` bytes holds at least this many whole groups of three bytes, in one of four alignments:
    # at least two of those that are looked at.
    spacing = max((least - 4) // 3 // 2, 1)
    count = len(values) // 4
    if count < 2 * spacing:
        empty = np.empty(0, dtype=np.int64)
        return empty, empty
    # Two values at each place, as one number; by alignment and group for those that are looked at everywhere.
    padded = np.concatenate((values, np.zeros(8, dtype=np.uint8)))
    pairs = np.ndarray((len(values) + 4,), dtype="<u2", buffer=padded, strides=(1,))
    shape, strides = (4, -(-count // spacing)), (1, 4 * spacing)
    front = np.ndarray(shape, dtype="<u2", buffer=padded, strides=strides)
    back = np.ndarray(shape, dtype="<u2", buffer=padded, strides=strides, offset=2)
    fronts, backs = _half_tables()
    both = fronts[front] | backs[back]
    plain = _refined(pairs, spacing, _group_table()[both & 0xFFF], False)
    return plain, _refined(pairs, spacing, _group_table()[both >> 16], True)


def _refined(pairs: NDArray[np.uint16], spacing: int, good: NDArray[np.bool_], rot13: bool) -> Indices:
    shifts, hits = np.nonzero(good[:, :-1] & good[:, 1:])
    places = hits * (4 * spacing) + shifts
    fronts, backs = _half_tables()
    last = None
    for offset in range(0, 4 * spacing + 4, 4):
        if len(places) <= _FEW:
            break
        both = fronts[pairs[places + offset]] | backs[pairs[places + offset + 2]]
        both = both >> 16 if rot13 else both & 0xFFF
        if last is not None:
            kept = _group_table()[both] & FOLLOWS[last * 4 + (both >> 10)]
            places, both = places[kept], both[kept]
        last = both & 3
    # Inside the run: its first group may reach into the joint before the text.
    return places + 4 * (spacing // 2)


def _holds_text(values: Bytes, place: int, least: int, rot13: bool) -> bool:
    """Whether the groups around a place carry enough letters and digits; a last incomplete group may be missing."""
    reach = (least // 3 + 2) * 8
    while True:
        low, high = place % 4 if place < reach else place - reach, place + reach
        around = values[low:high]
        around = around[: len(around) // 4 * 4]
        data = joined_bytes((_rot13_values()[around] if rot13 else around).reshape(-1, 4))
        is_cut = False
        for start, end in text_runs(data, least - 2):
            if len(fold(data[start:end].tobytes().decode("utf-8", "ignore"))) >= least - 2:
                return True
            is_cut |= (start == 0 and low >= 4) or (end == len(data) and high < len(values))
        if not is_cut:
            return False
        reach *= 2


@cache
def _rot13_values() -> Bytes:
    """Value of a base64 character → value of its rot13."""
    return base64_values(False, True)[list(BASE64)]


@cache
def _half_tables() -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """By half a group (two values): twelve bits as it stands and, sixteen bits higher, by rot13.

    Of a front half the class of its whole byte and a nibble of the byte in the middle, of a back half the other
    nibble and the class.
    """
    half = np.arange(1 << 14)
    fronts, backs = np.zeros(1 << 14, dtype=np.uint32), np.zeros(1 << 14, dtype=np.uint32)
    low, high = half & 63, half >> 8
    turned = _rot13_values().astype(np.int64)
    for shift, a, b in ((0, low, high), (16, turned[low], turned[high])):
        front = CLASSES[a << 2 | b >> 4].astype(np.uint32) << 4 | (b & 15).astype(np.uint32)
        back = (a >> 2 << 2).astype(np.uint32) | CLASSES[(a & 3) << 6 | b]
        fronts |= front << (shift + 6)
        backs |= back << shift
    return fronts, backs


@cache
def _group_table() -> NDArray[np.bool_]:
    """By the twelve bits of two halves: whether the three bytes of the group may follow one another in a text."""
    front, back = np.divmod(np.arange(1 << 12), 64)
    first, middle, last = front >> 4, CLASSES[(front & 15) << 4 | back >> 2], back & 3
    return np.asarray(FOLLOWS[first * 4 + middle] & FOLLOWS[middle * 4 + last], dtype=bool)


def _hex_places(joined: bytes, rot13: bool, least: int) -> Iterator[int]:
    """Places in `joined` where a run of hex digits and separators ends that holds enough digits."""
    table = hex_values(rot13)
    digits = np.flatnonzero(table < 16).astype(np.uint8).tobytes()
    marks = joined.translate((table != OTHER).astype(np.uint8).tobytes())
    pattern = b"\x01" * (2 * least)
    at = marks.find(pattern)
    while at >= 0:
        end = marks.find(b"\0", at)
        end = len(marks) if end < 0 else end
        run = joined[at:end]
        if len(run) - len(run.translate(None, digits)) >= 2 * least:
            yield end - 1  # the first may belong to the joint before the text
        at = marks.find(pattern, end)
