"""Cutting JSON: valid in, valid out, with a count where something was left out.

An array keeps its first elements and ends with `{"$omitted": 120}`; an object keeps scalars before containers
and says with the member `$omitted` how many members went; a long string keeps its beginning and says how many
characters went. The largest parts are cut first: what is small enough for an equal share stays whole.
"""

from __future__ import annotations

import json
from typing import Any, cast

import msgspec

from rung.compiler.truncation_text import Cutter, Piece, marker
from rung.tokens import Tokenizer, take_tokens
from rung.tokens.blocks import joints
from rung.tokens.protocol import well_formed

OMITTED = "$omitted"

_MARK = 10  # tokens to plan for `,{"$omitted":1240}`
_STRING_FLOOR = 48  # a string this short is not worth cutting
_ARRAY_FLOOR = 24
_DEEPEST = 100
_SMALL = 4


def cut_json(text: str, tokenizer: Tokenizer) -> Cutter | None:
    """Keep what fits of a JSON value in its canonical form; None where the text is not JSON."""
    value = decode(text)
    if value is NOT_JSON:
        return None
    return Reduction(value, tokenizer).best


NOT_JSON: Any = object()


def decode(text: str | bytes) -> Any:
    """The value of a JSON text, or `NOT_JSON`; deeper than 100 levels is none that we cut."""
    try:
        value = msgspec.json.decode(text)
        return value if _depth(value) <= _DEEPEST else NOT_JSON
    except (msgspec.MsgspecError, RecursionError, UnicodeError):
        return NOT_JSON


def _depth(value: object) -> int:
    deepest, level = 0, [value]
    while level and deepest <= _DEEPEST:
        deepest += 1
        inner: list[object] = []
        for node in level:
            if isinstance(node, dict):
                inner.extend(cast(dict[str, object], node).values())
            elif isinstance(node, list):
                inner.extend(cast(list[object], node))
        level = inner
    return deepest


def encode(value: object) -> str:
    """The canonical JSON text; numbers that the fast encoder cannot hold are written by the slow one."""
    try:
        return msgspec.json.encode(value, order="sorted").decode()
    except (OverflowError, UnicodeEncodeError):
        made = json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        return well_formed(made)


class Reduced:
    """A reduced value with what was kept and left out in it: elements and members, and characters of strings."""

    __slots__ = ("characters", "kept", "left", "value")

    def __init__(self, value: Any, kept: int = 0, left: int = 0, characters: int = 0) -> None:
        self.value = value
        self.kept = kept
        self.left = left
        self.characters = characters


class Reduction:
    """Reductions of one value by a planned size; costs are counted once for a node."""

    def __init__(self, value: Any, tokenizer: Tokenizer) -> None:
        self._value = value
        self._tokenizer = tokenizer
        self._bounded = joints(tokenizer) is not None
        self._costs: dict[int, tuple[int, bool]] = {}
        self._texts: dict[int, str] = {}
        self._sizes: dict[int, int] = {}

    def best(self, room: int) -> Piece | None:
        """The fullest reduction that counts at most `room` tokens.

        The plan adds up parts that were counted alone, which is mostly more than the joined text counts, so
        plans above the room are tried too: the largest plan whose text fits wins.
        """
        low, piece = 0, None
        high = max(2 * room, room + 64) + 1
        rounds = 24 if room <= 20_000 else 6
        plan = room
        while rounds and high - low > 1:
            rounds -= 1
            made, tokens = self._made(plan)
            if tokens <= room:
                low, piece = plan, made
                if not made.left:
                    break
                plan = min(high - 1, max(low + 1, low + (room - tokens) * 5 // 4))
                if plan == low:
                    break
            else:
                high = plan
                plan = (low + high) // 2
        return piece

    def _made(self, plan: int) -> tuple[Piece, int]:
        made = self._fit(self._value, plan)
        text = encode(made.value)
        tokens = self._tokenizer.count(text)
        unit, left = ("elements", made.left) if made.left or not made.characters else ("characters", made.characters)
        return Piece(text=text, kept=made.kept, left=left, unit=unit, rule="json"), tokens

    # --- costs -------------------------------------------------------------------------------------------

    def _cost(self, node: Any, cap: int) -> int:
        """The tokens of a node, or any number above `cap` where it is more."""
        key = id(node)
        known = self._costs.get(key)
        if known is not None and (known[1] or known[0] > cap):
            return known[0]
        text = self._texts.get(key)
        if text is None:
            text = encode(node)
            if len(text) > 1_000:
                self._texts[key] = text
        if self._bounded and len(text) > 4 * cap + 1_024 and len(take_tokens(self._tokenizer, text, cap)) < len(text):
            self._costs[key] = (cap + 1, False)
            return cap + 1
        tokens = self._tokenizer.count(text)
        self._costs[key] = (tokens, True)
        return tokens

    def _floor(self, node: Any, cap: int) -> int:
        """What a node costs with its arrays and long strings cut, all members kept; above `cap` any number."""
        if isinstance(node, str):
            return min(self._cost(node, _STRING_FLOOR), _STRING_FLOOR)
        if isinstance(node, list):
            return min(self._cost(cast(list[Any], node), _ARRAY_FLOOR), _ARRAY_FLOOR)
        if isinstance(node, dict):
            total = 2
            for key, inner in cast(dict[str, Any], node).items():
                total += self._key(key, cap) + self._floor(inner, cap - total)
                if total > cap:
                    break
            return total
        return self._cost(node, cap)

    def _key(self, key: str, cap: int) -> int:
        return self._cost(key, cap) + 1

    # --- reductions --------------------------------------------------------------------------------------

    def _whole(self, node: Any) -> Reduced:
        return Reduced(node, self._size(node))

    def _size(self, node: Any) -> int:
        """The elements and members in a node, at every depth."""
        if not isinstance(node, dict | list):
            return 0
        held = cast(dict[str, Any] | list[Any], node)
        known = self._sizes.get(id(held))
        if known is None:
            known = len(held) + sum(map(self._size, held.values() if isinstance(held, dict) else held))
            self._sizes[id(held)] = known
        return known

    def _fit(self, node: Any, room: int) -> Reduced:
        if self._cost(node, room) <= room:
            return self._whole(node)
        if isinstance(node, str):
            return self._string(node, room)
        if isinstance(node, list):
            return self._array(cast(list[Any], node), room)
        if isinstance(node, dict):
            return self._object(cast(dict[str, Any], node), room)
        return Reduced(node)

    def _string(self, text: str, room: int) -> Reduced:
        words = marker(len(text), "characters")
        head = take_tokens(self._tokenizer, text, max(0, room - self._tokenizer.count(f'" {words}"')))
        left = len(text) - len(head)
        if not left:
            return Reduced(text)
        return Reduced(f"{head} {marker(left, 'characters')}" if head else marker(left, "characters"), 0, 0, left)

    def _array(self, items: list[Any], room: int) -> Reduced:
        free = room - _MARK - 2
        floors = 0
        shared = 0
        for item in items:
            floors += self._floor(item, free - floors) + 1
            if floors > free:
                break
            shared += 1
        if shared < len(items):
            count = self._prefix(items, free)
            if count:
                kept = items[:count]
                size = count + sum(map(self._size, kept))
                return Reduced([*kept, {OMITTED: len(items) - count}], size, self._size(items) - size)
            shared = self._halfway(items, free)
        made = self._share(items[:shared], free - shared)
        left = len(items) - shared
        out = [one.value for one in made]
        if left:
            out.append({OMITTED: left})
        lost = left + sum(map(self._size, items[shared:]))
        return _sum(out, made, shared, lost)

    def _prefix(self, items: list[Any], free: int) -> int:
        spent = 0
        for count, item in enumerate(items):
            spent += self._cost(item, free - spent) + (not isinstance(item, dict | list))
            if spent > free:
                return count
        return len(items)

    def _halfway(self, items: list[Any], free: int) -> int:
        """How many first elements are shown reduced, where not even the first is shown whole."""
        spent = 0
        for count, item in enumerate(items):
            spent += self._floor(item, free) + 1
            if spent > free // 2:
                return max(count, 1 if free >= _ARRAY_FLOOR else 0)
        return len(items)

    def _object(self, members: dict[str, Any], room: int) -> Reduced:
        free = room - _MARK - 2
        # Scalars come before containers; within each the order of the text decides.
        order = sorted(members, key=lambda key: isinstance(members[key], dict | list))
        chosen: list[str] = []
        spent = 0
        for key in order:
            need = self._key(key, free - spent)
            if spent + need <= free:
                need += self._least(members[key], free - spent)
            if spent + need > free:
                continue
            spent += need
            chosen.append(key)
            if free - spent < _SMALL:
                break
        keys = set(chosen)
        kept = [key for key in members if key in keys]
        room_for_values = free - sum(self._key(key, free) for key in kept)
        made = self._share([members[key] for key in kept], room_for_values)
        out = dict(zip(kept, (one.value for one in made), strict=True))
        left = len(members) - len(kept)
        lost = left + sum(self._size(value) for key, value in members.items() if key not in keys)
        if left:
            name = OMITTED
            while name in members:
                name = "$" + name
            out[name] = left
        return _sum(out, made, len(kept), lost)

    def _least(self, node: Any, cap: int) -> int:
        """The least that a member must be given to be shown at all."""
        if isinstance(node, str):
            return min(self._cost(node, min(cap, 16)), 16)
        if isinstance(node, dict | list):
            return min(self._cost(cast(Any, node), min(cap, _MARK + 4)), _MARK + 4)
        return self._cost(node, cap)

    def _share(self, nodes: list[Any], room: int) -> list[Reduced]:
        """Each node within a level that all share; what a small node leaves goes to the larger ones."""
        costs = [self._cost(node, room) for node in nodes]
        level = rest = room
        for done, cost in enumerate(sorted(costs)):
            level = rest // (len(costs) - done)
            if cost > level:
                break
            rest -= cost
        return [self._fit(node, max(level, 1)) for node in nodes]


def _sum(value: Any, made: list[Reduced], kept: int, left: int) -> Reduced:
    return Reduced(
        value,
        kept + sum(one.kept for one in made),
        left + sum(one.left for one in made),
        sum(one.characters for one in made),
    )
