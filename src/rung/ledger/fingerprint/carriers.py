"""Which texts may carry encoded runs: a superset, found for many texts in a few passes.

To decode every text at every alignment would cost more than all the rest. Text leaves traces in base64, though: any
three decoded bytes in a row must be able to stand in UTF-8 text. A few such triples, evenly spaced, are looked at
in all texts; the rest only where these are text.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from .encodings import BASE64, CLASSES, FOLLOWS, OTHER, SKIP, base64_values, hex_values, joined_bytes, text_runs
from .fold import fold
from .joint import long_runs

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .encodings import Bytes, Indices

_FEW = 8
_MANY = 256
_TRIED = 32
_FARTHEST = 4096
_WRAPPED = 24
_GAP = 8
_TOKEN_BYTES = bytes(1 if chr(byte).isalnum() or chr(byte) in "-_" else 0 for byte in range(128)) + bytes(128)
_JOINT = b"////z____"
# Between joined texts: bytes that are no text in either base64 alphabet, and a letter that ends a hex run.


def carriers(texts: Sequence[bytes], least: int) -> set[int]:
    """Indices of the ASCII texts in which an encoded run of at least `least` bytes of text may be."""
    joined = _JOINT.join(texts)
    ends = np.cumsum(np.fromiter((len(text) + len(_JOINT) for text in texts), dtype=np.int64, count=len(texts)))
    found = set(_base64_owners(joined, ends, False, least))
    owners, pieces = _url_safe_pieces(texts, least)
    if pieces:
        ends_of_pieces = np.cumsum([len(piece) + len(_JOINT) for piece in pieces])
        found.update(owners[i] for i in _base64_owners(_JOINT.join(pieces), ends_of_pieces, True, least))
    marks = np.frombuffer(joined.translate(_hex_marks()), dtype=np.uint8)
    for rot13 in (False, True):
        places = list(_hex_places(joined, marks, rot13, least))
        if places:
            found.update(np.searchsorted(ends, places, side="right").tolist())
    return found


def _marked(data: bytes, table: bytes) -> NDArray[np.bool_]:
    return np.frombuffer(data.translate(table), dtype=np.bool_)


def _url_safe_pieces(texts: Sequence[bytes], least: int) -> tuple[list[int], list[bytes]]:
    """The stretches of long tokens with `-` or `_` in them, and the text that each is from.

    In a hyphen of prose the other alphabet would find nothing, at the price of looking at everything twice.
    """
    joined = b"\n".join(texts)
    ends = list(accumulate(len(text) + 1 for text in texts))
    owners: list[int] = []
    pieces: list[bytes] = []
    stretch: tuple[int, int, int] | None = None
    for start, end in (*long_runs(_marked(joined, _TOKEN_BYTES), _WRAPPED), (len(joined), len(joined))):
        owner = bisect_right(ends, start)
        if stretch and owner == stretch[0] and start - stretch[2] <= _GAP:
            stretch = (owner, stretch[1], end)
            continue
        if stretch:
            # What is wrapped ends with a shorter line.
            piece = joined[stretch[1] : min(stretch[2] + _GAP + _WRAPPED, ends[stretch[0]] - 1)]
            if len(piece) >= least and (b"-" in piece or b"_" in piece):
                owners.append(stretch[0])
                pieces.append(piece)
        stretch = (owner, start, end)
    return owners, pieces


def _base64_owners(joined: bytes, ends: Indices, url_safe: bool, least: int) -> Iterator[int]:
    """Indices of the joined texts, which end at `ends`, that may carry base64 of one alphabet."""
    table = base64_values(url_safe, False)
    # To let `translate` delete takes longer.
    all_values = np.frombuffer(joined.translate(table.tobytes()), dtype=np.uint8)
    is_kept = np.not_equal(all_values, SKIP)
    values = np.compress(is_kept, all_values)
    for rot13, places in enumerate(_base64_places(values, least)):

        def is_text(place: int, rot13: bool = bool(rot13)) -> bool:
            return _holds_text(values, place, least, rot13)

        # Chance, mostly; to find the text of each place takes longer than to look again.
        if len(places) <= _MANY and not any(map(is_text, places.tolist())):
            continue
        at = np.flatnonzero(is_kept)
        owners = np.searchsorted(ends, at[places], side="right")
        for owner in np.unique(owners).tolist():
            here = places[owners == owner]
            if len(here) > _TRIED or any(map(is_text, here.tolist())):
                yield owner


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
    shape, strides = (4, -(-count // spacing)), (1, 4 * spacing)
    front = np.ndarray(shape, dtype="<u2", buffer=padded, strides=strides)
    back = np.ndarray(shape, dtype="<u2", buffer=padded, strides=strides, offset=2)
    fronts, backs = _half_tables()
    both: NDArray[np.uint32] = fronts[front] | backs[back]
    plain, turned = (both & 0xFFF).astype(np.uint32), (both >> 16).astype(np.uint32)
    return _refined(padded, spacing, plain, False), _refined(padded, spacing, turned, True)


def _refined(values: Bytes, spacing: int, groups: NDArray[np.uint32], rot13: bool) -> Indices:
    good = _group_table()[groups]
    found = np.flatnonzero(good[:, :-1] & good[:, 1:])
    shifts: Indices = found // (good.shape[1] - 1)
    hits: Indices = found - shifts * (good.shape[1] - 1)
    places: Indices = hits * (4 * spacing) + shifts
    fronts, backs = _half_tables()
    last = groups[shifts, hits] & 3
    for offset in range(4, 4 * spacing + 4, 4):
        if len(places) <= _FEW:
            break
        front, back = _pairs(values, places + offset), _pairs(values, places + (offset + 2))
        both = (fronts.take(front) | backs.take(back)) >> (16 if rot13 else 0) & 0xFFF
        kept = _group_table().take(both) & FOLLOWS.take(last * 4 + (both >> 10))
        places, last = places[kept], both[kept] & 3
    # Inside the run: its first group may reach into the joint before the text.
    return places + 4 * (spacing // 2)


def _pairs(values: Bytes, places: Indices) -> NDArray[np.uint16]:
    """Two values at each place as one number. (To take them at once from odd addresses is slower.)"""
    pairs: NDArray[np.uint16] = values.take(places) | values.take(places + 1).astype(np.uint16) << np.uint16(8)
    return pairs


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
        if not is_cut or reach > _FARTHEST:
            return is_cut
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


@cache
def _hex_marks() -> bytes:
    """Byte → 1 where it may stand in a run of hex digits, 2 where by rot13."""
    plain, turned = (np.not_equal(hex_values(rot13), OTHER).astype(np.uint8) for rot13 in (False, True))
    return (plain | turned << 1).tobytes()


def _hex_places(joined: bytes, marks: Bytes, rot13: bool, least: int) -> Iterator[int]:
    """Places in `joined` where a run of hex digits and separators ends that holds enough digits."""
    digits = np.flatnonzero(hex_values(rot13) < 16).astype(np.uint8).tobytes()
    for start, end in long_runs(np.not_equal(marks & (2 if rot13 else 1), 0), 2 * least):
        run = joined[start:end]
        if len(run) - len(run.translate(None, digits)) >= 2 * least:
            yield end - 1  # the first may belong to the joint before the text
