"""The memories of one person at one moment: which hold, which were replaced, which are too old."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from rung.compiler.supersession import replacements
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach, within
from rung.memory.values import MemoryRecord, MemoryState
from rung.policy.freshness import age, limit_for
from rung.records.item import ContextItem

STANDING = "standing"


class Shelf(msgspec.Struct, frozen=True, kw_only=True):
    """What is kept of a person.

    Attributes:
        items: by id, in order of writing.
        revoked: the ids of what was revoked.
        last: of what was replaced, the id of what stands in its place.
        later: of what was replaced, the id of the very next one.
        aged: of what is too old, how.
        skewed: the ids of what was seen later than now.
    """

    items: Mapping[str, ContextItem[Any]]
    revoked: frozenset[str]
    last: Mapping[str, str]
    later: Mapping[str, str]
    aged: Mapping[str, MemoryState]
    skewed: frozenset[str]

    def state(self, item_id: str) -> MemoryState:
        """What has become of a memory."""
        if item_id in self.revoked:
            return "revoked"
        if item_id in self.last:
            return "superseded"
        return self.aged.get(item_id, "current")

    def find(self, name: str) -> ContextItem[Any] | None:
        """A memory by its id, its name, or the beginning of its id where only one begins so."""
        if name in self.items:
            return self.items[name]
        named = [item for item in self.items.values() if item.attr("id") == name]
        if named:
            return max(named, key=recency)
        found = [item for item_id, item in self.items.items() if len(name) >= 4 and item_id.startswith(name)]
        return found[0] if len(found) == 1 else None

    def path(self, item_id: str) -> list[str]:
        """What stands between a replaced memory and the one in its place, itself included; empty for a cycle."""
        out: list[str] = []
        end = self.last[item_id]
        while item_id != end:
            if item_id in out:
                return []
            out.append(item_id)
            item_id = self.later[item_id]
        return out


def recency(item: ContextItem[Any]) -> tuple[Any, ...]:
    """Its place in time. A clock that runs ahead makes nothing later than the moment it came in."""
    return (min(item.seen_at, item.created), item.created, item.seq, item.id)


def read_shelf(ledger: Ledger, reach: Reach) -> Shelf:
    """The memories of the handle's person, read anew: the store is the only place where they are kept."""
    assert reach.subject is not None
    types = frozenset({"memory", "instruction"})
    found = ledger.backend.items(reach.tenants, types=types, subject=reach.subject)
    items = {
        item.id: item
        for item in found
        if within(item, reach)
        and item.labels.subject == reach.subject
        and (item.type.name == "memory" or item.attr("category") == STANDING)
    }
    revoked = frozenset(ledger.revoked(list(items), reach))
    later = _later([item for item in items.values() if item.id not in revoked])
    now, invalid = ledger.now(), ledger.invalidated(list(items.values()), reach)
    ages = {
        item.id: age(ledger.policy, item, now, item.id in invalid)
        for item in items.values()
        if item.type.name == "memory"
    }
    return Shelf(
        items=items,
        revoked=revoked,
        later=later,
        last=replacements(later, lambda item_id: recency(items[item_id])),
        aged={item_id: found.state for item_id, found in ages.items() if found.state != "fresh"},
        skewed=frozenset(item_id for item_id, found in ages.items() if found.skewed),
    )


def _later(items: Sequence[ContextItem[Any]]) -> dict[str, str]:
    """Of each replaced memory the one that replaces it: as it says itself, then the latest of its key."""
    by_name: dict[str, ContextItem[Any]] = {}
    for item in items:
        by_name[item.id] = item
        named = item.attr("id")
        if named is not None:
            by_name.setdefault(named, item)
    later: dict[str, ContextItem[Any]] = {}
    for item in items:
        older = by_name.get(item.attr("supersedes") or "")
        if older is not None and older is not item:
            known = later.get(older.id)
            later[older.id] = item if known is None else max(known, item, key=recency)
    groups: dict[tuple[str, str], list[ContextItem[Any]]] = {}
    for item in items:
        if item.key is not None and item.type.name == "memory":
            groups.setdefault((item.key, item.source), []).append(item)
    for group in groups.values():
        left = [item for item in group if item.id not in later]
        newest = max(left or group, key=recency)
        later.update((item.id, newest) for item in left if item is not newest)
    return {item_id: newer.id for item_id, newer in later.items()}


def record_of(ledger: Ledger, shelf: Shelf, item: ContextItem[Any]) -> MemoryRecord:
    """A memory with what has become of it."""
    return MemoryRecord(
        item=item,
        category=item.attr("category") or "fact",
        state=shelf.state(item.id),
        origin=item.attr("origin") or item.source,
        confidence=confidence_of(item),
        supersedes=item.attr("supersedes"),
        superseded_by=shelf.last.get(item.id),
        expires_at=expiry_of(ledger, item),
        skewed=item.id in shelf.skewed,
    )


def confidence_of(item: ContextItem[Any]) -> float:
    """How sure whoever kept it was, 0 to 1; 1 where nothing is said."""
    try:
        given = float(item.attr("confidence") or 1.0)
    except ValueError:
        return 1.0
    return given if 0.0 <= given <= 1.0 else 1.0


def expiry_of(ledger: Ledger, item: ContextItem[Any]) -> datetime | None:
    """From when on it may not be asserted: its own expiry or its freshness class, whichever is earlier."""
    ends = [] if item.expires_at is None else [item.expires_at]
    limit = limit_for(ledger.policy, item) if item.type.name == "memory" else None
    if limit is not None:
        ends.append(item.seen_at + timedelta(seconds=limit))
    return min(ends) if ends else None
