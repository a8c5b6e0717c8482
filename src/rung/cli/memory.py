"""`rung memory`: what a store keeps of a person, and forgetting it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rung.cli.store import existing
from rung.memory import MemoryRecord, MemoryStore
from rung.store import ContextStore

Echo = Callable[[str], Any]


def _of(store: ContextStore, subject: str, name: str) -> MemoryStore:
    return MemoryStore(store, name=name).scope(subject=subject)


def listed(
    where: str, subject: str, tenant: str | None, category: str | None, everything: bool, name: str, *, echo: Echo
) -> None:
    """Print a line for each memory of a person, in order of writing."""
    with existing(where, tenant) as store:
        found = _of(store, subject, name).list(category=category, all=everything)
        for record in found:
            echo(_line(record))
    echo(f"{len(found)} {'memory' if len(found) == 1 else 'memories'}")


def shown(where: str, wanted: str, subject: str, tenant: str | None, name: str, *, echo: Echo) -> None:
    """Print one memory with all that is known of it."""
    with existing(where, tenant) as store:
        record = _of(store, subject, name).show(wanted)
        parents = store.ancestors(record.item)
    item = record.item
    facts: list[tuple[str, object]] = [
        ("id", item.id),
        ("name", item.attr("id")),
        ("type", item.type.name),
        ("category", record.category),
        ("state", record.state),
        ("origin", record.origin),
        ("observed", item.seen_at.isoformat()),
        ("expires", None if record.expires_at is None else record.expires_at.isoformat()),
        ("confidence", f"{record.confidence:g}"),
        ("key", item.key),
        ("supersedes", record.supersedes),
        ("superseded by", record.superseded_by),
        ("sensitivity", item.sensitivity.name.lower()),
        ("session", item.session),
        ("clock skew", "seen later than now" if record.skewed else None),
    ]
    for label, value in facts:
        if value is not None:
            echo(f"{label:<14} {value}")
    for parent in parents:
        echo(f"{'from':<14} {parent.type.name} {parent.id} ({parent.source})")
    echo("")
    echo(item.reveal("shown to the person who keeps the store"))


def forgotten(
    where: str, wanted: str, subject: str, tenant: str | None, reason: str, keep_text: bool, name: str, *, echo: Echo
) -> None:
    """Forget a memory and say what is gone."""
    with existing(where, tenant) as store:
        gone = _of(store, subject, name).forget(wanted, reason=reason, keep_text=keep_text)
    for item_id in gone.ids:
        echo(item_id)
    what = "revoked and erased" if gone.erased else "revoked, their texts kept"
    turns = f"; {len(gone.turns)} recorded turns were shown one of them" if gone.turns else ""
    echo(f"{len(gone.ids)} {'item' if len(gone.ids) == 1 else 'items'} {what}{turns}")


def _line(record: MemoryRecord) -> str:
    text = " ".join(record.item.reveal("shown to the person who keeps the store").split())
    state = "" if record.state == "current" else f"  [{record.state}]"
    shown = text if len(text) <= 100 else text[:99] + "…"
    day = record.item.seen_at.isoformat()[:10]
    return f"{record.id[:8]}  {day}  {record.category:<11}  {record.origin}  {shown}{state}"
