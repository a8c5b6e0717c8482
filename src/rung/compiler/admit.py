"""admit and refresh: what a turn may see, and what may still be asserted."""

from __future__ import annotations

from typing import Any

import msgspec

from rung.compiler.plan import Candidate, Plan
from rung.errors import ScopeError, names
from rung.policy.freshness import age


def admit(plan: Plan) -> Plan:
    """Leave out what the intent, clearance, scopes, tenant or a revocation excludes.

    Raises:
        ScopeError: something required is excluded; a turn never goes on without it.
    """
    out: list[Candidate] = []
    for candidate in plan.candidates:
        reason = _excluded(plan, candidate)
        out.append(candidate if reason is None else candidate.out("excluded", reason[0], **reason[1]))
    _require(plan, out)
    return plan.with_(tuple(out))


def _excluded(plan: Plan, candidate: Candidate) -> tuple[str, dict[str, Any]] | None:
    item = candidate.item
    if item.id in plan.revoked:
        return "revoked", {}
    labels = item.labels
    scopes = labels.scopes if plan.scopes is None else plan.scopes
    found = labels.readable_by(
        clearance=plan.clearance, scopes=scopes, tenant=plan.tenant, subject=plan.subject or labels.subject
    )
    if (
        found is not None
        and plan.policy.mode("clearance") != "enforce"
        and found in ("above_clearance", "missing_scope")
    ):
        return None
    if found is not None:
        return found, {}
    intent = plan.intent
    if intent is not None and candidate.place == "context" and item.source not in intent.sources:
        return "not_in_intent", {}
    if (
        candidate.score is not None
        and candidate.rules.min_score is not None
        and candidate.score < candidate.rules.min_score
    ):
        return "below_score", {"score": round(candidate.score, 4), "minimum": candidate.rules.min_score}
    return None


def refresh(plan: Plan) -> Plan:
    """Leave out what is stale, expired or invalidated. History is what was said; it does not age.

    Raises:
        ScopeError: something required may not be asserted any more.
    """
    out: list[Candidate] = []
    for candidate in plan.candidates:
        if not candidate.alive or candidate.place not in ("context", "summary"):
            out.append(candidate)
            continue
        found = age(plan.policy, candidate.item, plan.now, candidate.item.id in plan.invalidated)
        if found.state == "fresh" or plan.policy.mode("freshness") != "enforce":
            if found.skewed:
                candidate = msgspec.structs.replace(candidate, params={**candidate.params, "clock_skew": True})
            out.append(candidate)
            continue
        params: dict[str, Any] = {"age": round(found.seconds, 3)}
        if found.limit is not None:
            params["limit"] = found.limit
        if found.state == "invalidated":
            params["why"] = plan.invalidated[candidate.item.id]
        out.append(candidate.out("stale", found.state, **params))
    _require(plan, out)
    return plan.with_(tuple(out))


def _require(plan: Plan, candidates: list[Candidate]) -> None:
    missing = [one for one in candidates if one.required and not one.alive]
    if missing:
        told = names(f"{one.item.source}/{one.item.id}: {one.reason}" for one in missing)
        raise ScopeError(
            f"required items may not enter this turn: {told} (renew them, or widen the intent)",
            reason=missing[0].reason,
            items=tuple(one.item.id for one in missing),
        )
