"""The selection that maximises value under the budget: a knapsack, solved exactly where it is small enough."""

from __future__ import annotations

from collections.abc import Sequence

from rung.compiler.plan import Candidate

MOST_CELLS = 40_000_000
"""Candidates times tokens up to which the best selection is found; beyond, the densest candidates come first."""


def most_valuable(optional: Sequence[Candidate], sizes: Sequence[int], room: int) -> set[int]:
    """The numbers of the candidates that are worth most together within `room` tokens.

    Priorities come first: a candidate of a higher priority is never given up for any number of lower ones. Within
    one priority the sum of scores counts (1 where a candidate has none). Ties go to the selection with fewer
    tokens, then to earlier candidates, so the same inputs give the same answer.
    """
    chosen: set[int] = set()
    levels: dict[int, list[int]] = {}
    for number, one in enumerate(optional):
        levels.setdefault(one.facts.rules.priority, []).append(number)
    for priority in sorted(levels, reverse=True):
        members = [number for number in levels[priority] if 0 < sizes[number] <= room]
        values = [_value(optional[number]) for number in members]
        taken = _knapsack([sizes[number] for number in members], values, room)
        chosen.update(members[place] for place in taken)
        room -= sum(sizes[members[place]] for place in taken)
    return chosen


def _value(one: Candidate) -> float:
    return 1.0 if one.score is None else max(0.0, one.score)


def _knapsack(sizes: Sequence[int], values: Sequence[float], room: int) -> list[int]:
    if sum(sizes) <= room:
        return list(range(len(sizes)))
    if not sizes or room <= 0:
        return []
    if len(sizes) * (room + 1) > MOST_CELLS:
        return _densest(sizes, values, room)
    import numpy as np

    best = np.zeros(room + 1)
    took = np.zeros((len(sizes), room + 1), dtype=bool)
    for number, (size, value) in enumerate(zip(sizes, values, strict=True)):
        better = best[: room + 1 - size] + value
        gain = better > best[size:]
        took[number, size:] = gain
        best[size:] = np.where(gain, better, best[size:])
    left = int(np.argmax(best))  # the fewest tokens that reach the best value
    chosen: list[int] = []
    for number in range(len(sizes) - 1, -1, -1):
        if took[number, left]:
            chosen.append(number)
            left -= sizes[number]
    return chosen[::-1]


def _densest(sizes: Sequence[int], values: Sequence[float], room: int) -> list[int]:
    chosen: list[int] = []
    for number in sorted(range(len(sizes)), key=lambda place: (-values[place] / sizes[place], place)):
        if sizes[number] <= room:
            chosen.append(number)
            room -= sizes[number]
    return sorted(chosen)
