"""What is known of an item whatever the turn: worked out once, and kept while the item is used."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from hashlib import blake2b
from typing import Any

from rung.ledger.content import content_key
from rung.policy.freshness import limit_for
from rung.policy.rules import PolicySet, SourcePolicy
from rung.records.item import ContextItem, Slot, body

_KEPT = 300_000


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
        sizes: what its block costs, by the costs that counted it.
    """

    __slots__ = (
        "from_tool", "key", "label", "named", "observed", "place", "promoted", "rules", "seen", "sizes", "slots",
        "stale_from", "supersedes", "unfilled",
    )  # fmt: skip

    def __init__(self, item: ContextItem[Any], policy: PolicySet) -> None:
        attrs = dict(item.attrs)
        name = item.type.name
        self.rules: SourcePolicy = policy.source(item.source)
        self.place = _place(item)
        self.key = content_key(body(item))
        self.named = attrs.get("id")
        self.supersedes = attrs.get("supersedes")
        self.label = self.named or attrs.get("document") or _label(item, self.key)
        self.seen = item.seen_at.timestamp()
        limit = limit_for(policy, item)
        expires = math.inf if item.expires_at is None else item.expires_at.timestamp()
        self.stale_from = min(expires, math.inf if limit is None else self.seen + limit)
        self.observed = None if item.observed_at is None else item.observed_at.isoformat()
        self.promoted = item.via is not None and item.via.startswith("promote:")
        self.from_tool = name == "tool_output" or item.source.startswith(("tool:", "mcp:"))
        self.slots = tuple(part for part in item.parts if isinstance(part, Slot))
        self.unfilled = "" if self.slots else attrs.get("slots", "")
        self.sizes: dict[object, int] = {}


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


class FactsCache:
    """The facts of a store's items; bounded, and safe for threads."""

    def __init__(self) -> None:
        self._known: dict[str, tuple[ContextItem[Any], Facts]] = {}
        self._lock = threading.Lock()

    def reader(self, policy: PolicySet) -> Callable[[ContextItem[Any]], Facts]:
        """A function from item to facts under the store's own policy."""
        known = self._known

        def read(item: ContextItem[Any]) -> Facts:
            held = known.get(item.id)
            if held is not None and held[0] is item:
                return held[1]
            made = Facts(item, policy)
            with self._lock:
                if len(known) >= _KEPT:
                    known.clear()
                known[item.id] = (item, made)
            return made

        return read
