"""Lineage: what an item was derived from, what was derived from it, and in which turns it was shown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rung.ledger.backend import Backend, Tenants
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach, within
from rung.records.item import ContextItem


def ancestors(ledger: Ledger, start: ContextItem[Any], reach: Reach) -> list[ContextItem[Any]]:
    """All that an item was derived from, nearest first."""
    seen, out, edge = {start.id}, list[ContextItem[Any]](), list(start.derived_from)
    while edge:
        fresh = [one for one in dict.fromkeys(edge) if one not in seen]
        seen.update(fresh)
        found = ledger.backend.get(fresh, reach.tenants)
        level = [found[one] for one in fresh if one in found and within(found[one], reach)]
        out += level
        edge = [parent for one in level for parent in one.derived_from]
    return out


def descendants(ledger: Ledger, ids: Sequence[str], reach: Reach) -> list[ContextItem[Any]]:
    """All that was derived from some items, nearest first."""
    seen, out, edge = set(ids), list[ContextItem[Any]](), list(ids)
    while edge:
        children = ledger.backend.children(edge, reach.tenants)
        fresh = list(dict.fromkeys(one for found in children.values() for one in found if one not in seen))
        seen.update(fresh)
        found = ledger.backend.get(fresh, reach.tenants)
        edge = [one for one in fresh if one in found]
        out += [found[one] for one in edge if within(found[one], reach)]
    return out


class _Shown(msgspec.Struct, frozen=True):
    turn: str | None = None
    exchange: str | None = None


def turns_shown(backend: Backend, tenants: Tenants, ids: Iterable[str]) -> list[str]:
    """The turns whose records name one of these items, as the session's items name the turn where they do."""
    # A turn's record names each item that it was shown, as a JSON string.
    named = [f'"{item_id}"' for item_id in ids]
    found: dict[str, None] = {}
    for document in backend.documents("turn", tenants):
        if any(name in document.body for name in named):
            shown = msgspec.json.decode(document.body, type=_Shown)
            found[shown.exchange or shown.turn or document.id] = None
    return list(found)


def said_in(backend: Backend, tenants: Tenants, turns: Iterable[str]) -> list[str]:
    """The replies that were given in these turns."""
    wanted = frozenset(turns)
    if not wanted:
        return []
    replies = backend.items(tenants, types=frozenset({"assistant"}))
    return [item.id for item in replies if item.turn in wanted or not wanted.isdisjoint(item.derived_from)]


def revocation(ledger: Ledger, start: str, reach: Reach, *, through_turns: bool) -> tuple[list[str], list[str]]:
    """What a revocation of an item takes along, and the turns in which any of it was shown.

    What was derived goes along. A reply depends on all that its turn was shown, so following such an edge would
    take half a conversation with it: that is done only when asked for.
    """
    ids = [start, *(one.id for one in descendants(ledger, [start], reach))]
    turns = turns_shown(ledger.backend, reach.tenants, ids)
    if through_turns:
        replies = [one for one in said_in(ledger.backend, reach.tenants, turns) if one not in ids]
        ids += replies
        ids += [one.id for one in descendants(ledger, replies, reach) if one.id not in ids]
    return ids, turns
