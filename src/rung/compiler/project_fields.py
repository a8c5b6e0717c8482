"""Field paths: the parts of a JSON value that are wanted, such as `order.items[].sku`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

from rung.errors import InputError

_EACH = "[]"
_STEP = re.compile(r'(?:"([^"]+)"|([^".\[\]]+))?((?:\[\])*)(\.|\Z)')
_LONGEST = 500

Tree = dict[tuple[bool, str], Any]
"""A step (whether it goes into each element, the member's name) to the tree below it; empty means all of it."""

_MISSING: Any = object()


def parse_fields(fields: Iterable[str]) -> Tree:
    """The tree of some field paths.

    A path is names joined by dots; `[]` goes into each element of an array; a name with dots or brackets
    stands in double quotes: `"a.b".c`.

    Raises:
        InputError: a path that is empty or cannot be read.
    """
    root: Tree = {}
    for field in fields:
        tree, place, steps = root, 0, 0
        while place < len(field) or (place and field[place - 1] == "."):
            match = _STEP.match(field, place) if len(field) <= _LONGEST else None
            name = (match[1] or match[2] or "") if match else ""
            if match is None or not (name or match[3]):
                raise InputError(
                    f"`{field[:80]}` is no field path (write `order.items[].sku`; quote a name with dots)",
                    field="fields",
                )
            keys = [(False, name)] if name else []
            keys += [(True, _EACH)] * (len(match[3]) // 2)
            for key in keys:
                tree = tree.setdefault(key, {})
            place, steps = match.end(), steps + 1
        if not steps:
            raise InputError("a field path is empty (leave `fields` out to keep all)", field="fields")
    return root


def pick(value: Any, tree: Tree) -> Any:
    """What the paths select of a value, in its own shape; None where they select nothing.

    Paths that do not begin with `[]` go into each element of a value that is an array.
    """
    if isinstance(value, list) and tree and (True, _EACH) not in tree:
        tree = {(True, _EACH): tree}
    found = _pick(value, tree)
    return None if found is _MISSING else found


def _pick(value: Any, tree: Tree) -> Any:
    if not tree:
        return value
    if isinstance(value, dict):
        out: dict[str, Any] = {}
        for key, inner in cast(dict[str, Any], value).items():
            below = tree.get((False, key))
            if below is not None:
                found = _pick(inner, below)
                if found is not _MISSING:
                    out[key] = found
        return out or _MISSING
    if isinstance(value, list):
        below = tree.get((True, _EACH))
        if below is not None:
            picked = (_pick(inner, below) for inner in cast(list[Any], value))
            return [found for found in picked if found is not _MISSING]
    return _MISSING
