"""Typed literals: addresses, account numbers and tokens that matter at any length.

A literal is found by its own form, not by the run around it: the same account number in two texts is a hit
even when nothing else is shared. Values are compared in a canonical form (digits without separators, hosts
in lower case).
"""

from __future__ import annotations

import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal as OneOf

from .fold import beyond_ascii
from .joint import Joint

Kind = OneOf["url", "email", "iban", "number", "hex", "token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """One literal: its kind, its canonical value, its span in the text, and the host or mail domain if it
    has one."""

    kind: Kind
    value: str
    span: tuple[int, int]
    host: str | None = None


NUMBER_DIGITS = 9
HEX_DIGITS = 16
TOKEN_LENGTH = 24

_ADDRESS = re.compile(r"://([^\s/?#\"'<>()\[\]{}|\\^`]+)([^\s\"'<>()\[\]{}|\\^`]*)")
_SCHEMES = ("http", "https", "ftp", "ws", "wss")
_EMAIL = re.compile(r"(?<![\w.+%-])[\w.+%-]{1,64}@((?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![\w-])")
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}"
    r"(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
# No look-behind: a pattern that begins with a digit is searched for much faster.
_NUMBER = re.compile(r"[0-9](?:[ -]?[0-9]){8,63}(?![\w]|[.,][0-9])", re.ASCII)
_DATE = re.compile(
    r"(?:19|20)[0-9][0-9][-./]?(?:0[1-9]|1[0-2])[-./]?(?:0[1-9]|[12][0-9]|3[01])(?:[ \-./]|[0-9]{2,9}$|$)"
)
_HEX = re.compile(r"(?<![A-Za-z0-9])(?:0x)?[0-9A-Fa-f]{4,512}(?:-[0-9A-Fa-f]{2,64}){0,8}(?![A-Za-z0-9])")
_TOKEN = re.compile(r"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{24,512}(?![A-Za-z0-9+/_-])")


def _marks(chars: str) -> bytes:
    return bytes(1 if chr(byte) in chars else 0 for byte in range(256))


_DIGIT_BYTES = _marks(string.digits + " -")
_NO_DIGITS = bytes(byte for byte in range(256) if chr(byte) not in string.digits)
_LONG_MARKS = re.compile(b"\x01{%d,}" % NUMBER_DIGITS)
_HEX_BYTES = _marks(string.hexdigits + "-")
_WORD_BYTES = _marks(string.ascii_letters + string.digits + "+/_-")
_LETTER_OR_DIGIT = bytes(
    97 if chr(byte) in string.ascii_letters else 48 if chr(byte) in string.digits else 32 for byte in range(256)
)
# What may stand inside a literal without being seen, and full-width forms.
_INVISIBLE = re.compile(
    "[\u00ad\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e01ef]+"
)
_WIDE = {code: code - 0xFEE0 for code in range(0xFF01, 0xFF5F)} | {
    0xA0: 32,
    0x202F: 32,
    0x2007: 32,
    0x2011: 45,
    0x2013: 45,
}

_WIDE_FORMS = re.compile("[\uff01-\uff5e\u00a0\u202f\u2007\u2011\u2013]+")
_UNSEEN = re.compile(f"{_INVISIBLE.pattern}|{_WIDE_FORMS.pattern}")


def literals(text: str, first_party: Sequence[str] = ()) -> list[Literal]:
    """The typed literals of a text, left to right, without those of a first-party host (`*.acme.com`,
    `acme.com`)."""
    found = _ascii_literals(text) if text.isascii() else _seen_through(text)
    return [literal for literal in found if not _is_first_party(literal.host, first_party)]


def with_literals(joint: Joint) -> list[int]:
    """Indices of the texts that may have literals: a superset, cheap for many."""
    found = {*joint.holders(b"://"), *joint.holders(b"@"), *joint.speakers(_UNSEEN)}
    for table, run in (
        (_HEX_BYTES, b"\x01" * HEX_DIGITS),
        (_WORD_BYTES, b"\x01" * TOKEN_LENGTH),
        (_LETTER_OR_DIGIT, b"aa00"),
    ):
        found.update(joint.holders(run, joint.data.translate(table)))
    marks = joint.data.translate(_DIGIT_BYTES)
    for long in _LONG_MARKS.finditer(marks):
        if len(joint.data[long.start() : long.end()].translate(None, _NO_DIGITS)) >= NUMBER_DIGITS:
            found.add(joint.owner(long.start()))
    return sorted(found)


def _seen_through(text: str) -> list[Literal]:
    met = "".join(beyond_ascii(text))
    clean = text.translate(_WIDE) if _WIDE_FORMS.search(met) else text
    if not _INVISIBLE.search(met):
        return _ascii_literals(clean)
    gaps = [found.span() for found in _INVISIBLE.finditer(clean)]
    kept: list[int] = []
    for (_, start), (end, _) in pairwise(((0, 0), *gaps, (len(clean), 0))):
        kept += range(start, end)
    return [
        Literal(
            kind=found.kind,
            value=found.value,
            span=(kept[found.span[0]], kept[found.span[1] - 1] + 1),
            host=found.host,
        )
        for found in _ascii_literals(_INVISIBLE.sub("", clean))
    ]


def _is_first_party(host: str | None, patterns: Sequence[str]) -> bool:
    # `*.acme.com` speaks of the domain itself as well.
    return host is not None and any(
        fnmatchcase(host, p.lower()) or (p.startswith("*.") and host == p[2:].lower()) for p in patterns
    )


def _ascii_literals(text: str) -> list[Literal]:
    found: list[Literal] = []
    if "://" in text:
        found += _urls(text)
    if "@" in text:
        found += (
            Literal(kind="email", value=m[0].casefold(), span=m.span(), host=m[1].lower())
            for m in _EMAIL.finditer(text)
        )
    data = text.encode("ascii", "replace")
    run = b"\x01" * NUMBER_DIGITS
    # The second look, without the separators, is slower and rarely needed.
    if run in data.translate(_DIGIT_BYTES) and run in data.translate(_DIGIT_BYTES, b" -"):
        found += _numbers(text)
    if b"aa00" in data.translate(_LETTER_OR_DIGIT):
        found += _ibans(text)
    if b"\x01" * HEX_DIGITS in data.translate(_HEX_BYTES):
        found += _hexes(text)
    if b"\x01" * TOKEN_LENGTH in data.translate(_WORD_BYTES):
        found += _tokens(text)
    return sorted(found, key=lambda literal: (literal.span[0], -literal.span[1]))


def _urls(text: str) -> Iterator[Literal]:
    for m in _ADDRESS.finditer(text):
        scheme = re.search(r"[A-Za-z]{0,8}$", text[max(m.start() - 8, 0) : m.start()])
        if scheme is None or scheme[0].lower() not in _SCHEMES:
            continue
        host = m[1].rpartition("@")[2].lower().removesuffix(":443").removesuffix(":80")
        rest = m[2].rstrip(".,;:!?*_~")
        end = m.end() - (len(m[2]) - len(rest))
        host = host.rstrip(".,;:!?*_~") if not rest else host
        value = host.removeprefix("www.") + rest.rstrip("/")
        if host:
            yield Literal(kind="url", value=value, span=(m.start() - len(scheme[0]), end), host=host.partition(":")[0])


def _numbers(text: str) -> Iterator[Literal]:
    for m in _NUMBER.finditer(text):
        before = text[m.start() - 1 : m.start()]
        if before.isalnum() or before in ("_", ".", ","):
            continue
        value = re.sub(r"\D", "", m[0])
        # A date and a round number are no one's account.
        if len(value) >= NUMBER_DIGITS and len(set(value)) > 2 and not _DATE.match(m[0]):
            yield Literal(kind="number", value=value, span=m.span())


def _ibans(text: str) -> Iterator[Literal]:
    for m in _IBAN.finditer(text):
        value = re.sub(r"[ -]", "", m[0]).upper()
        if sum(c.isdigit() for c in value) >= NUMBER_DIGITS - 1 and _iban_checks(value):
            yield Literal(kind="iban", value=value, span=m.span())


def _iban_checks(value: str) -> bool:
    """ISO 13616: the rearranged number leaves 1 modulo 97."""
    if not 15 <= len(value) <= 34:
        return False
    return int("".join(str(int(c, 36)) for c in value[4:] + value[:4])) % 97 == 1


def _hexes(text: str) -> Iterator[Literal]:
    for m in _HEX.finditer(text):
        value = m[0].lower().removeprefix("0x").replace("-", "")
        if len(value) >= HEX_DIGITS and not value.isdigit() and not value.isalpha():
            yield Literal(kind="hex", value=value, span=m.span())


def _tokens(text: str) -> Iterator[Literal]:
    for m in _TOKEN.finditer(text):
        value = m[0].rstrip("-_")
        mixed = re.search("[a-z]", value) and re.search("[A-Z]", value)
        if mixed and sum(c.isdigit() for c in value) >= 3 and "//" not in value:
            yield Literal(kind="token", value=value, span=m.span())
