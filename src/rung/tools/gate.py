"""The gate: code decides on a call before it is made, from the declaration and the principal.

A verdict is a value with its reasons. What is refused reaches the model as data, and the loop goes on.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping
from typing import Any, Literal, cast

import msgspec

from rung.errors import names
from rung.records.canonical import canonical_json
from rung.records.item import ToolCall
from rung.records.labels import Sensitivity
from rung.tools.declare import Tool
from rung.tools.principal import Principal
from rung.transforms.validators import schema_problem

HINTS: Mapping[str, str] = {
    "unknown_tool": "there is no such tool; use one of those listed",
    "malformed_arguments": "the arguments are not the JSON text of an object; write them again",
    "undeclared_argument": "leave out arguments that the tool does not declare",
    "invalid_arguments": "correct the arguments to fit the tool's schema",
    "missing_scope": "the person served may not use this tool; go on without it",
    "other_tenant": "this tool is not available here; go on without it",
    "above_clearance": "what this tool returns may not be shown here; go on without it",
    "no_approver": "this call needs an approval that nobody can give here; tell the person what you would do",
    "not_approved": "the person did not approve this call; do not repeat it",
    "repeated_call": "the same call gave the same result before; use that result",
    "too_many_calls": "ask for fewer calls at once; repeat this one if it is still needed",
    "limit_reached": "no more calls are possible; answer with what is known and say what is missing",
    "cancelled": "the run was cancelled before the call had ended; it may have taken effect",
}
"""What the model is told beside each reason."""


class Proposed(msgspec.Struct, frozen=True, kw_only=True):
    """A call that is about to be made.

    Attributes:
        tool: the declaration.
        call: as the model wrote it.
        arguments: checked, the bound ones left out.
        principal: on whose behalf.
        session, turn: where.
    """

    tool: Tool
    call: ToolCall
    arguments: Mapping[str, Any]
    principal: Principal
    session: str
    turn: str


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """A decision on a call.

    Attributes:
        outcome: `allow`, `ask` (a person decides) or `deny`.
        reasons: stable codes, the deciding one first.
        arguments: checked arguments of the call.
        detail: what is wrong, for the model: names and types, never another item's content.
        allowed: what would be accepted in place of what was refused.
    """

    outcome: Literal["allow", "ask", "deny"]
    reasons: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = {}
    detail: str = ""
    allowed: tuple[str, ...] = ()

    @property
    def reason(self) -> str:
        """The deciding reason, or an empty text."""
        return self.reasons[0] if self.reasons else ""


Approve = Callable[[Proposed], bool | Awaitable[bool]]
"""Asks a person about a call; what it raises is a no."""

Judge = Callable[[Proposed], Verdict | None]
"""A further rule on a call, for example on where its arguments come from; None: nothing to say."""


def decide(
    tool: Tool | None,
    call: ToolCall,
    principal: Principal,
    *,
    session: str,
    turn: str,
    known: Iterable[str] = (),
    judges: Iterable[Judge] = (),
) -> Verdict:
    """Whether a call may be made. The strictest of all rules wins; a rule that fails denies.

    Args:
        tool: the tool of that name, or None.
        call: the call as the model wrote it.
        principal: on whose behalf.
        session, turn: where.
        known: names of the tools on offer, for the answer to an unknown one.
        judges: further rules.
    """
    if tool is None:
        return Verdict(outcome="deny", reasons=("unknown_tool",), allowed=tuple(sorted(known)[:40]))
    denied = _authority(tool, principal)
    if denied is not None:
        return denied
    checked = check_arguments(tool, call.arguments)
    if checked.outcome == "deny":
        return checked
    proposed = Proposed(
        tool=tool, call=call, arguments=checked.arguments, principal=principal, session=session, turn=turn
    )
    found = [verdict for judge in judges if (verdict := _judged(judge, proposed)) is not None]
    if tool.asks:
        found.append(Verdict(outcome="ask", reasons=(f"side_effect_{tool.side_effect}",)))
    order = {"deny": 0, "ask": 1, "allow": 2}
    found.sort(key=lambda verdict: order[verdict.outcome])
    if not found:
        return checked
    return msgspec.structs.replace(
        found[0],
        arguments=checked.arguments,
        reasons=tuple(dict.fromkeys(reason for verdict in found for reason in verdict.reasons)),
    )


def _judged(judge: Judge, proposed: Proposed) -> Verdict | None:
    try:
        return judge(proposed)
    except Exception:
        return Verdict(outcome="deny", reasons=("rule_failed",))


def _authority(tool: Tool, principal: Principal) -> Verdict | None:
    if tool.tenants is not None and principal.tenant not in tool.tenants:
        return Verdict(outcome="deny", reasons=("other_tenant",))
    missing = sorted(tool.scopes - principal.scopes)
    if missing:
        return Verdict(outcome="deny", reasons=("missing_scope",), detail=f"it needs {names(missing)}")
    if (tool.sensitivity or Sensitivity.PUBLIC) > principal.clearance:
        return Verdict(outcome="deny", reasons=("above_clearance",))
    unfilled = [field for field in tool.bind.values() if field in ("tenant", "subject") and not _own(principal, field)]
    if unfilled:
        return Verdict(outcome="deny", reasons=("missing_scope",), detail=f"it needs the principal's {names(unfilled)}")
    return None


def _own(principal: Principal, field: str) -> str | None:
    return principal.tenant if field == "tenant" else principal.subject


def check_arguments(tool: Tool, text: str) -> Verdict:
    """The arguments of a call against the tool's declaration; undeclared ones are refused."""
    try:
        value: Any = msgspec.json.decode(text) if text.strip() else {}
    except (msgspec.DecodeError, RecursionError, UnicodeError):
        return Verdict(outcome="deny", reasons=("malformed_arguments",))
    if not isinstance(value, dict):
        return Verdict(outcome="deny", reasons=("malformed_arguments",))
    given = cast("dict[str, Any]", value)
    properties = cast("Mapping[str, Any]", tool.parameters.get("properties") or {})
    undeclared = sorted(set(given) - set(properties))
    if undeclared and not tool.parameters.get("additionalProperties"):
        return Verdict(
            outcome="deny",
            reasons=("undeclared_argument",),
            detail=f"undeclared: {names(name[:64] for name in undeclared)}",
            allowed=tuple(sorted(properties)),
        )
    problem: str | None = None
    try:
        if tool.arguments is not None:
            made = msgspec.convert(given, type=tool.arguments, strict=True)
            given = {name: getattr(made, name) for name in tool.arguments.__struct_fields__}
        else:
            problem = schema_problem(given, {**tool.parameters, "type": "object"})
    except msgspec.ValidationError as error:
        problem = str(error)
    except Exception:  # a schema of a third party that cannot be applied: a rule that fails denies
        return Verdict(outcome="deny", reasons=("rule_failed",))
    if problem is not None:
        return Verdict(
            outcome="deny", reasons=("invalid_arguments",), detail=problem[:300], allowed=tuple(sorted(properties))
        )
    return Verdict(outcome="allow", arguments=given)


def refusal(verdict: Verdict) -> dict[str, Any]:
    """What the model reads in the place of a result."""
    out: dict[str, Any] = {"ok": False, "refused": verdict.reason}
    hint = HINTS.get(verdict.reason, "this call was refused; go on without it")
    out["hint"] = f"{hint} ({verdict.detail})" if verdict.detail else hint
    if verdict.allowed:
        out["allowed"] = list(verdict.allowed)
    return out


def signature(call: ToolCall) -> str:
    """A call's name and canonical arguments: the same for any order of the arguments and any white space."""
    try:
        arguments = canonical_json(msgspec.json.decode(call.arguments)) if call.arguments.strip() else "{}"
    except (msgspec.DecodeError, RecursionError, UnicodeError, ValueError):
        arguments = call.arguments
    return f"{call.name}\0{arguments}"
