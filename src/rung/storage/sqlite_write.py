"""What one write transaction of a SQLite file does."""

from __future__ import annotations

import heapq
import sqlite3
from collections.abc import Collection, Iterator, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rung.ledger.backend import Document, Event, LogEntry, NewRow, OriginRow, Tenants, TextRow, Tombstone
from rung.ledger.content import beside
from rung.storage.chain import chained
from rung.storage.rows import (
    columns_of,
    id_conflict,
    known_names,
    micros,
    owned,
    pack,
    pack_tombstone,
    read_record,
    require_owned,
    scope_key,
    scope_keys,
    scope_name,
    tombstone_of,
    version_conflict,
)

PAGE = 64
"""Rows that are read at once: items may be large, and no reader keeps a connection for long."""

_INSERT = """INSERT INTO items
    (ordinal, id, tenant, type, source, session, seq, subject, key, expires_at,
     content_key, identity, text, record)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (tenant, identity) WHERE identity IS NOT NULL DO NOTHING"""


def marks(values: Collection[object]) -> str:
    """As many placeholders as there are values."""
    return ",".join("?" * len(values))


def padded(values: list[str]) -> list[str]:
    """The values, the last one repeated up to a power of two: few different statements are prepared."""
    size = 1
    while size < len(values):
        size *= 2
    return values + values[-1:] * (size - len(values))


def stored_types(connection: sqlite3.Connection, scope: str) -> list[str]:
    """The types that a tenant has items of: one seek each."""
    found: list[str] = []
    last = ""
    while True:
        row = connection.execute(
            "SELECT type FROM items WHERE tenant = ? AND type > ? ORDER BY type LIMIT 1", (scope, last)
        ).fetchone()
        if row is None:
            return found
        last = row[0]
        found.append(last)


class SqliteTransaction:
    """Writes through the one writing connection, inside `BEGIN IMMEDIATE`."""

    def __init__(self, connection: sqlite3.Connection, tenant: str | None, scope: str) -> None:
        self._connection = connection
        self._tenant = tenant
        self._scope = scope
        self._ordinal: int | None = None
        self._head: tuple[int, bytes] | None = None

    def next_seq(self, session: str | None, count: int) -> int:
        last = self._connection.execute(
            "INSERT INTO sessions VALUES (?, ?, ?) "
            "ON CONFLICT (tenant, session) DO UPDATE SET seq = seq + excluded.seq RETURNING seq",
            (self._scope, scope_key(session), count),
        ).fetchone()[0]
        return int(last) - count + 1

    def origins(self, keys: Sequence[bytes], tenants: Tenants) -> dict[bytes, tuple[OriginRow, ...]]:
        found: dict[bytes, tuple[OriginRow, ...]] = {}
        scopes = scope_keys(tenants)
        for key in dict.fromkeys(keys):
            first: dict[str, OriginRow] = {}
            for scope in scopes if key else ():
                for row in self._first_of_each_type(scope, key):
                    held = first.get(row.type)
                    if held is None or row.ordinal < held.ordinal:
                        first[row.type] = row
            if first:
                found[key] = tuple(sorted(first.values(), key=lambda row: row.ordinal))
        return found

    def _first_of_each_type(self, scope: str, key: bytes) -> Iterator[OriginRow]:
        # One seek per type, however often the content was registered.
        last = ""
        while True:
            row = self._connection.execute(
                "SELECT ordinal, id, type, source FROM items "
                "WHERE tenant = ? AND content_key = ? AND type > ? ORDER BY type, ordinal LIMIT 1",
                (scope, key, last),
            ).fetchone()
            if row is None:
                return
            ordinal, item_id, last, source = row
            yield OriginRow(ordinal=ordinal, item_id=item_id, type=last, source=source, tenant=scope_name(scope))

    def identities(self, identities: Sequence[bytes]) -> dict[bytes, str]:
        found: dict[bytes, str] = {}
        for given in dict.fromkeys(identities):
            row = self._connection.execute(
                "SELECT id FROM items WHERE tenant = ? AND identity = ?", (self._scope, given)
            ).fetchone()
            if row is not None:
                found[given] = row[0]
        return found

    def insert(self, rows: Sequence[NewRow]) -> list[str]:
        require_owned(rows, self._tenant)
        if not rows:
            return []
        ordinal = self._next_ordinals(len(rows))
        columns = [self._columns(place, row) for place, row in enumerate(rows, ordinal)]
        self._connection.execute("SAVEPOINT insertion")
        try:
            written = self._connection.executemany(_INSERT, columns).rowcount
            ids = [row.item.id for row in rows]
            if written < len(rows):
                ids = self._first_ids(rows)
        except sqlite3.IntegrityError:
            self._connection.execute("ROLLBACK TO insertion")
            ids = self._insert_singly(rows, columns)
        self._connection.executemany(
            "INSERT OR IGNORE INTO edges VALUES (?, ?, ?)",
            [
                (parent, self._scope, place)
                for place, (row, given) in enumerate(zip(rows, ids, strict=True), ordinal)
                if row.item.derived_from and self._is_at(place, row, given)
                for parent in row.item.derived_from
            ],
        )
        self._connection.execute("RELEASE insertion")
        return ids

    def _next_ordinals(self, count: int) -> int:
        last = self._ordinal
        if last is None:
            last = int(self._connection.execute("SELECT MAX(ordinal) FROM items").fetchone()[0] or 0)
        self._ordinal = last + count
        return last + 1

    def _columns(self, ordinal: int, row: NewRow) -> tuple[Any, ...]:
        text, record = pack(row.item)
        item_id, _, *middle = columns_of(row.item)
        return (
            ordinal, item_id, self._scope, *middle, row.content_key or None, row.identity, text, record,
        )  # fmt: skip

    def _first_ids(self, rows: Sequence[NewRow]) -> list[str]:
        holders = self.identities([row.identity for row in rows if row.identity is not None])
        return [row.item.id if row.identity is None else holders[row.identity] for row in rows]

    def _is_at(self, ordinal: int, row: NewRow, given: str) -> bool:
        # Of two rows with one identity and one id in the same call, the first alone was written.
        if row.identity is None or given != row.item.id:
            return given == row.item.id
        found = self._connection.execute("SELECT ordinal FROM items WHERE id = ?", (given,)).fetchone()
        return found is not None and found[0] == ordinal

    def _insert_singly(self, rows: Sequence[NewRow], columns: Sequence[tuple[Any, ...]]) -> list[str]:
        """An id exists already: it matters only where the identity is new."""
        ids: list[str] = []
        for row, values in zip(rows, columns, strict=True):
            held = {} if row.identity is None else self.identities([row.identity])
            if row.identity is not None and row.identity in held:
                ids.append(held[row.identity])
                continue
            try:
                self._connection.execute(_INSERT, values)
            except sqlite3.IntegrityError:
                self._connection.execute("ROLLBACK TO insertion")
                self._connection.execute("RELEASE insertion")
                raise id_conflict(row.item.id) from None
            ids.append(row.item.id)
        return ids

    def texts_since(self, ordinal: int, types: frozenset[str], tenants: Tenants) -> Iterator[TextRow]:
        streams = [
            self._texts(scope, kind, ordinal) for scope in scope_keys(tenants) for kind in known_names(sorted(types))
        ]
        yield from heapq.merge(*streams, key=lambda row: row.ordinal)

    def _texts(self, scope: str, kind: str, after: int) -> Iterator[TextRow]:
        while True:
            rows = self._connection.execute(
                "SELECT ordinal, id, source, text, record FROM items "
                "WHERE tenant = ? AND type = ? AND ordinal > ? AND erased = 0 ORDER BY ordinal LIMIT ?",
                (scope, kind, after, PAGE),
            ).fetchall()
            for ordinal, item_id, source, text, record in rows:
                rest = read_record(record)
                yield TextRow(
                    ordinal=ordinal,
                    item_id=item_id,
                    type=kind,
                    source=source,
                    tenant=scope_name(scope),
                    text=text,
                    beside=beside(rest.key, rest.version, rest.attrs, rest.parts),
                )
            if len(rows) < PAGE:
                return
            after = rows[-1][0]

    def log(self, entries: Sequence[LogEntry]) -> None:
        if not entries:
            return
        if self._head is None:
            number = self._connection.execute("SELECT value FROM counters WHERE name = 'log'").fetchone()[0]
            last = self._connection.execute(
                "SELECT link FROM log WHERE tenant = ? ORDER BY number DESC LIMIT 1", (self._scope,)
            ).fetchone()
            self._head = (number, b"" if last is None else last[0])
        number, link = self._head
        written: list[tuple[Any, ...]] = []
        for entry in entries:
            whole = chained(link, number + 1, owned(entry, self._tenant))
            number, link = max(number + 1, whole.number), whole.link
            written.append((self._scope, whole.number, micros(whole.at), whole.kind, whole.body, whole.link))
        self._connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", written)
        self._connection.execute("UPDATE counters SET value = ? WHERE name = 'log'", (number,))
        self._head = (number, link)

    def put(self, document: Document, *, expected: int | None = None) -> int:
        document = owned(document, self._tenant)
        row = self._connection.execute(
            "SELECT version FROM documents WHERE tenant = ? AND kind = ? AND id = ?",
            (self._scope, document.kind, document.id),
        ).fetchone()
        actual = 0 if row is None else int(row[0])
        if expected is not None and expected != actual:
            raise version_conflict(document, expected, actual)
        version = max(document.version, 1) if row is None else actual + 1
        self._connection.execute(
            "INSERT INTO documents VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT (tenant, kind, id) DO UPDATE "
            "SET session = excluded.session, version = excluded.version, body = excluded.body",
            (self._scope, document.kind, document.id, document.session, version, document.body),
        )
        return version

    def revoke(self, ids: Sequence[str], at: datetime, reason: str) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO revoked SELECT id, tenant, ?, ? FROM items WHERE id = ? AND tenant = ?",
            [(micros(at), reason, item_id, self._scope) for item_id in known_names(ids)],
        )

    def emit(self, event: Event) -> int:
        event = owned(event, self._tenant)
        number = self._connection.execute(
            "INSERT INTO events (tenant, at, source, key, version, item_id, reason) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            (
                self._scope, micros(event.at), event.source, event.key, event.version, event.item_id,
                event.reason,
            ),
        ).lastrowid  # fmt: skip
        assert number is not None
        return number

    def erase(self, ids: Sequence[str], at: datetime, reason: str) -> list[str]:
        gone: list[str] = []
        for item_id in known_names(ids):
            row = self._connection.execute(
                "SELECT ordinal, record FROM items WHERE id = ? AND tenant = ? AND erased = 0",
                (item_id, self._scope),
            ).fetchone()
            if row is None:
                continue
            tombstone = tombstone_of(row[1], item_id, at, reason, row[0])
            self._connection.execute(
                "UPDATE items SET session = NULL, seq = 0, subject = NULL, key = NULL, expires_at = NULL, "
                "content_key = NULL, identity = NULL, text = '', erased = 1, record = ? WHERE ordinal = ?",
                (pack_tombstone(tombstone), row[0]),
            )
            self.emit(Event(at=at, item_id=item_id, reason="erased"))
            gone.append(item_id)
        self._connection.execute("UPDATE counters SET value = value + ? WHERE name = 'erased'", (len(gone),))
        return gone

    def restore(self, tombstones: Sequence[Tombstone]) -> None:
        for tombstone in tombstones:
            whole = msgspec.structs.replace(tombstone, tenant=self._tenant)
            place = self._next_ordinals(1)
            try:
                self._connection.execute(
                    "INSERT INTO items (ordinal, id, tenant, type, source, seq, erased, text, record) "
                    "VALUES (?, ?, ?, ?, ?, 0, 1, '', ?)",
                    (place, whole.id, self._scope, whole.type, whole.source, pack_tombstone(whole)),
                )
            except sqlite3.IntegrityError:
                raise id_conflict(whole.id) from None
            self._connection.executemany(
                "INSERT OR IGNORE INTO edges VALUES (?, ?, ?)",
                [(parent, self._scope, place) for parent in whole.derived_from],
            )
