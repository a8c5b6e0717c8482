"""History as exchanges: a request and all that answered it. A call and its results are never parted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rung.compiler.counting import Costs
from rung.compiler.layout import spoken
from rung.compiler.plan import Candidate

class Exchange(msgspec.Struct, frozen=True, kw_only=True):
    """One request and what followed it, with the tokens that it adds."""

    members: tuple[Candidate, ...]
    tokens: int


def exchanges(past: Sequence[Candidate], costs: Costs) -> list[Exchange]:
    """The exchanges of a history, in order: each begins with a USER item, the first perhaps not."""
    groups: list[list[Candidate]] = []
    for one in past:
        if one.item.type.name == "user" or not groups:
            groups.append([])
        groups[-1].append(one)
    return [Exchange(members=tuple(group), tokens=costs.messages([spoken(one) for one in group])) for group in groups]


def window(past: Sequence[Exchange], limit: int, block: int) -> list[Exchange]:
    """The latest exchanges that fit in `limit` tokens, cut in blocks.

    The cut lies where the tokens before it reach a multiple of a block, so it moves once in many turns and
    depends on the history and the limit only. Where no exchange is left by that, the latest ones that fit.
    """
    total = sum(exchange.tokens for exchange in past)
    over = max(0, total - limit)
    boundary = -(-over // block) * block
    before = 0
    for number, exchange in enumerate(past):
        if before >= boundary:
            return list(past[number:])
        before += exchange.tokens
    kept: list[Exchange] = []
    left = limit
    for exchange in reversed(past):
        if exchange.tokens > left:
            break
        left -= exchange.tokens
        kept.insert(0, exchange)
    return kept
