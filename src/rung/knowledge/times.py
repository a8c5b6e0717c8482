"""Moments as whole microseconds: what a database compares."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def micros(value: datetime) -> int:
    """Microseconds since 1970 UTC of an aware datetime."""
    return (value - _EPOCH) // _MICROSECOND


def moment(value: int) -> datetime:
    """The aware UTC datetime of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=value)
