"""Typed literals: addresses, account numbers and tokens that matter at any length.

A literal is found by its own form, not by the run around it: the same account number in two texts is a hit
even when nothing else is shared. Values are compared in a canonical form (digits without separators, hosts
in lower case).
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import pairwise
from typing import Literal as OneOf

from .fold import beyond_ascii
from .joint import Joint, long_runs

Kind = OneOf["url", "email", "iban", "number", "hex", "token"]
ALL_KINDS: frozenset[Kind] = frozenset(("url", "email", "iban", "number", "hex", "token"))


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
_MAILBOX = re.compile(r"[\w.+%-]{1,64}")
_MAIL_DOMAIN = re.compile(r"(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")
_IBAN = re.compile(
    r"(?<![A-Za-z0-9])[A-Za-z]{2}[0-9]{2}(?:[ -]?[A-Za-z0-9]{4}){2,7}"
    r"(?:[ -]?[A-Za-z0-9]{1,3})?(?![A-Za-z0-9])"
)
_NUMBER = re.compile(r"[0-9](?:[ -]?[0-9]){8,63}")
_COUNTED = "0123456789" * 8 + "," + "9876543210" * 8
_INNER = ("_", ".", ",")
_FRACTION = re.compile(r"[.,][0-9]|_")
_DATE = re.compile(
    r"(?:19|20)[0-9][0-9][-./]?(?:0[1-9]|1[0-2])[-./]?(?:0[1-9]|[12][0-9]|3[01])(?:[ \-./]|[0-9]{2,9}$|$)"
)
_HEX = re.compile(r"[0-9A-Fa-f]{4,512}(?:-[0-9A-Fa-f]{2,64}){0,8}")
_LONGEST_TOKEN = 512


def _marks(chars: str) -> bytes:
    return bytes(1 if chr(byte) in chars else 0 for byte in range(256))


_DIGIT_BYTES = _marks(string.digits + " -")
_NO_DIGITS = bytes(byte for byte in range(256) if chr(byte) not in string.digits)
_HEX_BYTES = _marks(string.hexdigits + "-")
_WORD_BYTES = _marks(string.ascii_letters + string.digits + "+/_-")
_LETTER_OR_DIGIT = bytes(
    97 if chr(byte) in string.ascii_letters else 48 if chr(byte) in string.digits else 32 for byte in range(256)
)
# Names that nobody can own (RFC 2606) and every manual has.
_RESERVED = ("example.com", "example.org", "example.net")
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


def literals(text: str, first_party: Sequence[str] = (), kinds: Collection[Kind] = ALL_KINDS) -> list[Literal]:
    """The typed literals of a text, left to right, without those of first-party hosts (`*.acme.com`).

    `kinds` leaves others out.
    """
    found = _ascii_literals(text, kinds) if text.isascii() else _seen_through(text, kinds)
    return [x for x in found if not _is_first_party(x.host, (*_RESERVED, *first_party))]


def with_literals(joint: Joint) -> dict[int, set[Kind]]:
    """The texts that may have literals, by index, and of which kinds: a superset, cheap for many."""
    found: dict[int, set[Kind]] = {}

    def note(kind: Kind, owners: Iterable[int]) -> None:
        for owner in owners:
            found.setdefault(owner, set()).add(kind)

    data = joint.data
    note("url", joint.holders(b"://"))
    note("email", joint.holders(b"@"))
    note("iban", joint.holders(b"aa00", data.translate(_LETTER_OR_DIGIT)))
    note("hex", joint.holders(b"\x01" * HEX_DIGITS, data.translate(_HEX_BYTES)))
    note("token", (joint.owner(a) for a, _ in long_runs(data.translate(_WORD_BYTES), TOKEN_LENGTH)))
    numbers = _spans(data.translate(_DIGIT_BYTES), NUMBER_DIGITS)
    note("number", (joint.owner(a) for a, b in numbers if len(data[a:b].translate(None, _NO_DIGITS)) >= NUMBER_DIGITS))
    for owner in joint.speakers(_UNSEEN):
        found[owner] = set(ALL_KINDS)
    return found


def _seen_through(text: str, kinds: Collection[Kind]) -> list[Literal]:
    met = "".join(beyond_ascii(text))
    clean = text.translate(_WIDE) if _WIDE_FORMS.search(met) else text
    if not _INVISIBLE.search(met):
        return _ascii_literals(clean, kinds)
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
        for found in _ascii_literals(_INVISIBLE.sub("", clean), kinds)
    ]


def _is_first_party(host: str | None, patterns: Sequence[str]) -> bool:
    # `*.acme.com` speaks of the domain itself as well.
    return host is not None and any(
        fnmatchcase(host, p.lower()) or (p.startswith("*.") and host == p[2:].lower()) for p in patterns
    )


def _ascii_literals(text: str, kinds: Collection[Kind]) -> list[Literal]:
    data = text.encode("ascii", "replace")
    found: list[Literal] = []
    if "url" in kinds:
        found += _urls(text)
    if "email" in kinds:
        found += _emails(text)
    if "number" in kinds:
        for start, end in _spans(data.translate(_DIGIT_BYTES), NUMBER_DIGITS):
            found += _numbers(text, start, end)
    if "iban" in kinds and b"aa00" in data.translate(_LETTER_OR_DIGIT):
        found += _ibans(text)
    if "hex" in kinds:
        for start, end in _spans(data.translate(_HEX_BYTES), HEX_DIGITS):
            found += _hexes(text, start, end)
    if "token" in kinds:
        for start, end in long_runs(data.translate(_WORD_BYTES), TOKEN_LENGTH):
            found += _tokens(text, start, end)
    return sorted(found, key=lambda literal: (literal.span[0], -literal.span[1]))


def _spans(marks: bytes, least: int) -> Iterator[tuple[int, int]]:
    """Stretches of at least `least` marks."""
    pattern = b"\x01" * least
    start = marks.find(pattern)
    while start >= 0:
        end = marks.find(b"\0", start)
        end = len(marks) if end < 0 else end
        yield start, end
        start = marks.find(pattern, end)


def _emails(text: str) -> Iterator[Literal]:
    at = text.find("@")
    while at >= 0:
        after = _MAIL_DOMAIN.match(text, at + 1)
        # The mailbox is read backwards: its beginning is not known.
        before = _MAILBOX.match(text[max(at - 64, 0) : at][::-1]) if after else None
        if before and after:
            start = at - before.end()
            value = text[start : after.end()].casefold()
            yield Literal(kind="email", value=value, span=(start, after.end()), host=after[0].lower())
        at = text.find("@", at + 1)


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
        # Without a dot it is a machine of one's own, or the beginning of a pattern.
        if "." in host.strip("."):
            yield Literal(kind="url", value=value, span=(m.start() - len(scheme[0]), end), host=host.partition(":")[0])


def _numbers(text: str, start: int, end: int) -> Iterator[Literal]:
    for m in _NUMBER.finditer(text, start, end):
        around = text[max(m.start() - 1, 0) : m.start()], text[m.end() : m.end() + 2]
        if around[0].isalnum() or around[0] in _INNER or around[1][:1].isalnum() or _FRACTION.match(around[1]):
            continue
        value = m[0].replace(" ", "").replace("-", "")
        # A date, a round number and 123456789 are no one's account.
        if len(set(value)) > 2 and value not in _COUNTED and not _DATE.match(m[0]):
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


def _hexes(text: str, start: int, end: int) -> Iterator[Literal]:
    if text[end : end + 1].isalnum():
        # The hex digits are the beginning of a word.
        end = text.rfind("-", start, end)
    first = start
    if text[start - 2 : start].lower() == "0x":
        first = start - 2
    elif start and text[start - 1].isalnum():
        start = first = text.find("-", start, end) + 1 or end
    for m in _HEX.finditer(text, start, end):
        value = m[0].lower().removeprefix("0x").replace("-", "")
        if len(value) >= HEX_DIGITS and not value.isdigit() and not value.isalpha():
            yield Literal(kind="hex", value=value, span=(first if m.start() == start else m.start(), m.end()))


def _tokens(text: str, start: int, end: int) -> Iterator[Literal]:
    value = text[start:end].strip("-_/")
    mixed = re.search("[a-z]", value) and re.search("[A-Z]", value)
    if mixed and len(value) <= _LONGEST_TOKEN and sum(c.isdigit() for c in value) >= 3 and "//" not in value:
        at = text.index(value, start)
        yield Literal(kind="token", value=value, span=(at, at + len(value)))
