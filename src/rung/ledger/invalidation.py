"""Events that say that something no longer holds, or no longer is: read once and kept by what they name."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any

from rung.ledger.backend import Backend, Event, Tenants
from rung.records.item import ContextItem


class _Known:
    """The events of one tenant, by the narrowest field that they name."""

    __slots__ = ("by_item", "by_key", "by_source", "by_version", "cursor", "erased")

    def __init__(self) -> None:
        self.cursor = 0
        self.by_item: dict[str, list[Event]] = {}
        self.by_key: dict[str, list[Event]] = {}
        self.by_source: dict[str, list[Event]] = {}
        self.by_version: dict[str, list[Event]] = {}
        self.erased: list[str] = []

    def take(self, event: Event) -> None:
        for value, index in (
            (event.item_id, self.by_item),
            (event.key, self.by_key),
            (event.source, self.by_source),
            (event.version, self.by_version),
        ):
            if value is not None:
                index.setdefault(value, []).append(event)
                break
        if event.reason == "erased" and event.item_id is not None:
            self.erased.append(event.item_id)
        self.cursor = max(self.cursor, event.number)

    def about(self, item: ContextItem[Any]) -> Event | None:
        for value, index in (
            (item.id, self.by_item),
            (item.key, self.by_key),
            (item.source, self.by_source),
            (item.version, self.by_version),
        ):
            for event in reversed(index.get(value, ())) if value is not None else ():
                if _matches(event, item):
                    return event
        return None


class Invalidations:
    """What is known of invalidations in this process; each question reads what is new first."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._tenants: dict[str | None, _Known] = {}
        self._lock = threading.Lock()

    def among(self, items: Sequence[ContextItem[Any]], tenants: Tenants, *, read: bool = True) -> dict[str, str]:
        """The items that an event has invalidated since they were seen, with its reason; without `read`, as far as
        the events are known."""
        out: dict[str, str] = {}
        with self._lock:
            for tenant in tenants:
                known = self._caught_up(tenant) if read else self._known(tenant)
                if known.cursor:
                    for item in items:
                        event = known.about(item)
                        if event is not None:
                            out[item.id] = event.reason
        return out

    def erased(self, tenants: Tenants) -> tuple[Sequence[str], ...]:
        """Of each tenant the items that were erased, in the order of their events. They only grow."""
        with self._lock:
            return tuple([self._caught_up(tenant).erased for tenant in tenants])

    def _known(self, tenant: str | None) -> _Known:
        known = self._tenants.get(tenant)
        if known is None:
            known = self._tenants[tenant] = _Known()
        return known

    def _caught_up(self, tenant: str | None) -> _Known:
        known = self._known(tenant)
        for event in self._backend.events((tenant,), after=known.cursor):
            known.take(event)
        return known


def _matches(event: Event, item: ContextItem[Any]) -> bool:
    # An item seen at the very moment of the event is as new as the event: it stays.
    return (
        item.seen_at < event.at
        and (event.item_id is None or event.item_id == item.id)
        and (event.key is None or event.key == item.key)
        and (event.source is None or event.source == item.source)
        and (event.version is None or event.version == item.version)
    )
