"""Supersession: what stands for an item at the end of its chain of replacements."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def replacements(later: Mapping[str, str], recency: Callable[[str], tuple[Any, ...]]) -> dict[str, str]:
    """For each name that is replaced, the last one of its chain; in a cycle the latest stays.

    Args:
        later: a name to the one that replaces it. Each of these is known to `recency`.
        recency: a name to its place in time; a greater one is later.
    """
    last: dict[str, str] = {}
    for start in later:
        path: list[str] = []
        at = start
        while at in later and at not in last and at not in path:
            path.append(at)
            at = later[at]
        if at in path:
            at = max(path[path.index(at) :], key=recency)
        end = last.get(at, at)
        for name in path:
            last[name] = end
    return {name: end for name, end in last.items() if name != end}
