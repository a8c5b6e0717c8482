"""Secrets and personal data in a text, found by maintained libraries' rules. Deterministic, with no model.

Off unless a source's policy asks for it: `label` raises the item's sensitivity, `redact` keeps the finds out of the
store, `refuse` keeps the item out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, Literal

import msgspec

from rung.errors import missing_extra
from rung.records.labels import Sensitivity


class Find(msgspec.Struct, frozen=True, kw_only=True):
    """A secret or a piece of personal data: what kind, and where; never the value itself.

    Attributes:
        family: `secret` or `personal`.
        kind: for example `github_token`, `email`, `iban`, `card`, `phone`.
        start, end: characters of the text.
    """

    family: Literal["secret", "personal"]
    kind: str
    start: int
    end: int


Detector = Callable[[str], Sequence[Find]]
"""Finds secrets and personal data in a text; an application may give its own: `ContextStore(detector=…)`."""

LABELS = {"secret": Sensitivity.RESTRICTED, "personal": Sensitivity.PERSONAL}
"""The least sensitivity of an item in which something of a family was found."""

# Entropy guesses and public addresses are left out: they name no secret.
_LEFT_OUT = frozenset({"Base64 High Entropy String", "Hex High Entropy String", "Public IP (ipv4)"})
_MAIL = re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9](?:[A-Za-z0-9-]*\.)+[A-Za-z]{2,24}(?![\w-])")
_ACCOUNT = re.compile(r"(?<![A-Za-z0-9])[A-Z]{2}\d{2}(?: ?[A-Z0-9]{4}){2,7}(?: ?[A-Z0-9]{1,4})?(?![A-Za-z0-9])")
_CARD = re.compile(r"(?<![\d.])\d(?:[ -]?\d){12,18}(?![\d.])")


def detect(text: str) -> list[Find]:
    """The finds of a text in order, none inside another; a secret goes before personal data in the same place.

    Raises:
        MissingExtraError: the libraries are not installed.
    """
    finds = sorted(
        [*_secrets(text), *_personal(text)], key=lambda find: (find.start, find.family != "secret", -find.end)
    )
    out: list[Find] = []
    for find in finds:
        if not out or find.start >= out[-1].end:
            out.append(find)
    return out


def redacted(text: str, finds: Sequence[Find]) -> str:
    """The text with each find replaced by its kind."""
    out: list[str] = []
    at = 0
    for find in finds:
        out += (text[at : find.start], f"[{find.kind} redacted]")
        at = find.end
    return "".join([*out, text[at:]])


def told(finds: Sequence[Find]) -> str:
    """How many of each kind, for an attribute or a message."""
    counts: dict[str, int] = {}
    for find in finds:
        counts[find.kind] = counts.get(find.kind, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in sorted(counts.items()))


@cache
def _plugins() -> tuple[tuple[str, Any], ...]:
    try:
        from detect_secrets.core.plugins.util import get_mapping_from_secret_type_to_class
    except ImportError:
        raise missing_extra("detect-secrets", "detect") from None
    kinds: dict[str, Any] = get_mapping_from_secret_type_to_class()
    return tuple(
        (re.sub(r"\W+", "_", name.lower()).strip("_"), made())
        for name, made in sorted(kinds.items())
        if name not in _LEFT_OUT
    )


def _secrets(text: str) -> Iterator[Find]:
    start = 0
    for line in text.splitlines(keepends=True):
        for kind, plugin in _plugins():
            for begin, end in _places(plugin, line):
                if kind == "private_key":
                    end = _key_end(text, start + begin) - start
                yield Find(family="secret", kind=kind, start=start + begin, end=start + end)
        start += len(line)


def _places(plugin: Any, line: str) -> Iterator[tuple[int, int]]:
    """Where a rule matches, whole: what the rule itself reports may be a part of it."""
    patterns = getattr(plugin, "denylist", None)
    if patterns is not None:
        for pattern in patterns:
            for found in pattern.finditer(line):
                if found.start() < found.end():
                    yield found.span()
        return
    for value in plugin.analyze_string(line):
        place = line.find(value) if value else -1
        if place >= 0:
            yield place, place + len(value)


def _key_end(text: str, start: int) -> int:
    """Where a private key ends: with its closing line, or with the text where that is cut off."""
    found = re.compile(r"-----END [A-Z ]*PRIVATE KEY[A-Z ]*-----").search(text, start)
    return len(text) if found is None else found.end()


def _personal(text: str) -> Iterator[Find]:
    try:
        from phonenumbers import Leniency, PhoneNumberMatcher
        from stdnum import iban, luhn
    except ImportError:
        raise missing_extra("phonenumbers` and `python-stdnum", "detect") from None
    for found in _MAIL.finditer(text):
        yield Find(family="personal", kind="email", start=found.start(), end=found.end())
    for found in _ACCOUNT.finditer(text):
        if iban.is_valid(found[0]):
            yield Find(family="personal", kind="iban", start=found.start(), end=found.end())
    for found in _CARD.finditer(text):
        if luhn.is_valid(re.sub(r"\D", "", found[0])):
            yield Find(family="personal", kind="card", start=found.start(), end=found.end())
    for number in PhoneNumberMatcher(text, None, leniency=Leniency.VALID):
        yield Find(family="personal", kind="phone", start=number.start, end=number.end)
