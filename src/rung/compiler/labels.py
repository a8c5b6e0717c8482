"""The short stable ids by which a reply cites what it was shown."""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import blake2b
from typing import Any

import msgspec

from rung.compiler.plan import Candidate, Plan
from rung.ledger.content import content_key
from rung.records.item import ContextItem, body


def stable_label(item: ContextItem[Any]) -> str:
    """What an item is called in every turn: its document's id, or else a short hash of what it is.

    It is tied to source and key (or content), not to a place in the list or to this registration, so that
    it stays when the same passage is retrieved again.
    """
    named = item.attr("document") or item.attr("id")
    if named is not None:
        return named
    what = item.key.encode() if item.key is not None else content_key(body(item)) or item.id.encode()
    return blake2b(item.source.encode() + b"\0" + what, digest_size=4).hexdigest()


def label(plan: Plan) -> Plan:
    """Give each context candidate its label; where two collide, the later in canonical order gets a suffix."""
    taken: dict[str, int] = {}
    given: dict[str, str] = {}
    for one in sorted(_alive(plan.candidates), key=canonical):
        name = stable_label(one.item)
        taken[name] = taken.get(name, 0) + 1
        given[one.item.id] = name if taken[name] == 1 else f"{name}-{taken[name]}"
    return plan.with_(
        tuple(
            msgspec.structs.replace(one, label=given[one.item.id]) if one.item.id in given else one
            for one in plan.candidates
        )
    )


def _alive(candidates: Sequence[Candidate]) -> list[Candidate]:
    return [one for one in candidates if one.alive and one.place in ("context", "summary")]


_GROUPS = {"tool_output": 0, "task_state": 0, "evidence": 1, "memory": 2}


def canonical(one: Candidate) -> tuple[Any, ...]:
    """The order within the context block: narrow tool values, passages, then memories; within, by what they are.

    It does not depend on scores or on the order of retrieval, so the same set gives the same bytes.
    """
    item = one.item
    kind = item.type.name
    group = 0 if item.source.startswith(("tool:", "mcp:")) and kind != "memory" else _GROUPS.get(kind, 3)
    return (
        group,
        kind,
        item.attr("category") or "",
        item.source,
        item.key or "",
        item.attr("document") or "",
        item.attr("section") or "",
        item.version or "",
        content_key(body(item)),
        item.seen_at,
        item.id,
    )
