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

from .fold import beyond_ascii
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
SKIP = 255
"""A byte that a decoder passes over."""
OTHER = 254
"""A byte that ends a run."""
BASE64 = _UPPER + _LOWER + _DIGITS + b"+/"
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)}
# `?` stands for any character that is not ASCII.
_SEPARATORS = b" \t\r\n\x0b\x0c:;,.-_|\"'\\xX%#&[](){}<>=/+*~?"

# Classes of decoded bytes: not text, ASCII text, first byte of a longer sequence, one of its further bytes.
_BAD, _PLAIN, _LEAD, _NEXT = range(4)


def _byte_classes() -> Bytes:
    table = np.full(256, _BAD, dtype=np.uint8)
    table[[0, *range(9, 14), *range(28, 32)]] = _PLAIN  # white space; NUL: every second byte of UTF-16
    table[32:127] = _PLAIN
    table[0x80:0xC0] = _NEXT
    table[0xC2:0xF5] = _LEAD
    return table


CLASSES = _byte_classes()
"""Byte → class."""
_MAY_FOLLOW = np.zeros((4, 4), dtype=bool)
_MAY_FOLLOW[_PLAIN, [_PLAIN, _LEAD]] = True
_MAY_FOLLOW[_LEAD, _NEXT] = True
_MAY_FOLLOW[_NEXT, [_PLAIN, _LEAD, _NEXT]] = True
FOLLOWS = _MAY_FOLLOW.ravel()
"""Whether a byte of one class may stand before one of another: class * 4 + class."""


@cache
def base64_values(url_safe: bool, rot13: bool) -> Bytes:
    """Byte → its six bits, or 255 for a byte that is skipped."""
    table = np.full(256, SKIP, dtype=np.uint8)
    alphabet = _UPPER + _LOWER + _DIGITS + (b"-_" if url_safe else b"+/")
    for value, byte in enumerate(alphabet.translate(_ROT) if rot13 else alphabet):
        table[byte] = value
    return table


@cache
def hex_values(rot13: bool) -> Bytes:
    """Byte → its four bits, 255 for a separator, 254 for a byte that ends a run."""
    table = np.full(256, OTHER, dtype=np.uint8)
    table[list(_SEPARATORS)] = SKIP
    for value, byte in enumerate(b"0123456789abcdef".translate(_ROT) if rot13 else b"0123456789abcdef"):
        table[byte] = value
        table[bytes([byte]).upper()[0]] = value
    return table


def is_full_width(char: str) -> bool:
    """Whether a character is the full-width form of an ASCII one."""
    return "\uff01" <= char <= "\uff5e"


def ascii_text(text: str) -> bytes:
    """One byte a character; full-width forms become ASCII, what else is not ASCII becomes `?`."""
    if any(map(is_full_width, beyond_ascii(text))):
        text = text.translate(_WIDE)
    return text.encode("ascii", "replace")


def text_runs(data: Bytes, least: int) -> list[tuple[int, int]]:
    """Maximal stretches of at least `least` bytes that are text."""
    if len(data) < least:
        return []
    classes = CLASSES[data]
    # breaks[i]: no run crosses from byte i-1 to byte i
    breaks = ~FOLLOWS[classes[:-1] * 4 + classes[1:]]
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
    data = np.frombuffer(ascii_text(layer.text), dtype=np.uint8)
    for rot13 in (False, True)[: min(room, 2)]:
        name = ("rot13",) if rot13 else ()
        yield from _from_base64(layer, (*name, "base64"), data, rot13, least)
        yield from _from_hex(layer, (*name, "hex"), data, rot13, least)


def _from_base64(layer: Layer, name: Sequence[str], data: Bytes, rot13: bool, least: int) -> Iterator[Layer]:
    seen: Bytes | None = None
    for url_safe in (False, True):
        values = base64_values(url_safe, rot13)[data]
        at = np.flatnonzero(values != SKIP)
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
            flat = joined_bytes(quads)
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
        values[:-1][prefix] = SKIP
    digits = np.concatenate(([0], np.cumsum(values < 16)))
    cuts = np.concatenate(([-1], np.flatnonzero(values == OTHER), [len(values)]))
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


def joined_bytes(groups: Bytes) -> Bytes:
    """The bytes of groups of four base64 values."""
    a, b, c, d = (groups[:, i] for i in range(4))
    whole = np.stack((a << 2 | b >> 4, (b & 15) << 4 | c >> 2, (c & 3) << 6 | d), axis=1)
    return np.asarray(whole.ravel(), dtype=np.uint8)
