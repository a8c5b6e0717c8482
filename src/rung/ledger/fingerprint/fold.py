"""The characters of a normalised text: which are kept, and which count as the same.

Only letters and digits remain, in one canonical form each: compatibility forms and combining marks are
taken apart, case is folded, look-alikes become their prototype (UTS #39), and what differs only by font or
by case of a look-alike (`i l 1`, `o 0`, `m rn`) is one class. Everything else (white space, punctuation,
controls, zero-width, bidirectional and tag characters, variation selectors) is dropped, so its presence or
absence makes no difference.

The fold works character by character: the fold of a passage is a substring of the fold of every text that
holds it.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Variant = Literal["look", "case", "rot13"]
"""How a character is read: by its look, by its case first (`Н` is `н`, not `H`), or by rot13 of its look."""

_MERGED = {"i": "l", "1": "l", "0": "o", "m": "rn"}
ROT13 = {a + i: a + (i + 13) % 26 for a in (65, 97) for i in range(26)}
"""Code point → code point, for ASCII letters."""
_NON_ASCII = re.compile(r"[^\x00-\x7f]+")
# Enclosed letters that have no compatibility decomposition: first code point, number of letters.
_ENCLOSED = ((0x1F150, 26), (0x1F170, 26), (0x1F1E6, 26))
_SMALL_CAPITAL = re.compile(r"LATIN LETTER SMALL CAPITAL ([A-Z])$")
# Drawn lines and bullets that the look-alike data reads as letters would glue a table's rule to its words.
_IGNORED = re.compile("[\u2190-\u21ff\u2500-\u27bf\u00ad\u034f\u115f\u1160\u17b4\u17b5\u3164\uffa0]")


def _ascii_table(rot13: bool) -> tuple[bytes, bytes]:
    table, deleted = bytearray(range(256)), bytearray()
    for code in range(128):
        char = chr(code)
        if not char.isalnum():
            deleted.append(code)
            continue
        char = char.lower()
        char = char.translate(ROT13) if rot13 else char
        # `m` is spelled out after the translation, which maps one byte to one.
        table[code] = ord(char if char == "m" else _MERGED.get(char, char))
    return bytes(table), bytes(deleted)


_PLAIN_TABLE, _DELETED = _ascii_table(rot13=False)
_ZERO_TABLE = bytes(0 if code in _DELETED else char for code, char in enumerate(_PLAIN_TABLE))
_ROT13_TABLE, _ = _ascii_table(rot13=True)


@cache
def _confusables() -> dict[str, str]:
    text = resources.files("rung.ledger.fingerprint").joinpath("confusables.tsv").read_text("utf-8")
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line.startswith("#"):
            prototype, _, sources = line.partition("\t")
            found.update(dict.fromkeys(sources, prototype))
    return found


def spelled_letter(char: str) -> str:
    """One non-ASCII character as the letters it looks like, case kept."""
    code = ord(char)
    for first, count in _ENCLOSED:
        if first <= code < first + count:
            return chr(65 + code - first)
    digit = unicodedata.decimal(char, None)
    if digit is not None:
        return str(digit)
    small = _SMALL_CAPITAL.match(unicodedata.name(char, ""))
    if small:
        return small[1].lower()
    return _confusables().get(char, char)


def _is_kept(char: str) -> bool:
    return unicodedata.category(char)[0] in "LN" and not _IGNORED.match(char)


def _letters(char: str, *, case_first: bool) -> str:
    """One non-ASCII character as its canonical lower-case letters and digits, before classes are merged."""
    if _IGNORED.match(char):
        return ""
    text = char.casefold() if case_first else char
    for _ in range(3):
        text = unicodedata.normalize("NFKD", text)
        text = "".join(c if c < "\x80" else spelled_letter(c) for c in text)
        text = text.casefold()
    return "".join(c for c in unicodedata.normalize("NFKD", text) if _is_kept(c))


class _Letters(dict[int, str]):
    """Code point → letters, filled as characters are met; ASCII stays for the byte tables."""

    def __init__(self, *, case_first: bool) -> None:
        super().__init__()
        self._case_first = case_first

    def __missing__(self, code: int) -> str:
        found = chr(code) if code < 128 else _letters(chr(code), case_first=self._case_first)
        self[code] = found
        return found


_BY_LOOK = _Letters(case_first=False)
_BY_CASE = _Letters(case_first=True)


_ASCII = bytes(range(128))
_FEW = 12


def beyond_ascii(text: str) -> set[str]:
    """The distinct characters of a text that are not ASCII."""
    if text.isascii():
        return set()
    return set(text.encode("utf-8", "surrogatepass").translate(None, _ASCII).decode("utf-8", "surrogatepass"))


def _spelled(text: str, letters: _Letters, met: set[str] | None = None) -> str:
    """The text with every non-ASCII character as its letters; `met`: those that it has, or some more."""
    met = beyond_ascii(text) if met is None or len(met) > _FEW else met
    if len(met) > _FEW:
        return _NON_ASCII.sub(lambda found: found[0].translate(letters), text)
    # A quotation mark here and there: one fast pass for each is cheaper than a search for all. What a
    # character is spelled with is never itself replaced by something else.
    for char in met:
        text = text.replace(char, letters[ord(char)])
    return text


def fold(text: str, variant: Variant = "look") -> str:
    """The letters and digits of a text in canonical form; what `N` counts."""
    if text.isascii():
        data = text.encode("ascii")
    else:
        data = _spelled(text, _BY_CASE if variant == "case" else _BY_LOOK).encode("utf-8")
    # Bytes of a longer UTF-8 sequence are above 0x7f: the ASCII tables leave them alone.
    return _folded(data, _ROT13_TABLE if variant == "rot13" else _PLAIN_TABLE).decode("utf-8")


def spelled_in_ascii(text: str, met: set[str]) -> bytes | None:
    """The text with every other character as its letters, if these are all ASCII; `met`: at least those it has."""
    spelled = _spelled(text, _BY_LOOK, met)
    return spelled.encode("ascii") if spelled.isascii() else None


def fold_ascii(parts: Sequence[bytes]) -> list[bytes]:
    """The folds of ASCII texts, as bytes, in one pass."""
    import numpy as np

    if not parts:
        return []
    data = np.frombuffer(b"\xff".join(parts).translate(_ZERO_TABLE), dtype=np.uint8)
    # To let `translate` delete takes longer.
    return np.compress(data.astype(np.bool_), data).tobytes().replace(b"m", b"rn").split(b"\xff")


def _folded(data: bytes, table: bytes) -> bytes:
    return data.translate(table, _DELETED).replace(b"m", b"rn")


def readings(text: str) -> tuple[Variant, ...]:
    """The ways to read a text that differ: by look, and by case first."""
    return ("look", "case") if reads_by_case(beyond_ascii(text)) else ("look",)


def reads_by_case(chars: Iterable[str]) -> bool:
    """True if some of these non-ASCII characters read differently by case than by look."""
    return any(_BY_CASE[code] != _BY_LOOK[code] for code in map(ord, chars))


def fold_origins(text: str, variant: Variant = "look") -> NDArray[np.int64]:
    """For each character of `fold(text, variant)` the index in `text` that it came from."""
    import numpy as np

    points = np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype="<u4")
    distinct, which = np.unique(points, return_inverse=True)
    widths = np.array([len(fold(chr(point), variant)) for point in distinct.tolist()], dtype=np.int64)
    return np.repeat(np.arange(len(text), dtype=np.int64), widths[which])


def codes(text: str) -> bytes:
    """One byte for each character of a folded text, for hashing: ASCII as it is, the rest hashed to
    128..255."""
    if text.isascii():
        return text.encode("ascii")
    import numpy as np

    points = np.frombuffer(text.encode("utf-32-le"), dtype="<u4")
    high = ((points * np.uint32(2654435761)) >> np.uint32(25)) | np.uint32(128)
    return np.where(points < 128, points, high).astype(np.uint8).tobytes()
