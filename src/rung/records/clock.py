"""The one clock and the one source of ids, both injectable."""

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import UTC, datetime
from hashlib import blake2b

import msgspec

from rung.errors import InputError, kind

Clock = Callable[[], datetime]
"""Gives the present moment as an aware UTC datetime."""


def system_clock() -> datetime:
    """The machine's clock, in UTC."""
    return datetime.now(UTC)


def aware_utc(value: object, field: str) -> datetime:
    """An aware datetime in UTC.

    Raises:
        InputError: not a datetime, or a naive one; `field` names it.
    """
    if not isinstance(value, datetime):
        raise InputError(f"`{field}` is of kind {kind(value)}, not a datetime (give an aware datetime)", field=field)
    if value.tzinfo is UTC:
        return value
    if value.tzinfo is None or value.utcoffset() is None:
        raise InputError(
            f"`{field}` is a naive datetime (give it a time zone, for example `.replace(tzinfo=UTC)`)",
            field=field,
        )
    return value.astimezone(UTC)


IdFactory = Callable[["IdParts"], str]
"""Makes the id of a new item from what identifies it."""


class IdParts(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a deterministic id is made of."""

    tenant: str | None
    session: str | None
    seq: int
    type: str
    source: str
    key: str | None
    version: str | None
    observed_at: datetime | None
    content: str
    parents: tuple[str, ...]


def random_ids(_: IdParts) -> str:
    """128 random bits in hexadecimal: the default."""
    return os.urandom(16).hex()


def deterministic_ids(parts: IdParts) -> str:
    """128 bits of a hash over the parts: the same inputs give the same ids, for tests and replays."""
    return blake2b(msgspec.msgpack.encode(parts), digest_size=16, person=b"rung id v1").hexdigest()
