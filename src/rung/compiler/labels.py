"""Labels that differ within a turn, and the canonical order of the context block."""

from __future__ import annotations

from typing import Any

import msgspec

from rung.compiler.plan import Candidate, Plan
from rung.policy.rules import Lifetime


def label(plan: Plan) -> Plan:
    """Give each context candidate its label; where two collide, the later in canonical order gets a suffix."""
    shown = [one for one in plan.candidates if one.state is None and one.place in ("context", "summary")]
    names = [one.facts.label for one in shown]
    if len(set(names)) == len(names):
        return plan
    seen: set[str] = set()
    again: set[str] = set()
    for name in names:
        (again if name in seen else seen).add(name)
    groups: dict[str, list[int]] = {}
    for number, one in enumerate(plan.candidates):
        if one.facts.label in again and one.state is None and one.place in ("context", "summary"):
            groups.setdefault(one.facts.label, []).append(number)
    out = list(plan.candidates)
    for name, same in groups.items():
        later = sorted(same, key=lambda number: canonical(out[number]))[1:]
        for number, place in enumerate(later, start=2):
            out[place] = msgspec.structs.replace(out[place], label=f"{name}-{number}")
    return plan.with_(tuple(out))


MEMORY_GROUPS = {
    "standing": "standing requests",
    "preference": "customer preferences",
    "fact": "known facts",
    "interaction": "previous interactions",
    "feedback": "feedback",
}
"""The categories of memories in their order, as the model reads them."""

_CATEGORY_ORDER = {name: number for number, name in enumerate(MEMORY_GROUPS)}
_GROUPS = {"tool_output": 0, "task_state": 0, "evidence": 1, "memory": 2}


_LIFETIMES = {lifetime: number for number, lifetime in enumerate(Lifetime)}
"""Stable sources stand first, so that the prompt's beginning stays; nearly all are of one turn."""


def canonical(one: Candidate) -> tuple[Any, ...]:
    """The order within the context block: narrow tool values, passages, then memories; within, by what they are.

    It does not depend on scores or on the order of retrieval, so the same set gives the same bytes. Passages of one
    document stand as they do there (attribute `place`: a number of fixed width).
    """
    facts = one.facts
    if facts.canonical is None:
        facts.canonical = _canonical(one)
    return facts.canonical


def _canonical(one: Candidate) -> tuple[Any, ...]:
    item = one.item
    kind = item.type.name
    group = 0 if one.facts.from_tool and kind != "memory" else _GROUPS.get(kind, 3)
    return (
        _LIFETIMES[one.facts.rules.lifetime],
        group,
        kind,
        _CATEGORY_ORDER.get(item.attr("category") or "", len(_CATEGORY_ORDER)),
        item.attr("category") or "",
        item.source,
        item.attr("document") or "",
        item.attr("place") or "",
        item.key or "",
        item.attr("section") or "",
        item.version or "",
        one.facts.key,
        item.seen_at,
        item.id,
    )
