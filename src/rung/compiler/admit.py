"""admit and refresh: what a turn may see, and what may still be asserted."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rung.compiler.plan import Candidate, Plan
from rung.errors import ScopeError, names
from rung.policy.freshness import age
from rung.records.labels import Labels, Sensitivity


def admit(plan: Plan) -> Plan:
    """Leave out what the intent, clearance, scopes, tenant or a revocation excludes.

    Raises:
        ScopeError: something required is excluded; a turn never goes on without it.
    """
    verdicts: dict[Labels, str | None] = {}
    allowed = None if plan.intent is None else frozenset(plan.intent.sources)
    revoked = plan.revoked
    changed: dict[int, Candidate] = {}
    last: Labels | None = None
    verdict: str | None = None
    for number, candidate in enumerate(plan.candidates):
        labels = candidate.item.labels
        # A backend gives items with equal labels one object, so few need a look.
        if labels is not last:
            if labels not in verdicts:
                verdicts[labels] = _unreadable(plan, labels)
            last, verdict = labels, verdicts[labels]
        rules = candidate.facts.rules
        asks_nothing = candidate.place != "context" or (allowed is None and rules.min_score is None)
        if asks_nothing and verdict is None and not revoked:
            continue
        reason, params = verdict, _NONE
        if reason == "above_clearance" and candidate.place in _OWN and labels.sensitivity <= Sensitivity.INTERNAL:
            reason = None
        if revoked and candidate.item.id in revoked:
            reason = "revoked"
        elif reason is None and candidate.place == "context":
            minimum = rules.min_score
            if allowed is not None and candidate.item.source not in allowed:
                reason = "not_in_intent"
            elif minimum is not None and candidate.score is not None and candidate.score < minimum:
                reason, params = "below_score", {"minimum": minimum}
        if reason is not None:
            changed[number] = candidate.out("excluded", reason, **params)
    return _changed(plan, changed)


_NONE: dict[str, Any] = {}
_OWN = frozenset({"instructions", "request", "after"})
"""What a turn is made of in any case: clearance keeps data out, not the deployment's rules or the person's own words,
unless they are labelled above the default."""


def _unreadable(plan: Plan, labels: Labels) -> str | None:
    scopes = labels.scopes if plan.scopes is None else plan.scopes
    found = labels.readable_by(
        clearance=plan.clearance, scopes=scopes, tenant=plan.tenant, subject=plan.subject or labels.subject
    )
    watched = found in ("above_clearance", "missing_scope") and plan.policy.mode("clearance") != "enforce"
    return None if watched else found


def refresh(plan: Plan) -> Plan:
    """Leave out what is stale, expired or invalidated. History is what was said; it does not age.

    Raises:
        ScopeError: something required may not be asserted any more.
    """
    if plan.policy.mode("freshness") != "enforce":
        return plan
    now = plan.now.timestamp()
    future = now + plan.policy.limits.clock_skew
    invalidated = plan.invalidated
    changed: dict[int, Candidate] = {}
    for number, candidate in enumerate(plan.candidates):
        facts = candidate.facts
        if now < facts.stale_from and facts.seen <= future and not invalidated:
            continue
        if candidate.state is not None or candidate.place not in ("context", "summary"):
            continue
        if now >= facts.stale_from or candidate.item.id in invalidated:
            changed[number] = _aged(plan, candidate)
        elif facts.seen > future:
            changed[number] = msgspec.structs.replace(candidate, params={**candidate.params, "clock_skew": True})
    return _changed(plan, changed)


def _changed(plan: Plan, changed: Mapping[int, Candidate]) -> Plan:
    """The plan with these candidates, by their numbers, in the place of the old ones."""
    if not changed:
        return plan
    _require(changed.values())
    out = list(plan.candidates)
    for number, candidate in changed.items():
        out[number] = candidate
    return plan.with_(tuple(out))


def _aged(plan: Plan, candidate: Candidate) -> Candidate:
    found = age(plan.policy, candidate.item, plan.now, candidate.item.id in plan.invalidated)
    if found.state == "fresh":
        # At the very moment of its limit: not older than it.
        return candidate
    params: dict[str, Any] = {"age": round(found.seconds, 3)}
    if found.limit is not None:
        params["limit"] = found.limit
    if found.state == "invalidated":
        params["why"] = plan.invalidated[candidate.item.id]
    return candidate.out("stale", found.state, **params)


def _require(candidates: Iterable[Candidate]) -> None:
    missing = [one for one in candidates if one.required and one.state is not None]
    if missing:
        told = names(f"{one.item.source}/{one.item.id}: {one.reason}" for one in missing)
        raise ScopeError(
            f"required items may not enter this turn: {told} (renew them, or widen the intent)",
            reason=missing[0].reason,
            items=tuple(one.item.id for one in missing),
        )
