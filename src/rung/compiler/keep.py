"""Which exchanges of a history a turn sends.

What is sent is a head and a tail. When the limit is reached, a whole block is dropped at once, just before the
tail, so that the prompt's beginning (instructions, summary, head) stays as it was and the provider's cache with
it; every few blocks the head moves up to where the tail was. The cut depends on the history and the limits only:
the same inputs give the same cut, in any process, and nothing is remembered from turn to turn.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

import msgspec

RECENT = 5
"""Exchanges, the current one included, that stay verbatim wherever they fit."""


class Shape(msgspec.Struct, frozen=True, kw_only=True):
    """How much history is sent and how it is cut, in tokens.

    Attributes:
        limit: the most that history takes.
        block: how much is dropped at once.
        head: how much of what stood before the tail stays in front of it; 0: a plain window.
        epoch: after how many blocks the head moves up.
    """

    limit: int
    block: int
    head: int = 0
    epoch: int = 1


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """Which exchanges are sent, by number: the head from `head` up to `gap`, and the tail from `tail` on."""

    head: int
    gap: int
    tail: int


def keep(before: Sequence[int], shape: Shape) -> Kept:
    """Which exchanges of a history are sent.

    Args:
        before: `before[i]` is the tokens of all exchanges before number i; the last entry is the total.
        shape: limits and block.
    """
    total, count = before[-1], len(before) - 1
    if total <= shape.limit:
        return Kept(head=0, gap=0, tail=0)
    step = -(-(total - shape.limit) // shape.block)
    latest = max(0, count - (RECENT - 1))
    while step * shape.block < total:
        tail = bisect_left(before, step * shape.block)
        if tail > latest:
            break
        since = step // shape.epoch * shape.epoch * shape.block
        gap = min(tail, bisect_left(before, since))
        head = min(gap, bisect_left(before, max(0, since - shape.head))) if shape.head else gap
        if before[gap] - before[head] + total - before[tail] <= shape.limit:
            return Kept(head=head, gap=gap, tail=tail)
        step += 1
    # No room for a head beside the recent exchanges: the tail alone, still cut by blocks where that leaves enough.
    tail = bisect_left(before, -(-(total - shape.limit) // shape.block) * shape.block)
    if tail > latest:
        tail = bisect_left(before, total - shape.limit)
    return Kept(head=tail, gap=tail, tail=tail)
