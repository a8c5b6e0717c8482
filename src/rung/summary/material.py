"""What of a session goes through a summariser: whole exchanges, without what may not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

import msgspec

from rung.compiler.past import Exchange
from rung.compiler.summaries import carried, until
from rung.compiler.truncate import truncate
from rung.errors import ScopeError
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach
from rung.records.item import ContextItem, Media, Opaque, ToolCall, body
from rung.records.labels import Sensitivity
from rung.summary.values import Line
from rung.tokens import Tokenizer

LONGEST_TEXT = 1_500
"""Tokens: a longer text is shown to the summariser by its beginning and end."""

_ROLES: Mapping[str, Literal["user", "assistant", "tool"]] = {
    "user": "user",
    "assistant": "assistant",
    "tool_output": "tool",
}


class Material(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be summarised.

    Attributes:
        lines: what the summariser sees.
        parents: the items whose text goes in: what the summary is derived from.
        withheld: ids of the others, each with its reason.
        carried: the standing requests that go on beside the summary.
    """

    lines: tuple[Line, ...]
    parents: tuple[ContextItem[Any], ...]
    withheld: tuple[tuple[str, str], ...]
    carried: tuple[ContextItem[Any], ...]


def boundaries(exchanges: Sequence[Exchange], abandon_after: int) -> list[int]:
    """Where a summary may end: the numbers of exchanges before which every call has its result.

    A call that has waited for more than `abandon_after` exchanges is not waited for any longer.
    """
    pending: dict[str, int] = {}
    out: list[int] = []
    for number, exchange in enumerate(exchanges):
        if not pending:
            out.append(number)
        for item in exchange.items:
            for part in item.parts:
                if isinstance(part, ToolCall) and len(exchanges) - number <= abandon_after:
                    pending[part.id] = pending.get(part.id, 0) + 1
            if item.call_id is not None and item.call_id in pending:
                pending[item.call_id] -= 1
                if not pending[item.call_id]:
                    del pending[item.call_id]
    return out if pending else [*out, len(exchanges)]


def material(
    ledger: Ledger,
    reach: Reach,
    exchanges: Sequence[Exchange],
    seen: int,
    previous: ContextItem[Any] | None,
    tokenizer: Tokenizer,
    clearance: Sensitivity,
) -> Material:
    """What the summariser is given of some exchanges.

    Args:
        exchanges: all that the summary newly stands for, and earlier ones that gained an item since.
        seen: the last sequence number that the summary before knew of these earlier ones.
        previous: the summary before, or None.
        clearance: what is more sensitive stays out.

    Raises:
        ScopeError: the handle has no subject and the items have.
    """
    reached = 0 if previous is None else until(previous)
    numbered = [
        (number, item)
        for number, exchange in enumerate(exchanges)
        for item in exchange.items
        if exchange.items[0].seq > reached or item.seq > seen
    ]
    stored = ledger.backend.get([item.id for _, item in numbered], reach.tenants)
    revoked = ledger.revoked([item.id for _, item in numbered], reach)
    invalid = ledger.invalidated(list(stored.values()), reach)
    standing = _standing(ledger, reach, [item for _, item in numbered if item.type.name == "user"])
    lines: list[Line] = []
    parents: list[ContextItem[Any]] = []
    withheld: list[tuple[str, str]] = []
    for number, given in numbered:
        item = stored.get(given.id)
        if item is None or item.labels.tenant != reach.tenant:
            # Erased since, or another scope's: neither its text nor its id goes on.
            continue
        if item.labels.subject is not None and reach.subject is None:
            raise ScopeError(
                "the session holds a person's items and this handle has no subject (use store.scope(subject=…))",
                reason="no_subject",
            )
        if item.id in revoked:
            withheld.append((item.id, "revoked"))
            continue
        reason = "invalidated" if item.id in invalid else _withheld(ledger, item, clearance)
        text = body(item) if reason is None else ""
        for request in standing.get(item.id, ()):
            text = text.replace(body(request), " ")
        notes = [*_notes(item)]
        if reason is None and standing.get(item.id) and not text.strip(" .,;:!\n\t"):
            text, reason = "", "standing"
        if reason is not None:
            withheld.append((item.id, reason))
            notes.append(f"not shown: {reason}")
        else:
            ledger.get([item.id], reach)
            parents.append(item)
        lines.append(
            Line(
                role=_ROLES[item.type.name],
                text=truncate(text, "middle", LONGEST_TEXT, tokenizer).text,
                exchange=number,
                name=item.attr("tool") or (item.source if item.type.name == "tool_output" else ""),
                notes=tuple(notes),
            )
        )
    going_on = [] if previous is None else carried(ledger, reach, previous)
    going_on += [request for requests in standing.values() for request in requests]
    return Material(
        lines=tuple(lines),
        parents=tuple(parents),
        withheld=tuple(withheld),
        carried=tuple({item.id: item for item in going_on}.values()),
    )


def _withheld(ledger: Ledger, item: ContextItem[Any], clearance: Sensitivity) -> str | None:
    if item.labels.sensitivity > clearance:
        return "above_clearance"
    if item.expires_at is not None:
        # A summary has no expiry: what may be said until then only is not carried into it.
        return "expires"
    step = ledger.policy.transition(item.type.name, "summary")
    for named in () if step is None else step.validators:
        name, _, argument = named.partition(":")
        if name == "size" and len(body(item).encode("utf-8")) > (int(argument) if argument else 65_536):
            return "too_large"
    return None


def _notes(item: ContextItem[Any]) -> Iterator[str]:
    for part in item.parts:
        if isinstance(part, ToolCall):
            yield f"calls {part.name} with {part.arguments[:400]}"
        elif isinstance(part, Media):
            yield f"{part.mime} attached"
        elif isinstance(part, Opaque):
            # A provider's own block is passed on whole or not at all.
            continue


def _standing(ledger: Ledger, reach: Reach, users: Sequence[ContextItem[Any]]) -> dict[str, list[ContextItem[Any]]]:
    """Of each request of the user what was marked as standing and not forgotten since."""
    children = ledger.backend.children([item.id for item in users], reach.tenants)
    ids = list(dict.fromkeys(child for found in children.values() for child in found))
    found = ledger.backend.get(ids, reach.tenants)
    revoked = ledger.revoked(ids, reach)
    out: dict[str, list[ContextItem[Any]]] = {}
    for parent, below in children.items():
        marked = [
            found[child]
            for child in below
            if child in found
            and child not in revoked
            and found[child].type.name in ("memory", "instruction")
            and found[child].attr("category") == "standing"
        ]
        if marked:
            out[parent] = marked
    return out
