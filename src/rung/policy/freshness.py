"""Freshness: how old an item may be, decided from its class, its source and what was invalidated."""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

import msgspec

from rung.policy.rules import PolicySet, SourcePolicy
from rung.records.item import ContextItem


class Age(msgspec.Struct, frozen=True, kw_only=True):
    """An item's age against its contract.

    Attributes:
        seconds: since it was seen; never below 0.
        limit: the seconds it may be old, or None.
        state: `fresh`, `stale` (too old), `expired` or `invalidated`.
        skewed: it was seen later than now, by more than the policy's tolerance.
    """

    seconds: float
    limit: float | None
    state: Literal["fresh", "stale", "expired", "invalidated"]
    skewed: bool = False


def limit_for(policy: PolicySet, item: ContextItem[Any]) -> float | None:
    """The seconds an item may be old: its source's `max_age`, else the class of its source or type."""
    return limit_under(policy, policy.source(item.source), item.type.name)


def limit_under(policy: PolicySet, source: SourcePolicy, type_name: str) -> float | None:
    """The seconds an item of a type may be old under the policy of its source."""
    if source.max_age is not None:
        return source.max_age or None
    named = source.freshness
    if named is None:
        rules = policy.types.get(type_name)
        named = None if rules is None else rules.freshness
    return None if named is None else policy.freshness[named] or None


def age(policy: PolicySet, item: ContextItem[Any], now: datetime, invalidated: bool = False) -> Age:
    """The state of an item at `now`.

    A time in the future counts as now and is flagged beyond `limits.clock_skew`, so that a wrong clock
    makes nothing fresher than fresh.
    """
    elapsed = (now - item.seen_at).total_seconds()
    skewed = elapsed < -policy.limits.clock_skew
    seconds = max(0.0, elapsed)
    limit = limit_for(policy, item)
    if invalidated:
        state: Literal["fresh", "stale", "expired", "invalidated"] = "invalidated"
    elif item.expires_at is not None and item.expires_at <= now:
        state = "expired"
    elif limit is not None and seconds > limit:
        state = "stale"
    else:
        state = "fresh"
    return Age(seconds=seconds, limit=limit, state=state, skewed=skewed)
