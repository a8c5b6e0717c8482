"""A bounded cache of items that were read: least recently used first out."""

from __future__ import annotations

import threading
from collections import OrderedDict
from typing import Any

from rung.ledger.backend import Tenants
from rung.records.item import ContextItem, body


class ItemCache:
    """Items by tenant and id. An item is found through its own tenant only, never by id alone.

    Args:
        items: how many at most; 0 keeps none.
        characters: how much text at most.
    """

    def __init__(self, items: int = 20_000, characters: int = 64 * 1024 * 1024) -> None:
        self._items = items
        self._characters = characters
        self._held = 0
        self._lock = threading.Lock()
        self._entries: OrderedDict[tuple[str | None, str], ContextItem[Any]] = OrderedDict()
        self.generation = 0

    def find(self, ids: list[str], tenants: Tenants) -> dict[str, ContextItem[Any]]:
        """Those of these items that are held."""
        found: dict[str, ContextItem[Any]] = {}
        with self._lock:
            if not self._entries:
                return found
            for item_id in ids:
                for tenant in tenants:
                    item = self._entries.get((tenant, item_id))
                    if item is not None:
                        self._entries.move_to_end((tenant, item_id))
                        found[item_id] = item
                        break
        return found

    def keep(self, items: list[ContextItem[Any]], generation: int) -> list[ContextItem[Any]]:
        """Hold these items, unless something was dropped since `generation`; for each the held object."""
        out: list[ContextItem[Any]] = []
        with self._lock:
            if generation != self.generation or not self._items:
                return items
            for item in items:
                place = (item.labels.tenant, item.id)
                held = self._entries.get(place)
                if held is None:
                    self._entries[place] = held = item
                    self._held += len(body(item))
                out.append(held)
            while self._entries and (len(self._entries) > self._items or self._held > self._characters):
                _, dropped = self._entries.popitem(last=False)
                self._held -= len(body(dropped))
        return out

    def clear(self) -> None:
        """Drop everything, and what is being read at this moment too."""
        with self._lock:
            self.generation += 1
            self._held = 0
            self._entries.clear()
