"""The hash chain of decisions: one per tenant."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC
from hashlib import sha256

import msgspec

from rung.errors import IntegrityError
from rung.ledger.backend import LogEntry


def link_of(previous: bytes, entry: LogEntry) -> bytes:
    """SHA-256 over the tenant's previous link and the MessagePack of the entry's other fields: 32 bytes."""
    return _link(previous, entry.number, entry)


def _link(previous: bytes, number: int, entry: LogEntry) -> bytes:
    fields = (number, entry.tenant, entry.at.astimezone(UTC), entry.kind, entry.body)
    return sha256(previous + msgspec.msgpack.encode(fields)).digest()


def chained(previous: bytes, number: int, entry: LogEntry) -> LogEntry:
    """The entry with its number and link.

    Raises:
        IntegrityError: it brings a link that does not continue the chain.
    """
    if not entry.link:
        return msgspec.structs.replace(entry, number=number, link=_link(previous, number, entry))
    if entry.link != link_of(previous, entry):
        raise IntegrityError(
            f"log entry {entry.number} does not continue the chain (import a tenant's whole log, in order)",
            culprits=(str(entry.number),),
        )
    return entry


def broken_links(entries: Iterable[LogEntry]) -> list[LogEntry]:
    """The entries of one tenant, given whole and in order, whose link contradicts them or those before."""
    broken: list[LogEntry] = []
    previous = b""
    for entry in entries:
        if entry.link != link_of(previous, entry):
            broken.append(entry)
        previous = entry.link
    return broken
