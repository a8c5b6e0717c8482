"""The summary that stands for a session's older exchanges, and the standing requests among them."""

from __future__ import annotations

from typing import Any

from rung.compiler.past import Past
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach, within
from rung.records.item import ContextItem

_CARRIED = frozenset({"instruction", "policy", "memory"})


def until(summary: ContextItem[Any]) -> int:
    """The last sequence number of its session that a summary stands for; 0 for one that stands for none."""
    said = summary.attr("until") or ""
    return int(said) if said.isascii() and said.isdigit() and len(said) < 19 else 0


def is_of_session(item: ContextItem[Any], session: str | None) -> bool:
    """Whether an item is a summary that stands for a part of this session."""
    return item.type.name == "summary" and session is not None and item.session == session and until(item) > 0


def session_summary(ledger: Ledger, reach: Reach, past: Past) -> ContextItem[Any] | None:
    """The summary that reaches furthest and still holds: neither revoked nor erased."""
    if not past.summaries:
        return None
    known = sorted(past.summaries, key=lambda item: (until(item), item.seq), reverse=True)
    for item in known:
        stored = ledger.backend.get([item.id], reach.tenants).get(item.id)
        if stored is None or not within(stored, reach) or stored.labels.tenant != reach.tenant:
            continue
        if stored.labels.subject is not None and stored.labels.subject != reach.subject:
            continue
        if is_of_session(stored, reach.session) and not ledger.revoked([item.id], reach):
            return stored
    return None


def carried(ledger: Ledger, reach: Reach, summary: ContextItem[Any]) -> list[ContextItem[Any]]:
    """The standing requests of the exchanges that a summary stands for: those that were not forgotten."""
    ids = (summary.attr("carries") or "").split()
    found = ledger.backend.get(ids, reach.tenants)
    revoked = ledger.revoked(ids, reach)
    return [
        found[item_id]
        for item_id in dict.fromkeys(ids)
        if item_id in found
        and item_id not in revoked
        and within(found[item_id], reach)
        and found[item_id].type.name in _CARRIED
    ]
