"""What is known of an item whatever the turn: worked out once, and kept while the item is used."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import Any, Literal

import msgspec

from rung.assembly.messages import Block, Message
from rung.ledger.content import content_key
from rung.policy.freshness import limit_under
from rung.policy.rules import PolicySet, SourcePolicy
from rung.records.item import ContextItem, Slot, body

Part = Literal["instructions", "summary", "talk", "context"]


class Facts(msgspec.Struct, kw_only=True, eq=False, gc=False):
    """The facts of one item under one policy.

    Attributes:
        rules: the policy of its source.
        place: the part of the prompt that it belongs to.
        label: what it is called in every turn: its own id or its document's, or else a short hash of source and key
            (or content), so that it stays when the same passage is retrieved again. Nothing cites what was said, so
            a request or reply has none.
        key: its content key; equal for equal content. Of what was said, only results are compared and have one.
        stale_from: the moment (POSIX seconds) from which it may not be asserted; infinity: never.
        seen: when it was seen, in POSIX seconds.
        observed: its observation time in ISO 8601, or None.
        supersedes, named: attributes by which memories replace one another.
        promoted: whether it was promoted from another item unchanged.
        from_tool: whether a tool said it.
        slots: the places in it that show other items.
        unfilled: the slots of a template that nothing fills.
        linked: whether it names another that it replaces or was promoted from.
        plain: whether it stands in the context block and shows no other item.
        type: the name of its type.
        sized: by whose count (`Costs.mark`) its block was counted last, and what it costs; one value, for threads.
        block, literal, spoken: how it stands in every turn, once known: as data, as an instruction, as a request.
        canonical: its place in the context block's order, once known.
    """

    rules: SourcePolicy
    place: Part
    label: str
    key: bytes
    stale_from: float
    seen: float
    observed: str | None
    supersedes: str | None
    named: str | None
    promoted: bool
    from_tool: bool
    slots: tuple[Slot, ...]
    unfilled: str
    linked: bool
    plain: bool
    type: str
    sized: tuple[object, int] = (None, 0)
    block: Block | None = None
    literal: Block | None = None
    spoken: Message | None = None
    canonical: tuple[Any, ...] | None = None


_NONE: dict[str, str] = {}


def facts_of(item: ContextItem[Any], policy: PolicySet, *, quoted: bool = False) -> Facts:
    """What is known of an item under a policy; `quoted`: it is shown as data, even where it is part of the talk."""
    source, parts, via, observed = item.source, item.parts, item.via, item.observed_at
    name = item.type.name
    rules = policy.source(source)
    place = _place(item)
    spoken = place == "talk" and not quoted
    key = b"" if spoken and item.call_id is None else content_key(body(item))
    attrs = dict(item.attrs) if item.attrs else _NONE
    named, supersedes = attrs.get("id"), attrs.get("supersedes")
    seen = (item.created if observed is None else observed).timestamp()
    limit = limit_under(policy, rules, name)
    expires = math.inf if item.expires_at is None else item.expires_at.timestamp()
    promoted = via is not None and via.startswith("promote:")
    slots = tuple([part for part in parts if isinstance(part, Slot)]) if parts else ()
    unfilled = "" if slots else attrs.get("slots", "")
    return Facts(
        rules=rules,
        place=place,
        label="" if spoken else named or attrs.get("document") or _label(item, key),
        key=key,
        stale_from=expires if limit is None else min(expires, seen + limit),
        seen=seen,
        observed=None if observed is None else observed.isoformat(),
        supersedes=supersedes,
        named=named,
        promoted=promoted,
        from_tool=name == "tool_output" or source.startswith(("tool:", "mcp:")),
        slots=slots,
        unfilled=unfilled,
        linked=supersedes is not None or promoted,
        plain=place == "context" and not slots and not unfilled,
        type=name,
    )


_PLACES: dict[str, Part] = {"instruction": "instructions", "policy": "instructions", "summary": "summary"}


def _place(item: ContextItem[Any]) -> Part:
    return "talk" if is_talk(item) else _PLACES.get(item.type.name, "context")


def is_talk(item: ContextItem[Any]) -> bool:
    """Whether an item is part of the conversation: a request, a reply, or a result that answers a call."""
    return item.type.name in ("user", "assistant") or (item.type.name == "tool_output" and item.call_id is not None)


def _label(item: ContextItem[Any], key: bytes) -> str:
    what = item.key.encode() if item.key is not None else key or item.id.encode()
    return blake2b(item.source.encode() + b"\0" + what, digest_size=4).hexdigest()
