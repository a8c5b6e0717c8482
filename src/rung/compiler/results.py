"""Results of the turn in progress: old ones give way when room is short."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from rung.compiler.counting import Costs
from rung.compiler.plan import Candidate
from rung.compiler.truncate import truncate
from rung.records.item import body

FLOORS = (512, 128, 32)
"""Tokens that results are shortened to, in this order, the oldest first."""


def is_result(one: Candidate) -> bool:
    """Whether it answers a call."""
    return one.item.call_id is not None and one.item.type.name == "tool_output"


def shorten(results: Sequence[Candidate], over: int, costs: Costs) -> Mapping[str, Candidate]:
    """Results shortened so that they take `over` tokens less, as far as they can: the oldest first, by structure."""
    changed: dict[str, Candidate] = {}
    count = costs.tokenizer.count
    for floor in FLOORS:
        for one in results:
            if over <= 0:
                return changed
            now = changed.get(one.item.id, one)
            size = count(body(one.item) if now.text is None else now.text)
            if size <= floor:
                continue
            rule = one.rules.truncation
            if rule == "none":
                rule = "json" if one.item.media_type == "application/json" else "middle"
            room = max(floor, size - over)
            made = truncate(body(one.item), rule, room, costs.tokenizer, media_type=one.item.media_type)
            if not made.fits:
                continue
            left_out = f"{made.left_out[0]} {made.left_out[1]}" if made.left_out else ""
            changed[one.item.id] = msgspec.structs.replace(
                now, state="truncated", text=made.text, params={"left_out": left_out}
            )
            over -= size - made.tokens
    return changed
