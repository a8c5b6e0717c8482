"""A store as JSON lines: to keep elsewhere, to look at, or to move to another backend."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator
from datetime import datetime

import msgspec

from rung.errors import IntegrityError, SchemaVersionError
from rung.ledger.backend import Backend, Document, Event, LogEntry, NewRow, Tenants, Tombstone, Transaction
from rung.records.codec import ItemRow, from_row, to_row
from rung.storage.maintenance import every_tenant
from rung.storage.rows import Types, id_conflict

EXPORT_VERSION = 1
_BATCH = 500


class Header(msgspec.Struct, frozen=True, kw_only=True, tag="rung-export", tag_field="line"):
    """The first line."""

    version: int = EXPORT_VERSION
    at: datetime


class Begin(msgspec.Struct, frozen=True, kw_only=True, tag="tenant", tag_field="line"):
    """What follows belongs to this tenant."""

    tenant: str | None


class ItemLine(msgspec.Struct, frozen=True, kw_only=True, tag="item", tag_field="line"):
    """An item, the keys it is found by, and why it is revoked if it is."""

    item: ItemRow
    content_key: bytes
    identity: bytes | None
    revoked: str | None = None


class TombstoneLine(msgspec.Struct, frozen=True, kw_only=True, tag="tombstone", tag_field="line"):
    """What remains of an erased item."""

    tombstone: Tombstone


class DocumentLine(msgspec.Struct, frozen=True, kw_only=True, tag="document", tag_field="line"):
    """A document."""

    document: Document


class EventLine(msgspec.Struct, frozen=True, kw_only=True, tag="event", tag_field="line"):
    """An invalidation."""

    event: Event


class LogLine(msgspec.Struct, frozen=True, kw_only=True, tag="log", tag_field="line"):
    """A decision, with its link."""

    entry: LogEntry


Line = Header | Begin | ItemLine | TombstoneLine | DocumentLine | EventLine | LogLine

_encode = msgspec.json.Encoder(order="deterministic").encode
_decoder: msgspec.json.Decoder[Line] = msgspec.json.Decoder(Line)


class Imported(msgspec.Struct, frozen=True, kw_only=True):
    """How much an import took in."""

    items: int = 0
    tombstones: int = 0
    documents: int = 0
    events: int = 0
    entries: int = 0


def export(backend: Backend, at: datetime, tenants: Tenants | None = None) -> Iterator[str]:
    """The lines of an export, without line ends; everybody's where no tenants are named.

    Args:
        backend: the store.
        at: the moment that the export says it was made.
        tenants: whose data.
    """
    yield _text(Header(at=at))
    for tenant in every_tenant(backend) if tenants is None else tenants:
        only = (tenant,)
        yield _text(Begin(tenant=tenant))
        yield from (line for _, line in heapq.merge(_items(backend, only), _tombstones(backend, only)))
        for document in backend.documents(None, only):
            yield _text(DocumentLine(document=document))
        for event in backend.events(only):
            yield _text(EventLine(event=event))
        for entry in backend.logged(only):
            yield _text(LogLine(entry=entry))


def _items(backend: Backend, only: Tenants) -> Iterator[tuple[int, str]]:
    for row in backend.rows(only):
        line = ItemLine(
            item=to_row(row.item),
            content_key=row.content_key,
            identity=row.identity,
            revoked=backend.revoked([row.item.id], only).get(row.item.id),
        )
        yield row.ordinal, _text(line)


def _tombstones(backend: Backend, only: Tenants) -> Iterator[tuple[int, str]]:
    for tombstone in backend.tombstones(only).values():
        yield tombstone.ordinal, _text(TombstoneLine(tombstone=tombstone))


def _text(line: Line) -> str:
    return _encode(line).decode("utf-8")


def import_lines(backend: Backend, lines: Iterable[str | bytes], types: Types) -> Imported:
    """Take in an export. Each tenant is taken in as a whole or not at all, with its ids, digests and links.

    Revocations are dated with the export; events get new numbers; everything else is as it was.

    Args:
        backend: a store that has none of these items.
        lines: of `export`.
        types: the context types by name.

    Raises:
        IntegrityError: a line cannot be read, an item contradicts its digest, or a log does not continue.
        ConflictError: an item exists already.
        SchemaVersionError: the export is from a newer version.
    """
    total = Imported()
    found = _lines(lines)
    header = next(found, None)
    if not isinstance(header, Header):
        raise IntegrityError("the first line is not the head of an export (give a whole export)", culprits=("1",))
    if header.version > EXPORT_VERSION:
        raise SchemaVersionError(
            f"the export has version {header.version}, this rung reads up to {EXPORT_VERSION} (upgrade rung)",
            found=header.version,
            supported=EXPORT_VERSION,
        )
    begin = next(found, None)
    while isinstance(begin, Begin):
        with backend.write(begin.tenant, exclusive=True) as tx:
            taking = _Taking(tx, types, header.at)
            begin = None
            for line in found:
                if isinstance(line, Begin):
                    begin = line
                    break
                taking.take(line)
            taking.finish()
        total = Imported(**{name: getattr(total, name) + count for name, count in taking.counts.items()})
    return total


def _lines(lines: Iterable[str | bytes]) -> Iterator[Line]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            yield _decoder.decode(line)
        except (msgspec.MsgspecError, ValueError) as problem:
            raise IntegrityError(f"line {number} cannot be read (export again)", culprits=(str(number),)) from problem


class _Taking:
    """Takes in the lines of one tenant."""

    def __init__(self, tx: Transaction, types: Types, at: datetime) -> None:
        self._tx = tx
        self._types = types
        self._at = at
        self._rows: list[NewRow] = []
        self._revoked: dict[str, list[str]] = {}
        self._entries: list[LogEntry] = []
        self._last: dict[str | None, int] = {}
        self.counts = dict.fromkeys(Imported.__struct_fields__, 0)

    def take(self, line: Line) -> None:
        if isinstance(line, ItemLine):
            self._take_item(line)
            return
        self._write_rows()
        if isinstance(line, TombstoneLine):
            self._tx.restore([line.tombstone])
            self.counts["tombstones"] += 1
        elif isinstance(line, DocumentLine):
            self._tx.put(line.document, expected=0)
            self.counts["documents"] += 1
        elif isinstance(line, EventLine):
            self._tx.emit(line.event)
            self.counts["events"] += 1
        elif isinstance(line, LogLine):
            self._entries.append(line.entry)
            self.counts["entries"] += 1

    def _take_item(self, line: ItemLine) -> None:
        item = from_row(line.item, self._types)
        if item.computed_digest() != item.digest:
            raise IntegrityError(f"item `{item.id}` contradicts its digest (export again)", culprits=(item.id,))
        self._rows.append(NewRow(item=item, content_key=line.content_key, identity=line.identity))
        self._last[item.session] = max(self._last.get(item.session, 0), item.seq)
        if line.revoked is not None:
            self._revoked.setdefault(line.revoked, []).append(item.id)
        self.counts["items"] += 1
        if len(self._rows) >= _BATCH:
            self._write_rows()

    def _write_rows(self) -> None:
        if self._rows:
            held = self._tx.identities([row.identity for row in self._rows if row.identity is not None])
            if held:
                raise id_conflict(next(iter(held.values())))
            self._tx.insert(self._rows)
            self._rows = []

    def finish(self) -> None:
        self._write_rows()
        for reason, ids in self._revoked.items():
            self._tx.revoke(ids, self._at, reason)
        self._tx.log(self._entries)
        for session, last in self._last.items():
            # Numbers that were given in the other store are not given again.
            given = self._tx.next_seq(session, 1)
            if given < last:
                self._tx.next_seq(session, last - given)
