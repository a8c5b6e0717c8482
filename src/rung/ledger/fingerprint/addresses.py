"""URLs and mail addresses, also as they are written to be read and not to be clicked: `hxxp://`, `host[.]com`,
`name (at) host (dot) com`."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from .layers import Edit

_SIGN = r"[\[({<][ \t]{0,2}(?:(@|at)|(\.|dot)|(://|:))[ \t]{0,2}[\])}>]"
_BRACKETED = re.compile(rf"[ \t]{{0,2}}{_SIGN}[ \t]{{0,2}}", re.IGNORECASE)
BRACKETED = re.compile(_SIGN.encode(), re.IGNORECASE)
"""A sign of an address in brackets, from the bracket on; for looking where there is one."""
_SPACED_AT = re.compile(r"(?<=\w)(?:[ \t]{1,2}@[ \t]{0,2}|@[ \t]{1,2})(?=\w)")
_SPACED_DOT = re.compile(r"(?<=\w)[ \t]{1,2}\.[ \t]{1,2}(?=\w)")
_SPACED_COLON = re.compile(r":[ \t]{1,2}//")
_SPELLED_AT = re.compile(r"(?<=\w)[ \t]{1,2}at[ \t]{1,2}(?=[\w-]{1,63}[ \t]{1,2}dot[ \t])", re.IGNORECASE)
_SPELLED_DOT = re.compile(r"(?<=\w)[ \t]{1,2}dot[ \t]{1,2}(?=\w)", re.IGNORECASE)

_HOST_AND_REST = r"([^\s/?#\"'<>()\[\]{}|\\^`]+)([^\s\"'<>()\[\]{}|\\^`]*)"
_ADDRESS = re.compile(rf"://[ \t]{{0,2}}{_HOST_AND_REST}")
_WORLD_WIDE = re.compile(rf"(?<![\w/.@-])www\.{_HOST_AND_REST}", re.IGNORECASE)
_BARE = re.compile(r"(?<![\w/.@-])((?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24})(?![\w-])(/[^\s\"'<>()\[\]{}|\\^`]*)?")
_HOST_BACK = re.compile(r"[\w.-]+(?<![.-])")
_LONGEST_HOST = 253
_SCHEME = re.compile(r"(?:https?|h(?:xx|\*\*|__)ps?|ftp|fxp|wss?)[ \t]{0,2}\Z", re.IGNORECASE)
_MAILBOX = re.compile(r"[\w.+%-]{1,64}")
_MAIL_DOMAIN = re.compile(r"(?:[\w-]{1,63}\.){1,8}[A-Za-z]{2,24}(?![\w-])")


class Address(NamedTuple):
    """An address in its canonical form, its host, where it stands, and whether its dots were written to be read."""

    value: str
    host: str
    span: tuple[int, int]
    is_spelled: bool = False


def refanged(text: str, *, is_spelled: bool = True, is_mail: bool = True) -> list[Edit]:
    """The edits that make addresses of what is written to be read as one: with signs in brackets, in words or between
    spaces. (`is_spelled`, `is_mail`: whether the text may have some.)"""
    found: list[Edit] = []
    if is_spelled:
        found += ((*m.span(), "@" if m[1] else m[3] or ".") for m in _BRACKETED.finditer(text))
        dots = [(*m.span(), ".") for m in _SPELLED_DOT.finditer(text)]
        found += dots
        found += ((*m.span(), "@") for m in _SPELLED_AT.finditer(text) if dots)
        found += ((*m.span(), "://") for m in _SPACED_COLON.finditer(text))
    if is_mail and (" @" in text or "@ " in text):
        found += ((*m.span(), "@") for m in _SPACED_AT.finditer(text))
        found += ((*m.span(), ".") for m in _SPACED_DOT.finditer(text))
    edits: list[Edit] = []
    for edit in sorted(found):
        if not edits or edit[0] >= edits[-1][1]:
            edits.append(edit)
    return edits


def urls(text: str) -> Iterator[Address]:
    """Addresses with a scheme, or that begin with `www.`"""
    for m in _ADDRESS.finditer(text):
        scheme = _SCHEME.search(text[max(m.start() - 9, 0) : m.start()])
        if scheme is not None:
            yield from _address(m[1].rpartition("@")[2], m[2], m.start() - len(scheme[0]), m.end(), is_spelled=False)
    if "www." in text or "WWW." in text:
        for m in _WORLD_WIDE.finditer(text):
            yield from _address(m[1], m[2], *m.span(), is_spelled=False)


def spelled(text: str, dots: Sequence[int]) -> Iterator[Address]:
    """Hosts without a scheme whose dots, at these places, were written to be read."""
    end = 0
    for dot in dots:
        if dot < end:
            continue
        before = _HOST_BACK.match(text[max(dot - _LONGEST_HOST, end) : dot][::-1])
        m = _BARE.match(text, dot - (before.end() if before else 0))
        if m and m.end(1) > dot:
            end = m.end()
            yield from _address(m[1], m[2] or "", *m.span(), is_spelled=True)


def _address(host: str, rest: str, start: int, end: int, *, is_spelled: bool) -> Iterator[Address]:
    host = host.lower().removesuffix(":443").removesuffix(":80")
    after = rest.rstrip(".,;:!?*_~")
    end -= len(rest) - len(after)
    host = (host if after else host.rstrip(".,;:!?*_~")).removeprefix("www.")
    after = after.rstrip("/")
    # Without a dot it is a machine of one's own, or the beginning of a pattern.
    if "." in host.strip("."):
        yield Address(host + after, host.partition(":")[0], (start, end), is_spelled)


def mails(text: str) -> Iterator[Address]:
    """Mail addresses."""
    at = text.find("@")
    while at >= 0:
        after = _MAIL_DOMAIN.match(text, at + 1)
        # The mailbox is read backwards: its beginning is not known.
        before = _MAILBOX.match(text[max(at - 64, 0) : at][::-1]) if after else None
        if before and after:
            start = at - before.end()
            value = text[start : after.end()].casefold()
            yield Address(value, after[0].lower(), (start, after.end()))
        at = text.find("@", at + 1)
