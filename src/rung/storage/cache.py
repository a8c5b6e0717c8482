"""A bounded cache of items that were read: what was not used for longest goes first."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from rung.ledger.backend import Tenants
from rung.records.item import ContextItem, body

_Generation = dict[str | None, dict[str, ContextItem[Any]]]


class ItemCache:
    """Items by tenant and id. An item is found through its own tenant only, never by id alone.

    Two generations: an item used again moves to the new one; when that holds half of the limit, the old one is
    dropped. Recency as good as needed, and a look-up takes no lock.

    Args:
        items: how many at most; 0 keeps none.
        characters: how much text at most.
    """

    def __init__(self, items: int = 250_000, characters: int = 256 * 1024 * 1024) -> None:
        self._items = max(1, items // 2) if items else 0
        self._characters = max(1, characters // 2)
        self._lock = threading.Lock()
        self._new: _Generation = {}
        self._old: _Generation = {}
        self._held = self._held_characters = 0
        self.generation = 0

    def find(self, ids: Sequence[str], tenants: Tenants) -> dict[str, ContextItem[Any]]:
        """Those of these items that are held."""
        found: dict[str, ContextItem[Any]] = {}
        generation = self.generation
        new, old = self._new, self._old
        wanted = ids
        for tenant in tenants:
            mine = new.get(tenant)
            if mine:
                for item_id in wanted:
                    item = mine.get(item_id)
                    if item is not None:
                        found[item_id] = item
                if len(found) == len(ids):
                    return found
                if found:
                    wanted = [item_id for item_id in wanted if item_id not in found]
        if not old:
            return found
        older: list[ContextItem[Any]] = []
        for tenant in tenants:
            mine = old.get(tenant)
            if mine:
                older += [mine[item_id] for item_id in ids if item_id not in found and item_id in mine]
        if older:
            self.keep(older, generation)
            found |= {item.id: item for item in older}
        return found

    def keep(self, items: list[ContextItem[Any]], generation: int) -> list[ContextItem[Any]]:
        """Hold these items, unless something was dropped since `generation`; for each the held object."""
        out: list[ContextItem[Any]] = []
        with self._lock:
            if generation != self.generation or not self._items:
                return items
            for item in items:
                mine = self._new.setdefault(item.labels.tenant, {})
                held = mine.get(item.id)
                if held is None:
                    older = self._old.get(item.labels.tenant)
                    held = item if older is None else older.get(item.id, item)
                    mine[item.id] = held
                    self._held += 1
                    self._held_characters += len(body(held))
                out.append(held)
                if self._held >= self._items or self._held_characters >= self._characters:
                    self._old, self._new = self._new, {}
                    self._held = self._held_characters = 0
        return out

    def clear(self) -> None:
        """Drop everything, and what is being read at this moment too."""
        with self._lock:
            self.generation += 1
            self._held = self._held_characters = 0
            self._new, self._old = {}, {}
