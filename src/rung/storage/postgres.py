"""`PostgresBackend`: one ledger for many machines."""

from __future__ import annotations

import heapq
import json
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import Any

from rung.errors import IntegrityError, ScopeError, missing_extra

try:
    import psycopg_pool  # noqa: F401  # pyright: ignore[reportUnusedImport]
    from psycopg import sql
except ImportError as problem:
    raise missing_extra("psycopg", "postgres") from problem

from rung.ledger.backend import Audited, Census, Document, Event, LogEntry, StoredRow, Tenants, Tombstone
from rung.records.item import ContextItem
from rung.storage.cache import ItemCache
from rung.storage.postgres_connections import Connections
from rung.storage.postgres_listener import Listener
from rung.storage.postgres_schema import prepare
from rung.storage.postgres_write import Locks, PostgresTransaction, page_statement
from rung.storage.rows import (
    Pages,
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


class PostgresBackend:
    """Items in a PostgreSQL database that several machines share.

    Writes of different tenants, and untrusted ones of one tenant, run side by side; an exclusive write runs
    alone in its tenant. Messages (LISTEN, NOTIFY) tell every process of invalidations and erasures; one that
    is lost costs `event_ttl` at most.

    Args:
        dsn: the address, for example `postgresql://user@host/database`.
        types: the context types by name.
        schema: the schema that holds the tables; made if absent.
        busy_timeout: how long one waits for a lock or a connection, in seconds.
        connections: how many connections for writing, and as many for reading, at most.
        cache: how many items are held ready for reading.
        event_ttl: how often it looks for events without being told, in seconds.
        install_rls: install row-level security. It binds roles that do not own the tables: let workers
            connect as such a role, and the deployment's own instructions be registered by one that it does
            not bind.

    Raises:
        MissingExtraError: `psycopg` or `psycopg_pool` is not installed.
        SchemaVersionError: the schema is from a newer version, or holds another program's tables.
        StoreError: the server cannot be reached.
    """

    name = "postgres"
    shared = True

    def __init__(
        self,
        dsn: str,
        types: Types,
        *,
        schema: str = "rung",
        busy_timeout: float = 30.0,
        connections: int = 8,
        cache: int = 250_000,
        event_ttl: float = 5.0,
        install_rls: bool = False,
    ) -> None:
        self._types = types
        self._connections = Connections(dsn, schema, busy_timeout, connections)
        self._locks = Locks(schema)
        self._channel = f"rung_{self._locks.schema & 0xFFFFFFFF:08x}"
        try:
            with self._connections.translated(), self._connections.connect() as connection:
                prepare(
                    connection,
                    schema,
                    self._connections.quoted,
                    self._locks.schema,
                    install_rls=install_rls,
                )
                row = connection.execute(
                    b"SELECT row_security_active(%s)", (f"{self._connections.quoted}.items",)
                ).fetchone()
        except BaseException:
            self._connections.close()
            raise
        self._restricted = bool(row and row[0])
        self._cache = ItemCache(cache)
        self._listener = Listener(
            self._connections, sql.Identifier(self._channel).as_string(None), event_ttl, self._cache.clear
        )
        # For which `latest` a question was answered with nothing.
        self._quiet: dict[tuple[Tenants, int], int] = {}

    @contextmanager
    def write(self, tenant: str | None, *, exclusive: bool = False) -> Generator[PostgresTransaction, None, None]:
        scope = scope_key(tenant)
        if self._restricted and exclusive and tenant is None:
            raise self._bound("an exclusive write of the deployment")
        with self._connections.writing(self._locks.begin(self._connections.quoted, scope, exclusive)) as connection:
            if self._restricted:
                visible = json.dumps([scope, scope_key(None)])
                connection.execute(b"SELECT set_config('app.tenant', %s, true)", (visible,))
            tx = PostgresTransaction(
                connection,
                tenant,
                scope,
                locks=self._locks,
                quoted=self._connections.quoted,
                channel=self._channel,
                exclusive=exclusive,
            )
            yield tx
            tx.finish()
        if tx.erased:
            self._cache.clear()
        self._listener.note(tx.emitted)

    def _bound(self, what: str) -> ScopeError:
        return ScopeError(
            f"{what} sees all tenants, and row-level security binds this role (connect as the tables' owner)",
            reason="row_level_security",
        )

    def _read(self, statement: str, values: Any, scopes: list[str]) -> list[tuple[Any, ...]]:
        return self._connections.read(statement, values, json.dumps(scopes) if self._restricted else None)

    # reading

    def get(self, ids: Sequence[str], tenants: Tenants) -> dict[str, ContextItem[Any]]:
        found = self._cache.find(list(ids), tenants) if self._listener.is_current else {}
        missing = known_names(item_id for item_id in ids if item_id not in found)
        if missing:
            scopes = scope_keys(tenants)
            generation = self._cache.generation
            rows = self._read(
                "SELECT text, record, id FROM {s}.items WHERE id = ANY(%s) AND tenant = ANY(%s) AND erased = 0",
                (missing, scopes),
                scopes,
            )
            found |= {item.id: item for item in self._unpacked(rows, tenants, generation)}
        return found

    def _unpacked(self, rows: list[tuple[Any, ...]], tenants: Tenants, generation: int) -> list[ContextItem[Any]]:
        items = [self._item(text, record, item_id, tenants) for text, record, item_id in rows]
        return self._cache.keep(items, generation) if self._listener.is_current else items

    def _item(self, text: str, record: bytes, item_id: str, tenants: Tenants) -> ContextItem[Any]:
        item = unpack(text, record, self._types, item_id)
        if item.labels.tenant not in tenants or item.id != item_id:
            raise IntegrityError(
                f"item `{item_id}` is filed under an id or tenant not its own (restore it from a copy)",
                culprits=(item_id,),
            )
        return item

    def children(self, ids: Sequence[str], tenants: Tenants) -> dict[str, tuple[str, ...]]:
        scopes = scope_keys(tenants)
        rows = self._read(
            "SELECT edge.parent, item.id FROM {s}.edges AS edge "
            "JOIN {s}.items AS item ON item.ordinal = edge.child AND item.tenant = edge.tenant "
            "WHERE edge.parent = ANY(%s) AND edge.tenant = ANY(%s) ORDER BY edge.child",
            (known_names(ids), scopes),
            scopes,
        )
        found: dict[str, list[str]] = {}
        for parent, child in rows:
            found.setdefault(parent, []).append(child)
        return {parent: tuple(found[parent]) for parent in dict.fromkeys(ids) if parent in found}

    def session_items(
        self, session: str, tenants: Tenants, *, after: int = 0, limit: int | None = None
    ) -> list[ContextItem[Any]]:
        if not storable(session):
            return []
        scopes = scope_keys(tenants)
        generation = self._cache.generation
        rows = self._read(
            "SELECT text, record, id FROM {s}.items "
            "WHERE tenant = ANY(%s) AND session = %s AND seq > %s AND erased = 0 ORDER BY seq, ordinal LIMIT %s",
            (scopes, session, after, limit),
            scopes,
        )
        wanted = [row[2] for row in rows]
        held = self._cache.find(wanted, tenants) if self._listener.is_current else {}
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
        filters: dict[str, Any] = {"source": source, "key": key, "subject": subject}
        filters = {column: value for column, value in filters.items() if value is not None}
        if not all(storable(value) for value in filters.values()):
            return
        conditions = [f"item.{column} = %({column})s" for column in filters]
        if expired_at is not None:
            conditions.append("item.expires_at <= %(expired)s")
            filters["expired"] = micros(expired_at)
        left = limit
        if left == 0:
            return
        for row in self._rows(tenants, types, conditions, filters, after, limit):
            yield self._item(row[4], row[5], row[1], tenants)
            if left is not None:
                left -= 1
                if left == 0:
                    return

    def rows(self, tenants: Tenants, *, after: int = 0) -> Iterator[StoredRow]:
        for row in self._rows(tenants, None, [], {}, after, None):
            ordinal, item_id, _, _, text, record, content_key, identity = row
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
        conditions: list[str],
        filters: dict[str, Any],
        after: int,
        limit: int | None,
    ) -> Iterator[tuple[Any, ...]]:
        scopes = scope_keys(tenants)
        kinds = self._stored_types(scopes) if types is None else known_names(sorted(types))
        pages = Pages(limit)
        statement = page_statement(
            len(scopes) * len(kinds),
            "item.text, item.record, item.content_key, item.identity",
            " AND ".join(["erased = 0", *conditions]),
        )
        while True:
            values = {
                "tenants": scopes, "types": kinds, "after": after, "until": 2**62, "page": pages.size, **filters,
            }  # fmt: skip
            rows = self._read(statement, values, scopes)
            yield from rows
            if len(rows) < pages.size:
                return
            after = rows[-1][0]
            pages.read(sum(len(row[4]) for row in rows))

    def _stored_types(self, scopes: list[str]) -> list[str]:
        rows = self._read(
            "WITH RECURSIVE seen AS (SELECT scope.tenant, (SELECT min(type) FROM {s}.items AS item "
            "WHERE item.tenant = scope.tenant) AS type FROM unnest(%s::text[]) AS scope (tenant) UNION ALL "
            "SELECT seen.tenant, (SELECT min(type) FROM {s}.items AS item WHERE item.tenant = seen.tenant "
            "AND item.type > seen.type) FROM seen WHERE seen.type IS NOT NULL) "
            "SELECT DISTINCT type FROM seen WHERE type IS NOT NULL ORDER BY type",
            (scopes,),
            scopes,
        )
        return [row[0] for row in rows]

    def tenants(self) -> tuple[str, ...]:
        if self._restricted:
            raise self._bound("the list of tenants")
        found: set[str] = set()
        for table in ("items", "documents", "log", "events"):
            rows = self._connections.read(
                f"WITH RECURSIVE seen (tenant) AS (SELECT min(tenant) FROM {{s}}.{table} UNION ALL "
                f"SELECT (SELECT min(tenant) FROM {{s}}.{table} WHERE tenant > seen.tenant) FROM seen "
                "WHERE seen.tenant IS NOT NULL) SELECT tenant FROM seen WHERE tenant IS NOT NULL"
            )
            found |= {row[0] for row in rows}
        return tuple(sorted(name for scope in found if (name := scope_name(scope)) is not None))

    def revoked(self, ids: Sequence[str], tenants: Tenants) -> dict[str, str]:
        scopes = scope_keys(tenants)
        rows = self._read(
            "SELECT id, reason FROM {s}.revoked WHERE id = ANY(%s) AND tenant = ANY(%s)",
            (known_names(ids), scopes),
            scopes,
        )
        return dict(rows)

    def tombstones(self, tenants: Tenants, ids: Sequence[str] | None = None) -> dict[str, Tombstone]:
        scopes = scope_keys(tenants)
        wanted = None if ids is None else known_names(ids)
        rows = self._read(
            "SELECT ordinal, id, record FROM {s}.items WHERE erased = 1 AND tenant = ANY(%s) "
            "AND (%s::text[] IS NULL OR id = ANY(%s::text[])) ORDER BY ordinal",
            (scopes, wanted, wanted),
            scopes,
        )
        return {item_id: unpack_tombstone(record, ordinal) for ordinal, item_id, record in rows}

    def events(self, tenants: Tenants, *, after: int = 0) -> list[Event]:
        latest = self._listener.latest
        question = (tenants, after)
        if self._listener.is_current and self._quiet.get(question) == latest:
            return []
        scopes = scope_keys(tenants)
        rows = self._read(
            "SELECT number, tenant, at, source, key, version, item_id, reason FROM {s}.events "
            "WHERE number > %s AND tenant = ANY(%s) ORDER BY number",
            (after, scopes),
            scopes,
        )
        if not rows:
            if len(self._quiet) > 10_000:
                self._quiet.clear()
            self._quiet[question] = latest
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
        chains = [self._chain(scope, after, wanted) for scope in scope_keys(tenants)]
        return heapq.merge(*chains, key=lambda entry: entry.number)

    def _chain(self, scope: str, after: int, kinds: list[str] | None) -> Iterator[LogEntry]:
        pages = Pages()
        while True:
            rows = self._read(
                "SELECT number, at, kind, body, link FROM {s}.log WHERE tenant = %s AND number > %s "
                "AND (%s::text[] IS NULL OR kind = ANY(%s::text[])) ORDER BY number LIMIT %s",
                (scope, after, kinds, kinds, pages.size),
                [scope],
            )
            for number, at, kind, body, link in rows:
                yield LogEntry(number=number, tenant=scope_name(scope), at=moment(at), kind=kind, body=body, link=link)
            if len(rows) < pages.size:
                return
            after = rows[-1][0]
            pages.read(sum(len(row[3]) for row in rows))

    def document(self, kind: str, id: str, tenants: Tenants) -> Document | None:
        scopes = scope_keys(tenants)
        if not (storable(kind) and storable(id)):
            return None
        rows = self._read(
            "SELECT tenant, kind, id, session, version, body FROM {s}.documents "
            "WHERE tenant = ANY(%s) AND kind = %s AND id = %s",
            (scopes, kind, id),
            scopes,
        )
        found = sorted(rows, key=lambda row: scopes.index(row[0]))
        return _document(found[0]) if found else None

    def documents(self, kind: str | None, tenants: Tenants, *, session: str | None = None) -> Iterator[Document]:
        scopes = scope_keys(tenants)
        if not (storable(kind or "") and storable(session or "")):
            return
        rows = self._read(
            "SELECT tenant, kind, id, session, version, body FROM {s}.documents WHERE tenant = ANY(%s) "
            "AND (%s::text IS NULL OR kind = %s::text) AND (%s::text IS NULL OR session = %s::text) "
            "ORDER BY id, kind, tenant DESC",
            (scopes, kind, kind, session, session),
            scopes,
        )
        for row in rows:
            yield _document(row)

    def census(self, tenants: Tenants) -> list[Census]:
        scopes = scope_keys(tenants)
        rows = self._read(
            "SELECT tenant, type, count(*) FILTER (WHERE erased = 0), sum(length(text))::bigint, "
            "count(*) FILTER (WHERE erased = 1) FROM {s}.items WHERE tenant = ANY(%s) "
            "GROUP BY tenant, type ORDER BY tenant, type",
            (scopes,),
            scopes,
        )
        return [
            Census(tenant=scope_name(scope), type=kind, items=items, characters=characters, erased=erased)
            for scope, kind, items, characters, erased in rows
        ]

    def audit(self, tenants: Tenants) -> Iterator[Audited]:
        for scope in scope_keys(tenants):
            after, pages = 0, Pages()
            while True:
                rows = self._read(
                    "SELECT ordinal, id, tenant, type, source, session, seq, subject, key, expires_at, text, "
                    "record FROM {s}.items WHERE tenant = %s AND erased = 0 AND ordinal > %s "
                    "ORDER BY ordinal LIMIT %s",
                    (scope, after, pages.size),
                    [scope],
                )
                for _, item_id, tenant, *columns, text, record in rows:
                    named = (item_id, scope_name(tenant), *columns)
                    yield audited(text, record, self._types, named)
                if len(rows) < pages.size:
                    break
                after = rows[-1][0]
                pages.read(sum(len(row[-2]) for row in rows))

    def vacuum(self) -> None:
        with self._connections.translated(), self._connections.connect() as connection:
            for table in ("items", "edges", "events", "documents"):
                connection.execute(f"VACUUM (ANALYZE) {self._connections.quoted}.{table}".encode())

    def close(self) -> None:
        self._listener.close()
        self._connections.close()
        self._cache.clear()


def _document(row: tuple[Any, ...]) -> Document:
    scope, kind, document_id, session, version, body = row
    return Document(kind=kind, id=document_id, tenant=scope_name(scope), session=session, version=version, body=body)
