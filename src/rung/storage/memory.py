"""`MemoryBackend`: for tests and single requests. Nothing is written anywhere."""

from __future__ import annotations

import threading
import time
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Any, NamedTuple

import msgspec

from rung.errors import StoreBusyError, StoreError
from rung.ledger.backend import (
    Audited,
    Census,
    Document,
    Event,
    LogEntry,
    NewRow,
    OriginRow,
    StoredRow,
    Tenants,
    TextRow,
    Tombstone,
)
from rung.ledger.content import beside
from rung.records.item import ContextItem, body
from rung.storage.cache import ItemCache
from rung.storage.chain import chained
from rung.storage.rows import (
    Types,
    as_read,
    audited,
    columns_of,
    id_conflict,
    owned,
    pack_tombstone,
    pack_whole,
    read_record,
    require_owned,
    scope_key,
    tombstone_of,
    unpack,
    unpack_tombstone,
    version_conflict,
)

_PAGE = 256
_WRITTEN = 256


class _Slot(msgspec.Struct, frozen=True, gc=False):
    """A stored item: packed whole. Once it is erased the content key is None, and the record its tombstone's."""

    record: bytes
    type: str
    shelf: _Shelf
    id: str
    content_key: bytes | None


class _Numbers:
    """The items of a session: sequence numbers in order, and the ordinals beside them."""

    __slots__ = ("ordinals", "seqs")

    def __init__(self) -> None:
        self.seqs = array("q")
        self.ordinals = array("q")

    def add(self, seq: int, ordinal: int) -> None:
        seqs = self.seqs
        if seqs and seq < seqs[-1]:
            place = bisect_right(seqs, seq)
            seqs.insert(place, seq)
            self.ordinals.insert(place, ordinal)
        else:
            seqs.append(seq)
            self.ordinals.append(ordinal)


class _Shelf:
    """Everything of one tenant, so that no query can reach into another's."""

    def __init__(self, tenant: str | None) -> None:
        self.tenant = tenant
        self.ordinals = array("q")
        # content key → ordinals of the first registration of each type; one alone is held bare
        self.origins: dict[bytes, int | tuple[int, ...]] = {}
        self.identities: dict[bytes, int] = {}
        self.sessions: dict[str, _Numbers] = {}
        self.counters: dict[str | None, int] = {}
        self.revoked: dict[str, str] = {}
        self.documents: dict[tuple[str, str], Document] = {}
        self.log: list[LogEntry] = []
        self.events: list[Event] = []
        # parent → ordinals of its children (one alone is held bare), made when first asked for and up to the
        # ordinal `followed`. A parent that is stored before its child is held by its ordinal.
        self.children: dict[int | str, int | array[int]] = {}
        self.followed = 0


class _Staged(NamedTuple):
    """A row of a transaction that has not ended."""

    ordinal: int
    row: NewRow
    record: bytes


class _Transaction(msgspec.Struct, eq=False):
    """Holds what is written until the transaction ends well."""

    store: MemoryBackend
    shelf: _Shelf
    used: bool = False
    counters: dict[str | None, int] = {}
    rows: list[_Staged] = []
    ids: set[str] = set()
    claimed: dict[bytes, str] = {}
    entries: list[LogEntry] = []
    documents: dict[tuple[str, str], Document] = {}
    revoked: dict[str, str] = {}
    events: list[Event] = []
    erased: dict[str, Tombstone] = {}
    restored: list[Tombstone] = []

    def __enter__(self) -> _Transaction:
        if self.used:
            raise StoreError("this write has ended or is open (ask the backend for another one)")
        self.store.begin(self)
        self.used = True
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.store.end(self, well=kind is None)

    def wrote(self) -> bool:
        """Whether there is anything to put in place."""
        return bool(
            self.rows or self.entries or self.counters or self.restored or self.documents or self.revoked or self.events
        )

    def next_seq(self, session: str | None, count: int) -> int:
        last = self.counters.get(session)
        if last is None:
            last = self.shelf.counters.get(session)
        if last is None:
            scope_key(session)
            last = 0
        self.counters[session] = last + count
        return last + 1

    def origins(self, keys: Sequence[bytes], tenants: Tenants) -> dict[bytes, tuple[OriginRow, ...]]:
        wanted = {key for key in keys if key}
        found: dict[bytes, dict[str, OriginRow]] = {}
        for key in wanted:
            for shelf in self.store.shelves(tenants):
                for ordinal in self._places(shelf, key):
                    self._note(found, key, self.store.origin(ordinal))
        if self.shelf.tenant in tenants:
            for staged in self.rows:
                if staged.row.content_key in wanted:
                    self._note(found, staged.row.content_key, _origin(staged.ordinal, staged.row.item))
        return {key: tuple(sorted(rows.values(), key=lambda row: row.ordinal)) for key, rows in found.items()}

    def _places(self, shelf: _Shelf, key: bytes) -> Sequence[int]:
        held = shelf.origins.get(key, ())
        first = (held,) if isinstance(held, int) else held
        if all(self.store.slots[ordinal - 1].id not in self.erased for ordinal in first):
            return first
        # An origin is erased by this very write: the next one counts.
        slots = ((ordinal, self.store.slots[ordinal - 1]) for ordinal in shelf.ordinals)
        return [place for place, slot in slots if slot.content_key == key and slot.id not in self.erased]

    @staticmethod
    def _note(found: dict[bytes, dict[str, OriginRow]], key: bytes, row: OriginRow) -> None:
        rows = found.setdefault(key, {})
        first = rows.get(row.type)
        if first is None or row.ordinal < first.ordinal:
            rows[row.type] = row

    def identities(self, identities: Sequence[bytes]) -> dict[bytes, str]:
        found: dict[bytes, str] = {}
        for given in identities:
            item_id = self._holder(given)
            if item_id is not None:
                found[given] = item_id
        return found

    def _holder(self, identity: bytes) -> str | None:
        if identity in self.claimed:
            return self.claimed[identity]
        ordinal = self.shelf.identities.get(identity)
        holder = None if ordinal is None else self.store.slots[ordinal - 1].id
        return None if holder in self.erased else holder

    def insert(self, rows: Sequence[NewRow]) -> list[str]:
        require_owned(rows, self.shelf.tenant)
        out: list[str] = []
        staged: list[_Staged] = []
        claimed: dict[bytes, str] = {}
        ids: set[str] = set()
        following = len(self.store.slots) + len(self.rows) + len(self.restored)
        for row in rows:
            item_id, record, identity = row.item.id, pack_whole(row.item), row.identity
            if identity is not None:
                holder = claimed.get(identity) or self._holder(identity)
                if holder is not None:
                    out.append(holder)
                    continue
                claimed[identity] = item_id
            self._require_new(item_id, ids)
            ids.add(item_id)
            following += 1
            staged.append(_Staged(following, row, record))
            out.append(item_id)
        self.rows += staged
        self.claimed |= claimed
        self.ids |= ids
        return out

    def _require_new(self, item_id: str, ids: set[str]) -> None:
        if item_id in ids or item_id in self.ids or item_id in self.store.by_id:
            raise id_conflict(item_id)

    def texts_since(self, ordinal: int, types: frozenset[str], tenants: Tenants) -> Iterator[TextRow]:
        for place, slot in self.store.slots_after(ordinal, tenants):
            if slot.content_key is not None and slot.type in types and slot.id not in self.erased:
                record = read_record(slot.record)
                yield TextRow(
                    ordinal=place,
                    item_id=slot.id,
                    type=slot.type,
                    source=record.source,
                    tenant=slot.shelf.tenant,
                    text=record.text,
                    beside=beside(record.key, record.version, record.attrs, record.parts),
                )
        if self.shelf.tenant in tenants:
            for staged in list(self.rows):
                item = staged.row.item
                if staged.ordinal > ordinal and item.type.name in types:
                    yield TextRow(
                        ordinal=staged.ordinal,
                        item_id=item.id,
                        type=item.type.name,
                        source=item.source,
                        tenant=self.shelf.tenant,
                        text=body(item),
                        beside=beside(item.key, item.version, item.attrs, item.parts),
                    )

    def log(self, entries: Sequence[LogEntry]) -> None:
        before = self.entries or self.shelf.log
        previous = before[-1].link if before else b""
        number = self.store.log_number
        if self.entries:
            number = max(number + len(self.entries), self.entries[-1].number)
        for entry in entries:
            made = chained(previous, number + 1, owned(entry, self.shelf.tenant))
            previous, number = made.link, max(number + 1, made.number)
            self.entries.append(made)

    def put(self, document: Document, *, expected: int | None = None) -> int:
        document = owned(document, self.shelf.tenant)
        place = (document.kind, document.id)
        stored = self.documents.get(place) or self.shelf.documents.get(place)
        actual = 0 if stored is None else stored.version
        if expected is not None and expected != actual:
            raise version_conflict(document, expected, actual)
        version = max(document.version, 1) if stored is None else actual + 1
        self.documents[place] = msgspec.structs.replace(document, version=version)
        return version

    def revoke(self, ids: Sequence[str], at: datetime, reason: str) -> None:
        for item_id in ids:
            if item_id in self.ids or self._slot(item_id) is not None:
                self.revoked.setdefault(item_id, reason)

    def _slot(self, item_id: str) -> tuple[int, _Slot] | None:
        ordinal = self.store.by_id.get(item_id)
        if ordinal is None or self.store.slots[ordinal - 1].shelf is not self.shelf:
            return None
        return ordinal, self.store.slots[ordinal - 1]

    def emit(self, event: Event) -> int:
        number = self.store.event_number + len(self.events) + 1
        self.events.append(msgspec.structs.replace(owned(event, self.shelf.tenant), number=number))
        return number

    def erase(self, ids: Sequence[str], at: datetime, reason: str) -> list[str]:
        gone: list[str] = []
        for item_id in dict.fromkeys(ids):
            if item_id in self.ids:
                gone += self._erase_staged(item_id, at, reason)
                continue
            found = self._slot(item_id)
            if found is None or item_id in self.erased or found[1].content_key is None:
                continue
            ordinal, slot = found
            self.erased[item_id] = tombstone_of(slot.record, item_id, at, reason, ordinal)
            self.emit(Event(tenant=self.shelf.tenant, at=at, item_id=item_id, reason="erased"))
            gone.append(item_id)
        return gone

    def _erase_staged(self, item_id: str, at: datetime, reason: str) -> list[str]:
        """Erase an item that this very write brought in."""
        for place, staged in enumerate(self.rows):
            if staged.row.item.id == item_id:
                del self.rows[place]
                self.restored.append(tombstone_of(staged.record, item_id, at, reason, staged.ordinal))
                self.claimed = {key: held for key, held in self.claimed.items() if held != item_id}
                self.emit(Event(tenant=self.shelf.tenant, at=at, item_id=item_id, reason="erased"))
                return [item_id]
        return []

    def restore(self, tombstones: Sequence[Tombstone]) -> None:
        ordinal = len(self.store.slots) + len(self.rows) + len(self.restored)
        ids: set[str] = set()
        for number, tombstone in enumerate(tombstones, ordinal + 1):
            self._require_new(tombstone.id, ids)
            ids.add(tombstone.id)
            self.restored.append(msgspec.structs.replace(tombstone, tenant=self.shelf.tenant, ordinal=number))
        self.ids |= ids


class MemoryBackend:
    """Keeps packed copies of items: what is done to a handle outside never changes what is stored.

    Args:
        types: the context types by name.
        busy_timeout: how long a write waits for another one, in seconds.
        cache: how many unpacked items are held ready.
    """

    name = "memory"
    shared = False

    def __init__(self, types: Types, *, busy_timeout: float = 30.0, cache: int = 250_000) -> None:
        self.types = types
        self.slots: list[_Slot] = []
        self.by_id: dict[str, int] = {}
        self.log_number = 0
        self.event_number = 0
        self._revoked = False
        self._shelves: dict[str | None, _Shelf] = {}
        self._busy_timeout = busy_timeout
        self._cache = ItemCache(cache)
        # What was written last is read next, most of the time: copies, as unpacking would give them.
        self._written: dict[str, ContextItem[Any]] = {}
        # Writers come one after another; `_state` is held for moments, while what they wrote is put in place.
        self._writing = threading.Lock()
        self._writer: int | None = None
        self._state = threading.Lock()

    def write(self, tenant: str | None, *, exclusive: bool = False) -> _Transaction:
        shelf = self._shelves.get(tenant)
        if shelf is None:
            scope_key(tenant)
            shelf = _Shelf(tenant)
        return _Transaction(self, shelf)

    def begin(self, tx: _Transaction) -> None:
        """Let a transaction read and write, once no other one is open; ended by `end`."""
        writer = threading.get_ident()
        if self._writer == writer:
            raise StoreError("a write is open in this thread already (end it before the next one)")
        if not self._writing.acquire(blocking=False):
            started = time.monotonic()
            if not self._writing.acquire(timeout=self._busy_timeout):
                waited = time.monotonic() - started
                raise StoreBusyError(
                    f"another write holds the store for {waited:.1f} s (keep writes short, or raise busy_timeout)",
                    waited=waited,
                )
        self._writer = writer
        # Another write may have begun this tenant's shelf meanwhile. Shelves are put in place by writers only.
        tx.shelf = self._shelves.get(tx.shelf.tenant, tx.shelf)

    def end(self, tx: _Transaction, *, well: bool) -> None:
        """Put what a transaction wrote in place, where it ended well."""
        try:
            if well:
                with self._state:
                    self._apply(tx)
        finally:
            self._writer = None
            self._writing.release()

    def _apply(self, tx: _Transaction) -> None:
        if not tx.wrote():
            return
        shelf = tx.shelf
        self._shelves[shelf.tenant] = shelf
        shelf.counters |= tx.counters
        if tx.restored:
            both: list[_Staged | Tombstone] = [*tx.rows, *tx.restored]
            for staged in sorted(both, key=lambda row: row.ordinal):
                if isinstance(staged, Tombstone):
                    self._place(_Slot(pack_tombstone(staged), staged.type, shelf, staged.id, None))
                else:
                    self._put(staged, shelf)
        else:
            for row in tx.rows:
                self._put(row, shelf)
        if tx.entries:
            shelf.log += tx.entries
            self.log_number = max(self.log_number, tx.entries[-1].number)
        if tx.documents:
            shelf.documents |= tx.documents
        if tx.revoked:
            shelf.revoked = tx.revoked | shelf.revoked
            self._revoked = True
        if tx.events:
            shelf.events += tx.events
            self.event_number += len(tx.events)
        if tx.erased:
            self._bury(shelf, tx.erased)

    def _put(self, staged: _Staged, shelf: _Shelf) -> None:
        row = staged.row
        item = row.item
        slot = _Slot(staged.record, item.type.name, shelf, item.id, row.content_key)
        ordinal = self._place(slot)
        self._first(slot, ordinal)
        if row.identity is not None:
            shelf.identities[row.identity] = ordinal
        if item.session is not None:
            numbers = shelf.sessions.get(item.session)
            if numbers is None:
                numbers = shelf.sessions[item.session] = _Numbers()
            numbers.add(item.seq, ordinal)
        if len(self._written) >= _WRITTEN:
            self._written = {}
        read = as_read(item)
        if read is not None:
            self._written[item.id] = read

    def _place(self, slot: _Slot) -> int:
        self.slots.append(slot)
        ordinal = len(self.slots)
        self.by_id[slot.id] = ordinal
        slot.shelf.ordinals.append(ordinal)
        return ordinal

    def _first(self, slot: _Slot, ordinal: int) -> None:
        """Note an item as the origin of its content, unless its type registered that before."""
        if not slot.content_key:
            return
        origins = slot.shelf.origins
        held = origins.get(slot.content_key)
        if held is None:
            origins[slot.content_key] = ordinal
            return
        first = (held,) if isinstance(held, int) else held
        if all(self.slots[place - 1].type != slot.type for place in first):
            origins[slot.content_key] = (*first, ordinal)

    def _bury(self, shelf: _Shelf, erased: dict[str, Tombstone]) -> None:
        gone = {tombstone.ordinal for tombstone in erased.values()}
        for tombstone in erased.values():
            slot = self.slots[tombstone.ordinal - 1]
            self.slots[tombstone.ordinal - 1] = msgspec.structs.replace(
                slot, record=pack_tombstone(tombstone), content_key=None
            )
        # The content that they brought in first may have come in later again.
        shelf.origins.clear()
        for ordinal in shelf.ordinals:
            self._first(self.slots[ordinal - 1], ordinal)
        shelf.identities = {key: place for key, place in shelf.identities.items() if place not in gone}
        for numbers in shelf.sessions.values():
            kept = [
                (seq, place) for seq, place in zip(numbers.seqs, numbers.ordinals, strict=True) if place not in gone
            ]
            numbers.seqs = array("q", [seq for seq, _ in kept])
            numbers.ordinals = array("q", [place for _, place in kept])
        self._written = {}
        self._cache.clear()

    # reading

    def shelves(self, tenants: Tenants) -> list[_Shelf]:
        """The shelves of these tenants that exist."""
        return list(filter(None, map(self._shelves.get, dict.fromkeys(tenants))))

    def origin(self, ordinal: int) -> OriginRow:
        """An item as an origin."""
        slot = self.slots[ordinal - 1]
        return _origin(ordinal, unpack(None, slot.record, self.types, slot.id))

    def slots_after(self, ordinal: int, tenants: Tenants) -> Iterator[tuple[int, _Slot]]:
        """The slots of these tenants after an ordinal, in order, read a page at a time."""
        while True:
            with self._state:
                shelves = self.shelves(tenants)
                starts = [bisect_right(shelf.ordinals, ordinal) for shelf in shelves]
                page = sorted(
                    place
                    for shelf, start in zip(shelves, starts, strict=True)
                    for place in shelf.ordinals[start : start + _PAGE]
                )[:_PAGE]
                slots = [(place, self.slots[place - 1]) for place in page]
            yield from slots
            if len(page) < _PAGE:
                return
            ordinal = page[-1]

    def _unpacked(self, slots: Sequence[_Slot], generation: int) -> dict[str, ContextItem[Any]]:
        """The items of these slots, kept for the next time."""
        written = self._written
        items = [written.get(slot.id) or unpack(None, slot.record, self.types, slot.id) for slot in slots]
        return {item.id: item for item in self._cache.keep(items, generation)}

    def get(self, ids: Sequence[str], tenants: Tenants) -> dict[str, ContextItem[Any]]:
        found = self._cache.find(list(ids), tenants)
        if len(found) == len(ids):
            return found
        missing = [item_id for item_id in dict.fromkeys(ids) if item_id not in found]
        if missing:
            with self._state:
                # Read before the slots: what is erased in the meantime must not be kept.
                generation = self._cache.generation
                slots: list[_Slot] = []
                for item_id in missing:
                    ordinal = self.by_id.get(item_id)
                    slot = None if ordinal is None else self.slots[ordinal - 1]
                    if slot is not None and slot.content_key is not None and slot.shelf.tenant in tenants:
                        slots.append(slot)
            found |= self._unpacked(slots, generation)
        return found

    def children(self, ids: Sequence[str], tenants: Tenants) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        with self._state:
            shelves = self.shelves(tenants)
            for shelf in shelves:
                self._follow(shelf)
            for item_id in dict.fromkeys(ids):
                places: list[int] = []
                for parent in (item_id, self.by_id.get(item_id, 0)):
                    for shelf in shelves:
                        held = shelf.children.get(parent, ())
                        places += (held,) if isinstance(held, int) else held
                if places:
                    found[item_id] = tuple(self.slots[place - 1].id for place in sorted(places))
        return found

    def _follow(self, shelf: _Shelf) -> None:
        for place in shelf.ordinals[bisect_right(shelf.ordinals, shelf.followed) :]:
            slot = self.slots[place - 1]
            if slot.content_key is None:
                parents = unpack_tombstone(slot.record, place).derived_from
            else:
                parents = read_record(slot.record).derived_from
            for name in dict.fromkeys(parents):
                parent = self.by_id.get(name, name)
                held = shelf.children.setdefault(parent, place)
                if isinstance(held, array):
                    held.append(place)
                elif held != place:
                    shelf.children[parent] = array("q", (held, place))
            shelf.followed = place

    def session_items(
        self, session: str, tenants: Tenants, *, after: int = 0, limit: int | None = None
    ) -> list[ContextItem[Any]]:
        with self._state:
            generation = self._cache.generation
            places: list[tuple[int, int]] = []
            for shelf in self.shelves(tenants):
                numbers = shelf.sessions.get(session)
                if numbers is not None and numbers.seqs and numbers.seqs[-1] > after:
                    start = bisect_right(numbers.seqs, after)
                    stop = len(numbers.seqs) if limit is None else start + limit
                    places += zip(numbers.seqs[start:stop], numbers.ordinals[start:stop], strict=True)
            if not places:
                return []
            places.sort()
            slots = [self.slots[place - 1] for _, place in places[:limit]]
        wanted = [slot.id for slot in slots]
        written = self._written
        held = {item_id: item for item_id in wanted if (item := written.get(item_id)) is not None}
        if len(held) < len(wanted):
            held |= self._cache.find(wanted, tenants)
            held |= self._unpacked([slot for slot in slots if slot.id not in held], generation)
        return [held[item_id] for item_id in wanted]

    def items(
        self,
        tenants: Tenants,
        *,
        types: frozenset[str] | None = None,
        source: str | None = None,
        key: str | None = None,
        subject: str | None = None,
        expired_at: datetime | None = None,
        after: int = 0,
        limit: int | None = None,
    ) -> Iterator[ContextItem[Any]]:
        left = limit
        for _, slot in self.slots_after(after, tenants):
            if left == 0:
                return
            if slot.content_key is None or (types is not None and slot.type not in types):
                continue
            held = self._cache.find([slot.id], tenants)
            item = held[slot.id] if held else unpack(None, slot.record, self.types, slot.id)
            if (
                (source is None or item.source == source)
                and (key is None or item.key == key)
                and (subject is None or item.labels.subject == subject)
                and (expired_at is None or (item.expires_at is not None and item.expires_at <= expired_at))
            ):
                left = None if left is None else left - 1
                yield item

    def rows(self, tenants: Tenants, *, after: int = 0) -> Iterator[StoredRow]:
        with self._state:
            identities = {place: key for shelf in self.shelves(tenants) for key, place in shelf.identities.items()}
        for place, slot in self.slots_after(after, tenants):
            if slot.content_key is not None:
                yield StoredRow(
                    ordinal=place,
                    item=unpack(None, slot.record, self.types, slot.id),
                    content_key=slot.content_key,
                    identity=identities.get(place),
                )

    def tenants(self) -> tuple[str, ...]:
        with self._state:
            return tuple(sorted(name for name, shelf in self._shelves.items() if name is not None and shelf.ordinals))

    def revoked(self, ids: Sequence[str], tenants: Tenants) -> dict[str, str]:
        found: dict[str, str] = {}
        if not self._revoked:
            return found
        with self._state:
            for shelf in self.shelves(tenants):
                if shelf.revoked:
                    found |= {item_id: shelf.revoked[item_id] for item_id in ids if item_id in shelf.revoked}
        return found

    def tombstones(self, tenants: Tenants, ids: Sequence[str] | None = None) -> dict[str, Tombstone]:
        wanted = None if ids is None else set(ids)
        return {
            slot.id: unpack_tombstone(slot.record, place)
            for place, slot in self.slots_after(0, tenants)
            if slot.content_key is None and (wanted is None or slot.id in wanted)
        }

    def events(self, tenants: Tenants, *, after: int = 0) -> list[Event]:
        if self.event_number <= after:
            return []
        with self._state:
            shelves = self.shelves(tenants)
            # Numbered in the order of writing, so what is new stands at the end.
            found = [
                event
                for shelf in shelves
                if shelf.events
                for event in shelf.events[bisect_right(shelf.events, after, key=lambda event: event.number) :]
            ]
        return sorted(found, key=lambda event: event.number) if found else found

    def logged(self, tenants: Tenants, *, after: int = 0, kinds: frozenset[str] | None = None) -> Iterator[LogEntry]:
        with self._state:
            found = [
                entry
                for shelf in self.shelves(tenants)
                for entry in shelf.log
                if entry.number > after and (kinds is None or entry.kind in kinds)
            ]
        found.sort(key=lambda entry: entry.number)
        yield from found

    def document(self, kind: str, id: str, tenants: Tenants) -> Document | None:
        with self._state:
            for shelf in self.shelves(tenants):
                found = shelf.documents.get((kind, id))
                if found is not None:
                    return found
        return None

    def documents(self, kind: str | None, tenants: Tenants, *, session: str | None = None) -> Iterator[Document]:
        with self._state:
            found = [
                document
                for shelf in self.shelves(tenants)
                for document in shelf.documents.values()
                if (kind is None or document.kind == kind) and (session is None or document.session == session)
            ]
        found.sort(key=lambda document: document.id)
        yield from found

    def census(self, tenants: Tenants) -> list[Census]:
        counts: dict[tuple[str | None, str], list[int]] = {}
        for _, slot in self.slots_after(0, tenants):
            count = counts.setdefault((slot.shelf.tenant, slot.type), [0, 0, 0])
            if slot.content_key is None:
                count[2] += 1
                continue
            count[0] += 1
            count[1] += len(read_record(slot.record).text)
        return [
            Census(tenant=tenant, type=kind, items=items, characters=characters, erased=erased)
            for (tenant, kind), (items, characters, erased) in sorted(
                counts.items(), key=lambda entry: (entry[0][0] is not None, entry[0][0] or "", entry[0][1])
            )
        ]

    def audit(self, tenants: Tenants) -> Iterator[Audited]:
        for _, slot in self.slots_after(0, tenants):
            if slot.content_key is not None:
                item = unpack(None, slot.record, self.types, slot.id)
                yield audited(None, slot.record, self.types, columns_of(item))

    def vacuum(self) -> None:
        """Nothing to do: erased items leave nothing behind."""

    def close(self) -> None:
        """Drop the cache; what is stored ends with the object."""
        self._cache.clear()


def _origin(ordinal: int, item: ContextItem[Any]) -> OriginRow:
    return OriginRow(
        ordinal=ordinal,
        item_id=item.id,
        type=item.type.name,
        source=item.source,
        tenant=item.labels.tenant,
    )
