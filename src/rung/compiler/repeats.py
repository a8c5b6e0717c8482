"""Repeated results: what a call gave before is not sent twice; the later one refers to the call that gave it first.

Decided on healed messages, so that a reference never names a call, an id or a text that is not sent.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import msgspec

from rung.assembly.messages import Block, Message

SHORTEST = 200
"""A repeated result of fewer characters is sent again: a reference would hardly be shorter."""


class Referred(NamedTuple):
    """Messages in which repeated results refer to earlier ones.

    Attributes:
        messages: all of them.
        calls: of each item that only refers, the call that gave the same before.
        seen: the longer results that are sent whole, by their text, with their call.
    """

    messages: tuple[Message, ...]
    calls: Mapping[str, str]
    seen: Mapping[str, str]


def refer(messages: tuple[Message, ...], count: Callable[[str], int], before: Mapping[str, str]) -> Referred:
    """Let each longer result that is, word for word, an earlier one refer to its call: the pair is kept.

    Args:
        messages: healed, in the order in which they are sent.
        count: the tokens of a text; a reference that is no shorter is not made.
        before: results that are sent before these.
    """
    changed: dict[int, Message] = {}
    calls: dict[str, str] = {}
    seen: dict[str, str] | None = None
    for number, message in enumerate(messages):
        if message.role != "tool" or message.call_id is None or len(message.blocks) != 1:
            continue
        block = message.blocks[0]
        if len(block.text) < SHORTEST or block.form != "literal" or block.item_id is None:
            continue
        if seen is None:
            seen = dict(before)
        earlier = seen.setdefault(block.text, message.call_id)
        if earlier == message.call_id:
            continue
        said = f"(unchanged: the same result as call {earlier})"
        if count(said) < count(block.text):
            stub = Block(item_id=block.item_id, type=block.type, source=block.source, text=said)
            changed[number] = msgspec.structs.replace(message, blocks=(stub,))
            calls[block.item_id] = earlier
    out = tuple([changed.get(number, message) for number, message in enumerate(messages)]) if changed else messages
    return Referred(out, calls, before if seen is None else seen)
