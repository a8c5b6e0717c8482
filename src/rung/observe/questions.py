"""Questions that a manifest answers later: why a fact was not in, what differs between two turns."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from rung.compiler.manifest import REASONS, Entry, Manifest
from rung.records.item import ContextItem
from rung.store import ContextStore

Stage = Literal["shown", "routing", "retrieval", "freshness", "permission", "settling", "budget", "unknown"]
"""Where it was decided: `routing` chose the sources, `retrieval` what they gave, the others the compiler."""

_STAGES: dict[str, Stage] = {
    "not_in_intent": "routing",
    "fetch_failed": "retrieval",
    "timeout": "retrieval",
    "below_score": "retrieval",
    "over_limit": "retrieval",
    "stale": "freshness",
    "expired": "freshness",
    "invalidated": "freshness",
    "revoked": "permission",
    "above_clearance": "permission",
    "missing_scope": "permission",
    "other_tenant": "permission",
    "other_subject": "permission",
    "duplicate_of": "settling",
    "represented_by": "settling",
    "superseded_by": "settling",
    "conflict": "settling",
    "over_budget": "budget",
    "source_cap": "budget",
    "component_cap": "budget",
    "history_window": "budget",
}


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """Why a fact was, or was not, in a turn.

    Attributes:
        stage: where it was decided.
        reason: the manifest's reason code; `never_fetched` where no row speaks of it.
        text: the reason in words.
        entry: the row it rests on.
    """

    stage: Stage
    reason: str
    text: str
    entry: Entry | None = None


def why(manifest: Manifest, *, item: str | None = None, key: str | None = None, source: str | None = None) -> Answer:
    """Why an item, a fact (its key) or a source was or was not in the turn.

    The most telling row answers: one that is in, else the first that was left out. An item inside a stretch of
    history has no row of its own; find its stretch with `expand`.
    """
    rows = [
        entry
        for entry in manifest.entries
        if (item is None or item in (entry.item, entry.last))
        and (key is None or entry.key == key)
        and (source is None or entry.source == source)
    ]
    if not rows:
        return Answer(stage="retrieval", reason="never_fetched", text="no source brought it into this turn")
    shown = next((entry for entry in rows if entry.state in ("included", "truncated")), None)
    entry = shown or rows[0]
    stage: Stage = "shown" if shown is not None else _STAGES.get(entry.reason, "unknown")
    return Answer(stage=stage, reason=entry.reason, text=REASONS.get(entry.reason, entry.reason), entry=entry)


class Change(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one item between two turns; None: it has no row in that turn."""

    source: str
    item: str | None
    before: str | None
    after: str | None
    tokens: int = 0


def diff(before: Manifest, after: Manifest) -> list[Change]:
    """The rows whose state, reason or tokens differ, in the order of the later turn; gone ones last."""
    old = {_identity(entry): entry for entry in before.entries}
    new = {_identity(entry): entry for entry in after.entries}
    changes: list[Change] = []
    for identity, entry in new.items():
        earlier = old.get(identity)
        if earlier is None or _told(earlier) != _told(entry):
            changes.append(_change(earlier, entry))
    changes += [_change(entry, None) for identity, entry in old.items() if identity not in new]
    return changes


def _identity(entry: Entry) -> tuple[str, str | None, str]:
    # A stretch of history is the same stretch whichever items it reaches.
    if entry.count > 1:
        return (entry.source, None, entry.state)
    return (entry.source, entry.item, "")


def _told(entry: Entry) -> tuple[Any, ...]:
    return (entry.state, entry.reason, entry.tokens, entry.count)


def _change(before: Entry | None, after: Entry | None) -> Change:
    one = after or before
    assert one is not None
    return Change(
        source=one.source,
        item=one.item,
        before=None if before is None else f"{before.state}: {before.reason}",
        after=None if after is None else f"{after.state}: {after.reason}",
        tokens=(0 if after is None else after.tokens) - (0 if before is None else before.tokens),
    )


def expand(store: ContextStore, entry: Entry) -> list[ContextItem[Any]]:
    """The items that a row stands for: one, or a stretch of a session's history in its order.

    Raises:
        UnknownItemError: an item of the row is not in this store and scope.
    """
    if entry.item is None:
        return []
    first = store.get(entry.item)
    if entry.last is None or first.session is None:
        return [first]
    last = store.get(entry.last)
    return list(_between(store.items(session=first.session), first.seq, last.seq))


def _between(items: Iterable[ContextItem[Any]], start: int, end: int) -> Iterable[ContextItem[Any]]:
    for item in items:
        if start <= item.seq <= end and (item.type.name in ("user", "assistant") or item.call_id is not None):
            yield item
