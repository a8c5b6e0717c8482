"""Base64, hexadecimal and rot13 runs inside a text, decoded with the span of each character.

Nothing is guessed from how an encoded run is wrapped: every character outside the alphabet is skipped,
every alignment is decoded, and what counts is whether a stretch of the decoded bytes is text (valid UTF-8
without control characters) of at least the needed length. The work is a fixed number of passes over the text.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

import numpy as np

from .layers import Layer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Bytes = NDArray[np.uint8]
    Indices = NDArray[np.int64]

_UPPER = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_LOWER = b"abcdefghijklmnopqrstuvwxyz"
_DIGITS = b"0123456789"
_ROT = bytes.maketrans(_UPPER + _LOWER, _UPPER[13:] + _UPPER[:13] + _LOWER[13:] + _LOWER[:13])
_SKIP = 255
_OTHER = 254
_SEPARATORS = b" \t\r\n\x0b\x0c:;,.-_|\"'\\xX%#&[](){}<>=/+*~"

# Classes of decoded bytes: not text, ASCII text, first byte of a longer sequence, one of its further bytes.
_BAD, _PLAIN, _LEAD, _NEXT = range(4)


def _byte_classes() -> Bytes:
    table = np.full(256, _BAD, dtype=np.uint8)
    table[[0, 9, 10, 12, 13]] = _PLAIN  # NUL: every second byte of UTF-16
    table[32:127] = _PLAIN
    table[0x80:0xC0] = _NEXT
    table[0xC2:0xF5] = _LEAD
    return table


_CLASSES = _byte_classes()
_FOLLOWS = np.zeros((4, 4), dtype=bool)
_FOLLOWS[_PLAIN, [_PLAIN, _LEAD]] = True
_FOLLOWS[_LEAD, _NEXT] = True
_FOLLOWS[_NEXT, [_PLAIN, _LEAD, _NEXT]] = True
_FOLLOWS_FLAT = _FOLLOWS.ravel()


@cache
def base64_values(url_safe: bool, rot13: bool) -> Bytes:
    """Byte → its six bits, or 255 for a byte that is skipped."""
    table = np.full(256, _SKIP, dtype=np.uint8)
    alphabet = _UPPER + _LOWER + _DIGITS + (b"-_" if url_safe else b"+/")
    for value, byte in enumerate(alphabet.translate(_ROT) if rot13 else alphabet):
        table[byte] = value
    return table


@cache
def hex_values(rot13: bool) -> Bytes:
    """Byte → its four bits, 255 for a separator, 254 for a byte that ends a run."""
    table = np.full(256, _OTHER, dtype=np.uint8)
    table[list(_SEPARATORS)] = _SKIP
    for value, byte in enumerate(b"0123456789abcdef".translate(_ROT) if rot13 else b"0123456789abcdef"):
        table[byte] = value
        table[bytes([byte]).upper()[0]] = value
    return table


def _ascii_bytes(text: str) -> Bytes:
    """One byte a character; full-width forms become ASCII, what else is not ASCII becomes NUL."""
    if text.isascii():
        return np.frombuffer(text.encode("ascii"), dtype=np.uint8)
    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4").astype(np.int64)
    wide = (points >= 0xFF01) & (points <= 0xFF5E)
    points = np.where(wide, points - 0xFEE0, points)
    return np.where(points < 128, points, 0).astype(np.uint8)


def text_runs(data: Bytes, least: int) -> list[tuple[int, int]]:
    """Maximal stretches of at least `least` bytes that are text."""
    if len(data) < least:
        return []
    classes = _CLASSES[data]
    # breaks[i]: no run crosses from byte i-1 to byte i
    breaks = ~_FOLLOWS_FLAT[classes[:-1] * 4 + classes[1:]]
    cuts = np.concatenate(([0], np.flatnonzero(breaks) + 1, [len(data)]))
    long = np.flatnonzero(np.diff(cuts) >= least)
    return [(int(cuts[i]), int(cuts[i + 1])) for i in long]


def _piece(layer: Layer, name: Sequence[str], data: Bytes, starts: Indices, ends: Indices) -> Layer:
    """A layer of the text in `data`, whose bytes came from the spans `starts`, `ends` of the layer above."""
    text = data.tobytes().decode("utf-8", "ignore")

    def local() -> tuple[Indices, Indices]:
        # Invalid sequences were dropped: walk the bytes along the characters that remain.
        if len(text) == len(data):
            return starts, ends
        firsts: list[int] = []
        lasts: list[int] = []
        raw, at = data.tobytes(), 0
        for char in text:
            encoded = char.encode("utf-8")
            at = raw.index(encoded, at)
            firsts.append(at)
            at += len(encoded)
            lasts.append(at - 1)
        return starts[np.array(firsts, dtype=np.int64)], ends[np.array(lasts, dtype=np.int64)]

    return Layer(text, (*layer.path, *name), layer.depth + len(name), layer, local)


def decoded(layer: Layer, least: int, most_depth: int) -> Iterator[Layer]:
    """Every stretch of at least `least` bytes of text that base64 or hex runs in the layer carry."""
    room = most_depth - layer.depth
    if room < 1 or len(layer.text) < least:
        return
    data = _ascii_bytes(layer.text)
    for rot13 in (False, True)[: min(room, 2)]:
        name = ("rot13",) if rot13 else ()
        yield from _from_base64(layer, (*name, "base64"), data, rot13, least)
        yield from _from_hex(layer, (*name, "hex"), data, rot13, least)


def _from_base64(layer: Layer, name: Sequence[str], data: Bytes, rot13: bool, least: int) -> Iterator[Layer]:
    seen: Bytes | None = None
    for url_safe in (False, True):
        values = base64_values(url_safe, rot13)[data]
        at = np.flatnonzero(values != _SKIP)
        values = values[at]
        if seen is not None and np.array_equal(values, seen):
            return
        seen = values
        for shift in range(4):
            count = (len(values) - shift) // 4
            if count * 3 + 2 < least:
                break
            # A last incomplete group still carries one or two bytes.
            tail = values[shift:]
            at_tail = at[shift:]
            pad = -len(tail) % 4
            quads = np.concatenate((tail, np.zeros(pad, dtype=np.uint8))).reshape(-1, 4)
            flat = _joined_bytes(quads)
            if pad:
                flat = flat[: len(flat) - min(pad, 3)]
            for start, end in text_runs(flat, least):
                index = np.arange(start, end, dtype=np.int64)
                group, byte = index // 3 * 4, index % 3
                firsts = at_tail[np.minimum(group + byte, len(at_tail) - 1)]
                lasts = at_tail[np.minimum(group + byte + 1, len(at_tail) - 1)] + 1
                yield _piece(layer, name, flat[start:end], firsts, lasts)


def _from_hex(layer: Layer, name: Sequence[str], data: Bytes, rot13: bool, least: int) -> Iterator[Layer]:
    values = hex_values(rot13)[data].copy()
    if not rot13:
        # The zero of a `0x` prefix is no digit.
        prefix = (data[:-1] == 48) & ((data[1:] == 120) | (data[1:] == 88))
        values[:-1][prefix] = _SKIP
    digits = np.concatenate(([0], np.cumsum(values < 16)))
    cuts = np.concatenate(([-1], np.flatnonzero(values == _OTHER), [len(values)]))
    counts = digits[cuts[1:]] - digits[cuts[:-1] + 1]
    for i in np.flatnonzero(counts >= 2 * least):
        low, high = int(cuts[i]) + 1, int(cuts[i + 1])
        at = np.flatnonzero(values[low:high] < 16) + low
        nibbles = values[at]
        for shift in range(2):
            pairs = (len(nibbles) - shift) // 2
            cut = slice(shift, shift + 2 * pairs)
            flat = (nibbles[cut][0::2] << 4 | nibbles[cut][1::2]).astype(np.uint8)
            firsts, lasts = at[cut][0::2], at[cut][1::2] + 1
            for start, end in text_runs(flat, least):
                yield _piece(layer, name, flat[start:end], firsts[start:end], lasts[start:end])


_MANY = 64
_JOINT = b"////z____"
"""Between joined texts: bytes that are no text in either base64 alphabet, and a letter that ends a hex
run."""


def carriers(texts: Sequence[str], least: int) -> list[int]:
    """Indices of texts in which an encoded run of at least `least` bytes of text may be: a superset, cheap
    for many."""
    # A full-width letter is the one non-ASCII form that is read as part of an encoded run.
    joined = _JOINT.join(
        text.encode("ascii") if text.isascii() else _ascii_bytes(text).tobytes() for text in texts
    )
    lengths = np.fromiter((len(text) + len(_JOINT) for text in texts), dtype=np.int64, count=len(texts))
    ends = np.cumsum(lengths)
    found: set[int] = set()
    for url_safe in (False, True):
        if url_safe and joined.count(b"-") + joined.count(b"_") == 4 * (len(texts) - 1):
            break
        table = base64_values(url_safe, False)
        values = np.frombuffer(joined.translate(table.tobytes(), _where(table, _SKIP)), dtype=np.uint8)
        for rot13 in (False, True):
            places = _base64_places(values, least, rot13)
            if not len(places):
                continue
            at = np.flatnonzero(table[np.frombuffer(joined, dtype=np.uint8)] != _SKIP)
            owners = np.searchsorted(ends, at[places], side="right")
            for owner in np.unique(owners).tolist():
                here = places[owners == owner].tolist()
                if len(here) > _MANY or any(_holds_text(values, place, least, rot13) for place in here):
                    found.add(owner)
    for rot13 in (False, True):
        places = list(_hex_places(joined, hex_values(rot13), least))
        found.update(np.searchsorted(ends, places, side="right").tolist())
    return sorted(found)


def _base64_places(values: Bytes, least: int, rot13: bool) -> Indices:
    # A run of `least` bytes holds at least this many whole groups of three bytes, in one of four alignments.
    # Three of them, evenly spaced, are looked at everywhere; some between them, only where these are text.
    spacing = max((least - 4) // 3 // 3, 1)
    count = len(values) // 4
    if count < 3 * spacing:
        return np.empty(0, dtype=np.int64)
    # By alignment and group: the group's four values as two halves of two values.
    padded = np.concatenate((values, np.zeros(8, dtype=np.uint8)))
    halves = np.ndarray((4, count, 2), dtype="<u2", buffer=padded, strides=(1, 4, 2))
    _, good, _ = _read_groups(halves[:, ::spacing], rot13)
    shifts, hits = np.nonzero(good[:, :-2] & good[:, 1:-1] & good[:, 2:])
    hits *= spacing
    for offset in (1, spacing + 1, 2)[:spacing]:
        if not len(hits):
            break
        _, good, last = _read_groups(halves[shifts, hits + offset], rot13)
        first, _, _ = _read_groups(halves[shifts, hits + offset + 1], rot13)
        kept = good & _FOLLOWS_FLAT[last * 4 + first]
        shifts, hits = shifts[kept], hits[kept]
    # The middle one of the three: the first may reach into the joint before the text.
    return shifts + 4 * (hits + spacing)


def _holds_text(values: Bytes, place: int, least: int, rot13: bool) -> bool:
    """Whether the groups around a place carry at least `least` bytes of text."""
    reach = (least // 3 + 2) * 4
    around = values[place % 4 if place < reach else place - reach : place + 3 * reach]
    around = around[: len(around) // 4 * 4]
    if rot13:
        around = _rot13_values()[around]
    flat = _joined_bytes(around.reshape(-1, 4))
    return bool(text_runs(flat, least))


def _joined_bytes(groups: Bytes) -> Bytes:
    a, b, c, d = (groups[:, i] for i in range(4))
    return np.stack((a << 2 | b >> 4, (b & 15) << 4 | c >> 2, (c & 3) << 6 | d), axis=1).ravel()


@cache
def _rot13_values() -> Bytes:
    """Value of a base64 character → value of its rot13."""
    return base64_values(False, True)[list(_UPPER + _LOWER + _DIGITS + b"+/")]


def _read_groups(halves: NDArray[np.uint16], rot13: bool) -> tuple[Bytes, NDArray[np.bool_], Bytes]:
    """For groups of four values: class of the first byte, whether all may be text, class of the last."""
    fronts, backs, good = _group_tables(rot13)
    front, back = fronts[halves[..., 0]], backs[halves[..., 1]]
    return front >> 4, good[front.astype(np.intp) << 6 | back], back & 3


@cache
def _group_tables(rot13: bool) -> tuple[Bytes, Bytes, NDArray[np.bool_]]:
    """Tables by half a group (two values): class of its whole byte and nibble of the byte in the middle.

    The third says for front << 6 | back whether the three bytes follow one another in a text.
    """
    half = np.arange(1 << 14)
    low, high = half & 63, half >> 8
    if rot13:
        low, high = _rot13_values()[low].astype(np.int64), _rot13_values()[high].astype(np.int64)
    fronts = _CLASSES[(low << 2 | high >> 4) & 255] << 4 | (high & 15).astype(np.uint8)
    backs = ((low >> 2) << 2).astype(np.uint8) | _CLASSES[((low & 3) << 6 | high) & 255]
    front, back = np.divmod(np.arange(1 << 12), 64)
    first, middle, last = front >> 4, _CLASSES[(front & 15) << 4 | back >> 2], back & 3
    return fronts, backs, _FOLLOWS_FLAT[first * 4 + middle] & _FOLLOWS_FLAT[middle * 4 + last]


def _hex_places(joined: bytes, table: Bytes, least: int) -> Iterator[int]:
    """Places in `joined` where a run of hex digits and separators ends that holds enough digits."""
    digits = np.flatnonzero(table < 16).astype(np.uint8).tobytes()
    marks = joined.translate((table != _OTHER).astype(np.uint8).tobytes())
    pattern = b"\x01" * (2 * least)
    at = marks.find(pattern)
    while at >= 0:
        end = marks.find(b"\0", at)
        end = len(marks) if end < 0 else end
        run = joined[at:end]
        if len(run) - len(run.translate(None, digits)) >= 2 * least:
            yield end - 1  # the first may belong to the joint before the text
        at = marks.find(pattern, end)


def _where(table: Bytes, value: int) -> bytes:
    return np.flatnonzero(table == value).astype(np.uint8).tobytes()
