"""What is known of an item whatever the turn: worked out once, and kept while the item is used."""

from __future__ import annotations

import math
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

from rung.ledger.content import content_key
from rung.policy.freshness import limit_for
from rung.policy.rules import PolicySet, SourcePolicy
from rung.records.item import ContextItem, Slot, body

if TYPE_CHECKING:
    from rung.assembly.messages import Block, Message


class Facts:
    """The facts of one item under one policy.

    Attributes:
        rules: the policy of its source.
        place: `instructions`, `summary`, `talk` or `context`.
        label: what it is called in every turn: its own id or its document's, or else a short hash of source and key
            (or content), so that it stays when the same passage is retrieved again.
        key: its content key; equal for equal content.
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
        sizes: what its block costs, by the costs that counted it.
        block, literal, spoken: how it stands in every turn, once known: as data, as an instruction, as a request.
        canonical: its place in the context block's order, once known.
    """

    __slots__ = (
        "_item", "block", "canonical", "from_tool", "key", "label", "linked", "literal", "named", "observed",
        "place", "plain", "promoted", "rules", "seen", "sizes", "slots", "spoken", "stale_from", "supersedes",
        "type", "unfilled",
    )  # fmt: skip
    key: bytes
    label: str

    def __init__(self, item: ContextItem[Any], policy: PolicySet) -> None:
        attrs = dict(item.attrs) if item.attrs else {}
        name = item.type.name
        self._item = item
        self.type = name
        self.rules: SourcePolicy = policy.source(item.source)
        self.place = _place(item)
        self.named = attrs.get("id")
        self.supersedes = attrs.get("supersedes")
        self.seen = item.seen_at.timestamp()
        limit = limit_for(policy, item)
        expires = math.inf if item.expires_at is None else item.expires_at.timestamp()
        self.stale_from = min(expires, math.inf if limit is None else self.seen + limit)
        self.observed = None if item.observed_at is None else item.observed_at.isoformat()
        self.promoted = item.via is not None and item.via.startswith("promote:")
        self.from_tool = name == "tool_output" or item.source.startswith(("tool:", "mcp:"))
        self.slots = tuple([part for part in item.parts if isinstance(part, Slot)]) if item.parts else ()
        self.unfilled = "" if self.slots else attrs.get("slots", "")
        self.linked = self.supersedes is not None or self.promoted
        self.plain = self.place == "context" and not self.slots and not self.unfilled
        self.sizes: dict[object, int] = {}
        self.block: Block | None = None
        self.literal: Block | None = None
        self.spoken: Message | None = None
        self.canonical: tuple[Any, ...] | None = None

    def __getattr__(self, name: str) -> Any:
        # Hashing takes a while, and most of a conversation is never asked for these.
        if name == "key":
            self.key = content_key(body(self._item))
            return self.key
        if name == "label":
            item = self._item
            self.label = self.named or item.attr("document") or _label(item, self.key)
            return self.label
        raise AttributeError(name)


def _place(item: ContextItem[Any]) -> str:
    name = item.type.name
    if name in ("instruction", "policy"):
        return "instructions"
    if name == "summary":
        return "summary"
    return "talk" if is_talk(item) else "context"


def is_talk(item: ContextItem[Any]) -> bool:
    """Whether an item is part of the conversation: a request, a reply, or a result that answers a call."""
    return item.type.name in ("user", "assistant") or (item.type.name == "tool_output" and item.call_id is not None)


def _label(item: ContextItem[Any], key: bytes) -> str:
    what = item.key.encode() if item.key is not None else key or item.id.encode()
    return blake2b(item.source.encode() + b"\0" + what, digest_size=4).hexdigest()
