"""History as exchanges: a request and all that answered it. A call and its results are never parted."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rung.compiler.counting import Costs
from rung.compiler.keep import Shape, keep
from rung.compiler.plan import Candidate
from rung.compiler.spoken import spoken_item


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
    return [
        Exchange(
            members=tuple(group),
            tokens=costs.messages([spoken_item(one.item, "history", one.text) for one in group]),
        )
        for group in groups
    ]


def chosen(past: Sequence[Exchange], shape: Shape) -> set[int]:
    """The numbers of the exchanges that are sent."""
    before = [0]
    for exchange in past:
        before.append(before[-1] + exchange.tokens)
    kept = keep(before, shape)
    return {*range(kept.head, kept.gap), *range(kept.tail, len(past))}
