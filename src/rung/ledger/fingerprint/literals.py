"""Typed literals: addresses, account numbers and tokens that matter at any length.

A literal is found by its own form, not by the run around it: the same account number in two texts is a hit even when
nothing else is shared. What is one is decided on the untrusted side, where everyday numbers and reserved names are left
out; the protected side is looked through for it in every way that it may be written.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import lru_cache
from typing import Literal as OneOf

from . import addresses
from .addresses import Address, refanged
from .fold import fold
from .hashing import of_literal
from .layers import Layer
from .looks import looks_of, replaced, unseen
from .numbers import GAP, grams_of, numbers, telling
from .signs import ALL_SIGNS, HEX_DIGITS, TOKEN_LENGTH, Sign

Kind = OneOf["url", "email", "iban", "number", "hex", "token"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Literal:
    """One literal: its kind, its canonical value, its span in the text.

    `host` is the host or mail domain if it has one, `is_spelled` says that its dots were written to be read
    (`host[.]com`), `grams` are the nine digits by which a number is known.
    """

    kind: Kind
    value: str
    span: tuple[int, int]
    host: str | None = None
    is_spelled: bool = False
    grams: tuple[str, ...] = ()

    def form(self) -> str | None:
        """How it looks in a fold, without its punctuation; None where that says nothing."""
        if self.kind == "url" and self.value == self.host:
            return None  # the bare name of a host is everyday use
        form = fold(self.value)
        return form if len(form) >= LEAST_FORM else None

    def hashes(self) -> set[int]:
        """Under what it is kept in the index, its forms apart."""
        found = {of_literal(self.kind, self.value), *(of_literal("digits", gram) for gram in self.grams)}
        if self.host is not None:
            found.add(_of_host("host", self.host))
            if self.is_spelled:
                found.add(_of_host("spelled", self.host))
        return found


LEAST_FORM = 6
"""A shorter form says nothing by itself."""

_GAP = rf"[\W_]{{0,{GAP}}}"
_IBAN = re.compile(rf"(?<![A-Za-z0-9])([A-Za-z]){_GAP}([A-Za-z]){_GAP}[0-9](?={_GAP}[0-9])")
_NEXT = re.compile(rf"{_GAP}([A-Za-z0-9])")
_HEX = re.compile(r"(?<![0-9A-Za-z])(?:0[xX])?([0-9A-Fa-f]{4,512}(?:-[0-9A-Fa-f]{2,64}){0,8})(?![0-9A-Za-z])")
# Fingerprints of keys, dumps: groups of one size with one mark between them.
_HEX_GROUPS = [
    re.compile(
        rf"(?<![0-9A-Za-z])([0-9A-Fa-f]{{{size}}}([ :._])(?:[0-9A-Fa-f]{{{size}}}\2){{{HEX_DIGITS // size - 2},255}}"
        rf"[0-9A-Fa-f]{{1,{size}}})(?![0-9A-Za-z])"
    )
    for size in (2, 4, 8)
]
_TOKEN = re.compile(rf"(?<![A-Za-z0-9+/_-])[A-Za-z0-9+/_-]{{{TOKEN_LENGTH},}}")
_LONGEST_TOKEN = 512
_AS_DIGITS = str.maketrans("OIL", "011")
# Lengths by country, from the registry of ISO 13616.
_IBAN_LENGTHS = {
    country: length
    for length, countries in {
        15: "NO", 16: "BE", 18: "DK FO FI GL NL SD", 19: "MK SI", 20: "AT BA EE KZ LT LU XK MN",
        21: "CH CR HR LI LV", 22: "BG BH DE GB GE IE ME RS VA", 23: "AE GI IL IQ OM SO TL",
        24: "AD CZ ES MD PK RO SA SE SK TN VG", 25: "LY PT ST", 26: "IS TR", 27: "BI DJ FR GR IT MC MR SM",
        28: "AL AZ BY CY DO GT HN HU LB NI PL SV", 29: "BR EG PS QA UA", 30: "JO KW MU YE", 31: "MT SC", 32: "LC",
        33: "RU",
    }.items()
    for country in countries.split()
}  # fmt: skip

# Names that nobody can own (RFC 2606) and every manual has.
_RESERVED = ("*.example.com", "*.example.org", "*.example.net")


def literals(
    text: str,
    first_party: Sequence[str] = (),
    signs: AbstractSet[Sign] = ALL_SIGNS,
    looks: Mapping[str, str] | None = None,
) -> list[Literal]:
    """The typed literals of a text, left to right, without those of first-party hosts (`*.acme.com`).

    `signs` says what to look for, `looks` what characters look like others, where that is known.
    """
    layer, dots = _read(text, signs, looks)
    found = _found_in(layer.text, signs, dots)
    if layer.path:
        found = [moved(x, layer) for x in found]
    ours = (*_RESERVED, *first_party)
    return [x for x in found if x.host is None or not _is_first_party(x.host, ours)]


def _read(text: str, signs: AbstractSet[Sign], looks: Mapping[str, str] | None) -> tuple[Layer, list[int]]:
    """The text as it is read where addresses are looked for, and the places of the dots that were spelled."""
    layer = seen_through(text, looks)
    edits = refanged(layer.text, is_spelled="spelled" in signs, is_mail="email" in signs)
    dots: list[int] = []
    shift = 0
    for start, end, new in edits:
        dots += [start + shift] * (new == ".")
        shift += len(new) - (end - start)
    return _edited(layer, edits), dots


def seen_through(text: str, looks: Mapping[str, str] | None = None) -> Layer:
    """The text as it looks: ASCII characters for those that look like them, nothing for those that are not seen."""
    if text.isascii():
        return Layer(text)
    looks = looks_of(text) if looks is None else looks
    return _edited(Layer(replaced(text, looks)), unseen(text, looks))


def _edited(layer: Layer, edits: Sequence[tuple[int, int, str]]) -> Layer:
    return layer.edited(edits, "literals") if edits else layer


def moved(literal: Literal, layer: Layer) -> Literal:
    """A literal of a layer's text at its place in the original text."""
    starts, ends = layer.spans()
    return replace(literal, span=(int(starts[literal.span[0]]), int(ends[literal.span[1] - 1])))


@lru_cache(maxsize=1 << 12)
def _is_first_party(host: str, patterns: Sequence[str]) -> bool:
    # `*.acme.com` speaks of the domain itself as well.
    return any(fnmatchcase(host, p.lower()) or (p.startswith("*.") and host == p[2:].lower()) for p in patterns)


@lru_cache(maxsize=1 << 12)
def _of_host(kind: str, host: str) -> int:
    return of_literal(kind, host)


def _found_in(text: str, signs: AbstractSet[Sign], dots: Sequence[int]) -> list[Literal]:
    found: list[Literal] = []
    if "url" in signs:
        found += (_addressed("url", one) for one in (*addresses.urls(text), *addresses.spelled(text, dots)))
    if "email" in signs:
        found += (_addressed("email", one) for one in addresses.mails(text))
    if "number" in signs:
        found += (Literal(kind="number", value=x.digits, span=x.span, grams=x.grams) for x in numbers(text))
    if "iban" in signs:
        found += _ibans(text)
    if "hex" in signs:
        found += _hexes(text)
    if "token" in signs:
        found += _tokens(text)
    return sorted(found, key=lambda literal: (literal.span[0], -literal.span[1]))


def _addressed(kind: Kind, one: Address) -> Literal:
    return Literal(kind=kind, value=one.value, span=one.span, host=one.host, is_spelled=one.is_spelled)


def _ibans(text: str) -> Iterator[Literal]:
    for m in _IBAN.finditer(text):
        length = _IBAN_LENGTHS.get((m[1] + m[2]).upper(), 0)
        value, end = m[1] + m[2] + m[0][-1], m.end()
        while len(value) < length and (after := _NEXT.match(text, end)):
            value, end = value + after[1], after.end()
        value = value.upper()
        if len(value) != length or _is_glued(text, end):
            continue
        # In most countries all the rest are digits.
        read = next((x for x in (value, value[:2] + value[2:].translate(_AS_DIGITS)) if _iban_checks(x)), None)
        if read is not None:
            value = read
            digits = "".join(c for c in value[4:] if c.isdigit())
            grams = grams_of(value[2:4] + digits, [2, len(digits)])
            yield Literal(kind="iban", value=value, span=(m.start(), end), grams=grams)


def _is_glued(text: str, end: int) -> bool:
    return text[end : end + 1].isalnum()


def _iban_checks(value: str) -> bool:
    """ISO 13616: the rearranged number leaves 1 modulo 97."""
    return int("".join(str(int(c, 36)) for c in value[4:] + value[:4])) % 97 == 1


def _hexes(text: str) -> Iterator[Literal]:
    for pattern in (_HEX, *_HEX_GROUPS):
        for m in pattern.finditer(text):
            value = "".join(c for c in m[1].lower() if c.isalnum())
            is_mixed = not value.isdigit() and not value.isalpha()
            if len(value) >= HEX_DIGITS and is_mixed and telling(value, 16) >= HEX_DIGITS // 2:
                yield Literal(kind="hex", value=value, span=m.span())


def _tokens(text: str) -> Iterator[Literal]:
    for m in _TOKEN.finditer(text):
        value = m[0].strip("-_/")
        mixed = re.search("[a-z]", value) and re.search("[A-Z]", value)
        is_token = TOKEN_LENGTH <= len(value) <= _LONGEST_TOKEN and sum(c.isdigit() for c in value) >= 3
        if mixed and is_token and "//" not in value:
            at = m[0].index(value) + m.start()
            yield Literal(kind="token", value=value, span=(at, at + len(value)))
