"""`SqliteBackend`: one file, many threads and processes. The embedded default."""

from __future__ import annotations

import heapq
import os
import sqlite3
from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from datetime import datetime
from typing import Any, Literal

from rung.errors import InputError, IntegrityError
from rung.ledger.backend import Audited, Census, Document, Event, LogEntry, StoredRow, Tenants, Tombstone
from rung.records.item import ContextItem
from rung.storage.cache import ItemCache
from rung.storage.rows import (
    Types,
    audited,
    known_names,
    micros,
    moment,
    scope_key,
    scope_keys,
    scope_name,
    storable,
    unpack,
    unpack_tombstone,
)
from rung.storage.sqlite_connections import Connections
from rung.storage.sqlite_write import PAGE, SqliteTransaction, marks, padded, stored_types

_TENANT_TABLES = ("items", "documents", "log", "events")


class SqliteBackend:
    """Items in a SQLite file in WAL mode.

    Each write is one `BEGIN IMMEDIATE` transaction, so writers of all threads and processes come one after
    another and readers never wait. With `synchronous="FULL"` what was acknowledged survives a killed process
    and a power cut; with `"NORMAL"` a killed process only, at a tenth of the time per commit.

    Args:
        path: the file; made if absent.
        types: the context types by name.
        busy_timeout: how long a write waits for other writers, in seconds.
        synchronous: `"FULL"` or `"NORMAL"`.
        readers: how many reading connections at most.
        cache: how many items are held ready for reading.

    Raises:
        SchemaVersionError: the file is from a newer version, or is another program's.
        StoreBusyError: another process held the file for longer than `busy_timeout`.
    """

    name = "sqlite"
    shared = False

    def __init__(
        self,
        path: str | os.PathLike[str],
        types: Types,
        *,
        busy_timeout: float = 30.0,
        synchronous: Literal["FULL", "NORMAL"] = "FULL",
        readers: int = 8,
        cache: int = 250_000,
    ) -> None:
        self.path = os.fspath(path)
        if not self.path or self.path == ":memory:" or self.path.startswith("file:"):
            raise InputError(
                f"`{self.path}` is not the path of a file (use MemoryBackend for a store without one)",
                field="path",
            )
        if synchronous not in ("FULL", "NORMAL"):
            raise InputError(f"`{synchronous}` is no durability (give `FULL` or `NORMAL`)", field="synchronous")
        self._types = types
        self._connections = Connections(self.path, busy_timeout, synchronous, readers)
        self._cache = ItemCache(cache)
        self._erased = -1

    @contextmanager
    def write(self, tenant: str | None, *, exclusive: bool = False) -> Generator[SqliteTransaction, None, None]:
        # Every writer of a file is alone in it, so an exclusive write needs nothing more.
        scope = scope_key(tenant)
        with self._connections.writing() as connection:
            yield SqliteTransaction(connection, tenant, scope)

    # reading

    def get(self, ids: Sequence[str], tenants: Tenants) -> dict[str, ContextItem[Any]]:
        found: dict[str, ContextItem[Any]] = {}
        if not ids:
            return found
        with self._connections.reading() as connection:
            generation = self._fresh(connection)
            found = self._cache.find(list(ids), tenants)
            missing = known_names(item_id for item_id in ids if item_id not in found)
            scopes = scope_keys(tenants)
            for start in range(0, len(missing), 500):
                batch = padded(missing[start : start + 500])
                rows = connection.execute(
                    f"SELECT text, record, id FROM items WHERE id IN ({marks(batch)}) "
                    f"AND tenant IN ({marks(scopes)}) AND erased = 0",
                    (*batch, *scopes),
                ).fetchall()
                found |= {item.id: item for item in self._unpacked(rows, tenants, generation)}
        return found

    def _fresh(self, connection: sqlite3.Connection) -> int:
        """Drop the cache if any process erased an item since; the cache's generation."""
        erased = connection.execute("SELECT value FROM counters WHERE name = 'erased'").fetchone()[0]
        if erased != self._erased:
            self._cache.clear()
            self._erased = erased
        return self._cache.generation

    def _unpacked(
        self, rows: list[tuple[str, bytes, str]], tenants: Tenants, generation: int
    ) -> list[ContextItem[Any]]:
        items = [self._item(text, record, item_id, tenants) for text, record, item_id in rows]
        return self._cache.keep(items, generation)

    def _item(self, text: str, record: bytes, item_id: str, tenants: Tenants) -> ContextItem[Any]:
        item = unpack(text, record, self._types, item_id)
        if item.labels.tenant not in tenants or item.id != item_id:
            raise IntegrityError(
                f"item `{item_id}` is filed under an id or tenant not its own (restore it from a copy)",
                culprits=(item_id,),
            )
        return item

    def children(self, ids: Sequence[str], tenants: Tenants) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        scopes = scope_keys(tenants)
        with self._connections.reading() as connection:
            for item_id in known_names(ids):
                rows = connection.execute(
                    "SELECT items.id FROM edges JOIN items ON items.ordinal = edges.child "
                    f"WHERE edges.parent = ? AND edges.tenant IN ({marks(scopes)}) ORDER BY edges.child",
                    (item_id, *scopes),
                ).fetchall()
                if rows:
                    found[item_id] = tuple(row[0] for row in rows)
        return found

    def session_items(
        self, session: str, tenants: Tenants, *, after: int = 0, limit: int | None = None
    ) -> list[ContextItem[Any]]:
        scopes = scope_keys(tenants)
        if not storable(session):
            return []
        with self._connections.reading() as connection:
            generation = self._fresh(connection)
            rows = connection.execute(
                "SELECT text, record, id FROM items "
                f"WHERE tenant IN ({marks(scopes)}) AND session = ? AND seq > ? AND erased = 0 "
                "ORDER BY seq, ordinal LIMIT ?",
                (*scopes, session, after, -1 if limit is None else limit),
            ).fetchall()
        wanted = [row[2] for row in rows]
        held = self._cache.find(wanted, tenants)
        fresh = self._unpacked([row for row in rows if row[2] not in held], tenants, generation)
        held |= {item.id: item for item in fresh}
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
        filters: list[tuple[str, Any]] = []
        for column, value in (("source = ?", source), ("key = ?", key), ("subject = ?", subject)):
            if value is not None:
                if not storable(value):
                    return
                filters.append((column, value))
        if expired_at is not None:
            filters.append(("expires_at <= ?", micros(expired_at)))
        page = PAGE if limit is None else max(1, min(PAGE, limit))
        left = limit
        for row in self._rows(tenants, types, filters, after, page):
            if left == 0:
                return
            left = None if left is None else left - 1
            held = self._cache.find([row[1]], tenants)
            yield held[row[1]] if held else self._item(row[2], row[3], row[1], tenants)

    def rows(self, tenants: Tenants, *, after: int = 0) -> Iterator[StoredRow]:
        for ordinal, item_id, text, record, content_key, identity in self._rows(tenants, None, [], after, PAGE):
            yield StoredRow(
                ordinal=ordinal,
                item=self._item(text, record, item_id, tenants),
                content_key=content_key or b"",
                identity=identity,
            )

    def _rows(
        self,
        tenants: Tenants,
        types: frozenset[str] | None,
        filters: list[tuple[str, Any]],
        after: int,
        page: int,
    ) -> Iterator[tuple[int, str, str, bytes, bytes | None, bytes | None]]:
        """Rows in order of writing: each tenant and type is a stream in its index's order, and merged."""
        indexed = [column for column, _ in filters if column != "source = ?"]
        streams: list[Iterator[tuple[int, str, str, bytes, bytes | None, bytes | None]]] = []
        for scope in scope_keys(tenants):
            if indexed:
                kinds = None if types is None else sorted(types)
                streams.append(self._stream(scope, kinds, filters, after, page))
                continue
            for kind in self._stored_types(scope) if types is None else sorted(types):
                streams.append(self._stream(scope, [kind], filters, after, page))
        return heapq.merge(*streams)

    def _stream(
        self,
        scope: str,
        kinds: list[str] | None,
        filters: list[tuple[str, Any]],
        after: int,
        page: int,
    ) -> Iterator[tuple[int, str, str, bytes, bytes | None, bytes | None]]:
        conditions = ["tenant = ?", "erased = 0"]
        values: list[Any] = [scope]
        if kinds is not None:
            conditions.append(f"type IN ({marks(kinds)})")
            values += kinds
        for column, value in filters:
            conditions.append(column)
            values.append(value)
        statement = (
            "SELECT ordinal, id, text, record, content_key, identity FROM items "
            f"WHERE {' AND '.join(conditions)} AND ordinal > ? ORDER BY ordinal LIMIT ?"
        )
        while True:
            with self._connections.reading() as connection:
                rows = connection.execute(statement, (*values, after, page)).fetchall()
            yield from rows
            if len(rows) < page:
                return
            after = rows[-1][0]

    def _stored_types(self, scope: str) -> list[str]:
        with self._connections.reading() as connection:
            return stored_types(connection, scope)

    def tenants(self) -> tuple[str, ...]:
        found: set[str] = set()
        with self._connections.reading() as connection:
            for table in _TENANT_TABLES:
                # One seek per tenant instead of a walk over all rows.
                rows = connection.execute(
                    f"WITH RECURSIVE seen (tenant) AS (SELECT MIN(tenant) FROM {table} UNION ALL "
                    f"SELECT (SELECT MIN(tenant) FROM {table} WHERE tenant > seen.tenant) FROM seen "
                    "WHERE seen.tenant IS NOT NULL) SELECT tenant FROM seen WHERE tenant IS NOT NULL"
                )
                found |= {row[0] for row in rows}
        return tuple(sorted(name for scope in found if (name := scope_name(scope)) is not None))

    def revoked(self, ids: Sequence[str], tenants: Tenants) -> dict[str, str]:
        found: dict[str, str] = {}
        wanted, scopes = known_names(ids), scope_keys(tenants)
        with self._connections.reading() as connection:
            for start in range(0, len(wanted), 500):
                batch = padded(wanted[start : start + 500])
                found |= dict(
                    connection.execute(
                        f"SELECT id, reason FROM revoked WHERE id IN ({marks(batch)}) AND tenant IN ({marks(scopes)})",
                        (*batch, *scopes),
                    ).fetchall()
                )
        return found

    def tombstones(self, tenants: Tenants, ids: Sequence[str] | None = None) -> dict[str, Tombstone]:
        scopes = scope_keys(tenants)
        wanted = None if ids is None else set(known_names(ids))
        where = f"erased = 1 AND tenant IN ({marks(scopes)})"
        found: list[tuple[int, str, bytes]] = []
        with self._connections.reading() as connection:
            if wanted is None:
                found = connection.execute(
                    f"SELECT ordinal, id, record FROM items WHERE {where} ORDER BY ordinal", scopes
                ).fetchall()
            else:
                for item_id in wanted:
                    found += connection.execute(
                        f"SELECT ordinal, id, record FROM items WHERE id = ? AND {where}", (item_id, *scopes)
                    ).fetchall()
        return {item_id: unpack_tombstone(record, ordinal) for ordinal, item_id, record in sorted(found)}

    def events(self, tenants: Tenants, *, after: int = 0) -> list[Event]:
        scopes = scope_keys(tenants)
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT number, tenant, at, source, key, version, item_id, reason FROM events "
                f"WHERE number > ? AND tenant IN ({marks(scopes)}) ORDER BY number",
                (after, *scopes),
            ).fetchall()
        return [
            Event(
                number=number,
                tenant=scope_name(scope),
                at=moment(at),
                source=source,
                key=key,
                version=version,
                item_id=item_id,
                reason=reason,
            )
            for number, scope, at, source, key, version, item_id, reason in rows
        ]

    def logged(self, tenants: Tenants, *, after: int = 0, kinds: frozenset[str] | None = None) -> Iterator[LogEntry]:
        wanted = None if kinds is None else sorted(kinds)
        return heapq.merge(
            *(self._chain(scope, after, wanted) for scope in scope_keys(tenants)),
            key=lambda entry: entry.number,
        )

    def _chain(self, scope: str, after: int, kinds: list[str] | None) -> Iterator[LogEntry]:
        among = "" if kinds is None else f" AND kind IN ({marks(kinds)})"
        statement = (
            f"SELECT number, at, kind, body, link FROM log WHERE tenant = ? AND number > ?{among} "
            "ORDER BY number LIMIT ?"
        )
        while True:
            with self._connections.reading() as connection:
                rows = connection.execute(statement, (scope, after, *(kinds or ()), PAGE)).fetchall()
            for number, at, kind, body, link in rows:
                yield LogEntry(number=number, tenant=scope_name(scope), at=moment(at), kind=kind, body=body, link=link)
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def document(self, kind: str, id: str, tenants: Tenants) -> Document | None:
        if not (storable(kind) and storable(id)):
            return None
        with self._connections.reading() as connection:
            for scope in scope_keys(tenants):
                row = connection.execute(
                    "SELECT tenant, kind, id, session, version, body FROM documents "
                    "WHERE tenant = ? AND kind = ? AND id = ?",
                    (scope, kind, id),
                ).fetchone()
                if row is not None:
                    return _document(row)
        return None

    def documents(self, kind: str | None, tenants: Tenants, *, session: str | None = None) -> Iterator[Document]:
        if not storable(kind or "") or not storable(session or ""):
            return
        scopes = scope_keys(tenants)
        within = "" if kind is None else " AND kind = ?"
        within += "" if session is None else " AND session = ?"
        given = [value for value in (kind, session) if value is not None]
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT tenant, kind, id, session, version, body FROM documents "
                f"WHERE tenant IN ({marks(scopes)}){within} ORDER BY id, kind, tenant DESC",
                (*scopes, *given),
            ).fetchall()
        for row in rows:
            yield _document(row)

    def census(self, tenants: Tenants) -> list[Census]:
        scopes = scope_keys(tenants)
        with self._connections.reading() as connection:
            rows = connection.execute(
                "SELECT tenant, type, SUM(erased = 0), SUM(LENGTH(text)), SUM(erased) FROM items "
                f"WHERE tenant IN ({marks(scopes)}) GROUP BY tenant, type ORDER BY tenant, type",
                scopes,
            ).fetchall()
        return [
            Census(tenant=scope_name(scope), type=kind, items=items, characters=characters, erased=erased)
            for scope, kind, items, characters, erased in rows
        ]

    def audit(self, tenants: Tenants) -> Iterator[Audited]:
        # A connection of its own, which reads text that is no valid UTF-8 as well.
        with self._connections.translated(), closing(self._connections.connect()) as connection:
            connection.text_factory = _any_text
            for scope in scope_keys(tenants):
                rows = connection.execute(
                    "SELECT id, tenant, type, source, session, seq, subject, key, expires_at, text, record "
                    "FROM items WHERE tenant = ? AND erased = 0 ORDER BY ordinal",
                    (scope,),
                )
                for item_id, tenant, *columns, text, record in rows:
                    named = (item_id, scope_name(tenant), *columns)
                    yield audited(text, record, self._types, named)

    def vacuum(self) -> None:
        with self._connections.alone() as connection:
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()

    def close(self) -> None:
        self._cache.clear()
        self._connections.close()


def _any_text(raw: bytes) -> str:
    return raw.decode("utf-8", "surrogateescape")


def _document(row: tuple[str, str, str, str | None, int, str]) -> Document:
    scope, kind, document_id, session, version, body = row
    return Document(kind=kind, id=document_id, tenant=scope_name(scope), session=session, version=version, body=body)
