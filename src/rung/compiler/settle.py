"""settle: one representation, one copy, the current value; and conflicts said aloud."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from rung.compiler.manifest import Conflict
from rung.compiler.plan import Candidate, Plan
from rung.compiler.supersession import replacements
from rung.errors import ScopeError
from rung.records.item import body


def settle(plan: Plan) -> Plan:
    """Decide among candidates of the context block that say the same, or say one thing differently.

    Raises:
        ScopeError: what a template shows does not hold any more.
    """
    plan = _yield_to_results(plan)
    context: list[Candidate] = []
    summaries: list[Candidate] = []
    for one in plan.candidates:
        if one.state is None:
            if one.place == "context":
                context.append(one)
            elif one.place == "summary":
                summaries.append(one)
    if len(summaries) < 2 and not (context and _anything_to_settle(context)):
        return plan
    decided = {one.item.id: one for one in plan.candidates}
    if not plan.both:
        _represent(decided, context)
    _supersede(decided, _alive(decided, context))
    _supersede(decided, summaries)
    _deduplicate(decided, _alive(decided, context))
    conflicts = _conflicts(plan, decided, _alive(decided, context))
    return plan.with_(tuple(decided[one.item.id] for one in plan.candidates), conflicts=conflicts)


def _yield_to_results(plan: Plan) -> Plan:
    """A memory of a fact yields to what a tool has said of it in this very turn."""
    said = {one.item.key: one for one in plan.candidates if one.place == "after" and one.item.key is not None}
    if not said:
        return plan
    return plan.with_(
        tuple(
            one.out("excluded", "superseded_by", item=said[one.item.key].item.id)
            if one.item.key in said and one.item.type.name == "memory" and one.alive and not one.required
            else one
            for one in plan.candidates
        )
    )


def _anything_to_settle(context: Sequence[Candidate]) -> bool:
    """Whether any two candidates have to do with one another; nearly always few do."""
    contents: list[bytes] = []
    stated: list[str] = []
    for one in context:
        facts = one.facts
        if facts.linked:
            return True
        if facts.key:
            contents.append(facts.key)
        if one.item.key is not None:
            stated.append(one.item.key)
    return len(set(contents)) < len(contents) or len(set(stated)) < len(stated)


def _alive(decided: dict[str, Candidate], context: Iterable[Candidate]) -> list[Candidate]:
    return [found for one in context if (found := decided[one.item.id]).state is None]


def _represent(decided: dict[str, Candidate], context: Sequence[Candidate]) -> None:
    """Where an item promoted from another is in, the other stays in the trace only."""
    ids = {one.item.id for one in context}
    for one in context:
        if not one.facts.promoted:
            continue
        for parent in one.item.derived_from:
            if parent in ids and decided[parent].alive and not decided[parent].required:
                decided[parent] = decided[parent].out("excluded", "represented_by", item=one.item.id)


def _supersede(decided: dict[str, Candidate], context: Sequence[Candidate]) -> None:
    """An item that names what it supersedes replaces it, along chains; in a cycle the latest stays."""
    if not any(one.facts.supersedes for one in context):
        return
    by_name: dict[str, Candidate] = {}
    for one in context:
        by_name[one.item.id] = one
        if one.facts.named is not None:
            by_name.setdefault(one.facts.named, one)
    later: dict[str, str] = {}
    for one in context:
        older = by_name.get(one.item.attr("supersedes") or "")
        if older is not None and older is not one:
            known = later.get(older.item.id)
            newest = one if known is None else max(decided[known], one, key=_recency)
            later[older.item.id] = newest.item.id
    for item_id, last in replacements(later, lambda item_id: _recency(decided[item_id])).items():
        if decided[item_id].owners:
            raise ScopeError(
                f"item `{item_id}` fills a slot of a template and is superseded by `{last}` (fill the template with "
                "the item that holds)",
                reason="superseded_by",
                items=(item_id,),
            )
        decided[item_id] = decided[item_id].out("excluded", "superseded_by", item=last)


def _recency(one: Candidate) -> tuple[Any, ...]:
    # A source's clock that runs ahead makes nothing later than the moment it came in.
    return (min(one.item.seen_at, one.item.created), one.item.seq, one.order, one.item.id)


def _deduplicate(decided: dict[str, Candidate], context: Sequence[Candidate]) -> None:
    """The same content is sent once; every source that said it stays named."""
    groups: dict[bytes, list[Candidate]] = {}
    for one in context:
        key = one.facts.key
        if key:
            groups.setdefault(key, []).append(one)
    for same in [same for alike in groups.values() if len(alike) > 1 for same in _same(alike)]:
        if len(same) < 2:
            continue
        kept = min(same, key=lambda one: (not one.required, -one.item.integrity, -_score(one), one.order))
        also = sorted({_origin(one) for one in same} - {_origin(kept)})
        if also:
            attrs = (*kept.attrs, ("also", ", ".join(also)))
            decided[kept.item.id] = msgspec.structs.replace(kept, attrs=attrs)
        for one in same:
            if one is not kept and not one.required:
                decided[one.item.id] = one.out("excluded", "duplicate_of", item=kept.item.id)


def _same(alike: Sequence[Candidate]) -> list[list[Candidate]]:
    """Of candidates that are alike, those that say the same: -5.0 and 50 differ only where the key does not look."""
    groups: dict[str, list[Candidate]] = {}
    for one in alike:
        groups.setdefault(_said(one), []).append(one)
    return list(groups.values())


def _said(one: Candidate) -> str:
    """What an item says, whatever its case, white space and Unicode form; a sign or a decimal point counts."""
    return " ".join(unicodedata.normalize("NFC", body(one.item)).casefold().split())


def _score(one: Candidate) -> float:
    return float("-inf") if one.score is None else one.score


def _origin(one: Candidate) -> str:
    item = one.item
    return item.attr("document") or item.attr("title") or item.source


def _conflicts(plan: Plan, decided: dict[str, Candidate], context: Sequence[Candidate]) -> tuple[Conflict, ...]:
    groups: dict[str, list[Candidate]] = {}
    for one in context:
        if one.item.key is not None:
            groups.setdefault(one.item.key, []).append(one)
    found: list[Conflict] = []
    for key, group in sorted((key, group) for key, group in groups.items() if len(group) > 1):
        current = _current(decided, group)
        if len({_said(one) for one in current}) > 1:
            found.append(_settled(plan, decided, key, current))
    return tuple(found)


def _current(decided: dict[str, Candidate], group: Sequence[Candidate]) -> list[Candidate]:
    """What is left of one key when each source speaks once and memories yield to current tool values."""
    newest: dict[str, Candidate] = {}
    for one in group:
        known = newest.get(one.item.source)
        newest[one.item.source] = one if known is None else max(known, one, key=_version_order)
    left = list(newest.values())
    tools = [one for one in left if one.facts.from_tool]
    if tools:
        latest = max(tools, key=_recency)
        for one in left:
            if one.item.type.name == "memory" and not one.required:
                decided[one.item.id] = one.out("excluded", "superseded_by", item=latest.item.id)
        left = [one for one in left if decided[one.item.id].alive]
    for one in group:
        chosen = newest[one.item.source]
        if one is not chosen and not one.required and decided[one.item.id].alive:
            decided[one.item.id] = one.out("excluded", "superseded_by", item=chosen.item.id)
    return left


def _version_order(one: Candidate) -> tuple[Any, ...]:
    return (*natural(one.item.version), *_recency(one))


def natural(version: str | None) -> tuple[Any, ...]:
    """A sort key under which `v10` comes after `v9`, and no version before any."""
    if version is None:
        return ((),)
    parts: list[tuple[int, int, str]] = []
    digits = ""
    for char in version + "\0":
        if char.isascii() and char.isdigit():
            digits += char
            continue
        if digits:
            parts.append((1, int(digits), ""))
            digits = ""
        if char != "\0":
            parts.append((0, 0, char))
    return (tuple(parts),)


def _settled(plan: Plan, decided: dict[str, Candidate], key: str, current: Sequence[Candidate]) -> Conflict:
    rule = plan.policy.conflicts.get(key) or next(
        (
            value
            for pattern, value in plan.policy.conflicts.items()
            if pattern.endswith("*") and key.startswith(pattern[:-1])
        ),
        None,
    )
    if rule is None:
        rule = next((one.rules.conflict for one in current if one.rules.conflict is not None), "present")
    ranked = sorted(current, key=_recency)
    if rule in ("prefer_fresher", "prefer_newer_version"):
        chosen = max(current, key=_recency if rule == "prefer_fresher" else _version_order)
        for one in current:
            if one is not chosen and not one.required:
                decided[one.item.id] = one.out("excluded", "superseded_by", item=chosen.item.id, rule=rule)
    else:
        for one in current:
            attrs = (*one.attrs, ("conflict", key))
            decided[one.item.id] = msgspec.structs.replace(one, attrs=attrs)
    return Conflict(
        key=key,
        items=tuple(one.item.id for one in ranked),
        sources=tuple(one.item.source for one in ranked),
        times=tuple(one.item.seen_at.isoformat() for one in ranked),
        settled=rule,
    )
