"""What one write transaction of a PostgreSQL ledger does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from hashlib import blake2b
from typing import Any

import msgspec

from rung.ledger.backend import Document, Event, LogEntry, NewRow, OriginRow, Tenants, TextRow, Tombstone
from rung.ledger.content import beside
from rung.storage.chain import chained
from rung.storage.postgres_connections import Connection
from rung.storage.rows import (
    Pages,
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

# Arrays go in binary, which costs the driver half as much; an array of nothing but NULLs would have no type,
# so NULL is spelled as a value that no column holds.
_NO_NUMBER = -(2**63)
# Characters of one statement: the protocol carries at most 1 GB at once.
_LARGEST = 32 * 1024 * 1024
_INSERT = f"""INSERT INTO {{s}}.items (ordinal, id, tenant, type, source, session, seq, subject, key, expires_at,
        content_key, identity, text, record)
    SELECT ordinal, id, %s, type, source, session, seq, subject, key, nullif(expires_at, {_NO_NUMBER}),
        nullif(content_key, ''), nullif(identity, ''), text, record
    FROM unnest(%b::bigint[], %b::text[], %b::text[], %b::text[], %b::text[], %b::bigint[], %b::text[], %b::text[],
        %b::bigint[], %b::bytea[], %b::bytea[], %b::text[], %b::bytea[])
    AS given (ordinal, id, type, source, session, seq, subject, key, expires_at, content_key, identity, text, record)
    ON CONFLICT DO NOTHING RETURNING ordinal"""

# The first registration of each type is one seek in the index; the recursion steps to the next type.
_ORIGINS = """WITH RECURSIVE first AS (
    SELECT asked.key, scope.tenant, found.*
    FROM unnest(%s::bytea[]) AS asked (key), unnest(%s::text[]) AS scope (tenant), LATERAL (
        SELECT ordinal, id, type, source FROM {s}.items AS item
        WHERE item.tenant = scope.tenant AND item.content_key = asked.key
        ORDER BY type, ordinal LIMIT 1
    ) AS found
    UNION ALL
    SELECT first.key, first.tenant, found.* FROM first, LATERAL (
        SELECT ordinal, id, type, source FROM {s}.items AS item
        WHERE item.tenant = first.tenant AND item.content_key = first.key AND item.type > first.type
        ORDER BY type, ordinal LIMIT 1
    ) AS found
) SELECT key, tenant, ordinal, id, type, source FROM first ORDER BY ordinal"""


class Locks:
    """The numbers of the advisory locks of one schema.

    - Every write shares `backend`; an exclusive one of the deployment takes it alone.
    - A write shares its tenant's lock; an exclusive one takes it alone, and the deployment's too, whose rows
      it sees. All of them are taken at the beginning and in one order, so they cannot wait in a circle.
    - `floor + n` is shared by a write that will give ordinals above n only, as long as it runs: whoever reads
      from a cursor on stops there.
    - `events` and a tenant's chain are taken when they are written, the chain last of all; so their numbers
      rise in the order of the commits.
    """

    def __init__(self, schema: str) -> None:
        self._schema = schema
        self.schema = self._number("schema")
        self.backend = self._number("backend")
        self.events = self._number("events")
        self.floor_tag = self._digest("floor") % 0x7FFF + 1
        self.floor = self.floor_tag << 48

    def tenant(self, scope: str) -> int:
        return self._number("tenant" + scope)

    def chain(self, scope: str) -> int:
        return self._number("chain" + scope)

    def _digest(self, what: str) -> int:
        name = f"{self._schema}\0{what}".encode()
        return int.from_bytes(blake2b(name, digest_size=8, person=b"rung locks v1").digest())

    def _number(self, what: str) -> int:
        # Below zero, so that none of them is a floor.
        return -1 - (self._digest(what) >> 1)

    def begin(self, quoted: str, scope: str, exclusive: bool) -> bytes:
        """The statements that begin a write."""
        deployment = scope_key(None)
        if not exclusive:
            wanted = [("_shared", self.backend), ("_shared", self.tenant(scope))]
        elif scope == deployment:
            wanted = [("", self.backend)]
        else:
            wanted = [("_shared", self.backend), ("", self.tenant(deployment)), ("", self.tenant(scope))]
        taken = ", ".join(f"pg_advisory_xact_lock{mode}({number})" for mode, number in wanted)
        return (
            f"BEGIN; SELECT {taken}; "
            f"SELECT pg_advisory_xact_lock_shared({self.floor} + last_value) FROM {quoted}.ordinals"
        ).encode()

    def settled(self, quoted: str) -> tuple[bytes, bytes]:
        """Two statements: the last ordinal given, then the lowest floor of the other writes that run."""
        return (
            f"SELECT last_value FROM {quoted}.ordinals".encode(),
            "SELECT min(((classid::bigint << 32) | objid::bigint) - "
            f"{self.floor}) FROM pg_locks WHERE locktype = 'advisory' AND objsubid = 1 "
            f"AND classid::bigint >> 16 = {self.floor_tag} AND pid <> pg_backend_pid() "
            "AND database = (SELECT oid FROM pg_database WHERE datname = current_database())".encode(),
        )


class PostgresTransaction:
    """Writes through one connection, inside a transaction that holds its locks."""

    def __init__(
        self,
        connection: Connection,
        tenant: str | None,
        scope: str,
        *,
        locks: Locks,
        quoted: str,
        channel: str,
        exclusive: bool,
    ) -> None:
        self._connection = connection
        self._tenant = tenant
        self._scope = scope
        self._locks = locks
        self._quoted = quoted
        self._channel = channel
        self._exclusive = exclusive
        self._entries: list[LogEntry] = []
        self.emitted = 0
        self.erased = False

    def _run(self, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._connection.execute(statement.replace("{s}", self._quoted).encode(), values, binary=True)
        return cursor.fetchall() if cursor.description is not None else []

    def next_seq(self, session: str | None, count: int) -> int:
        last = self._run(
            "INSERT INTO {s}.sessions AS held VALUES (%s, %s, %s) "
            "ON CONFLICT (tenant, session) DO UPDATE SET seq = held.seq + excluded.seq RETURNING seq",
            (self._scope, scope_key(session), count),
        )[0][0]
        return int(last) - count + 1

    def origins(self, keys: Sequence[bytes], tenants: Tenants) -> dict[bytes, tuple[OriginRow, ...]]:
        found: dict[bytes, dict[str, OriginRow]] = {}
        wanted = [key for key in dict.fromkeys(keys) if key]
        rows = self._run(_ORIGINS, (wanted, scope_keys(tenants))) if wanted else []
        for key, scope, ordinal, item_id, kind, source in rows:
            origin = OriginRow(ordinal=ordinal, item_id=item_id, type=kind, source=source, tenant=scope_name(scope))
            found.setdefault(key, {}).setdefault(kind, origin)
        return {key: tuple(first.values()) for key, first in found.items()}

    def identities(self, identities: Sequence[bytes]) -> dict[bytes, str]:
        rows = self._run(
            "SELECT identity, id FROM {s}.items WHERE tenant = %s AND identity = ANY(%s::bytea[])",
            (self._scope, list(dict.fromkeys(identities))),
        )
        return dict(rows)

    def insert(self, rows: Sequence[NewRow]) -> list[str]:
        require_owned(rows, self._tenant)
        if not rows:
            return []
        packed = [pack(row.item) for row in rows]
        ordinals = self._next_ordinals(len(rows))
        # One statement decides who is first. Identities are taken in one order by everybody, so that two
        # writers of the same items do not wait for each other in a circle.
        firsts: dict[bytes, int] = {}
        for place, row in enumerate(rows):
            if row.identity is not None:
                firsts.setdefault(row.identity, place)
        offered = [place for place, row in enumerate(rows) if row.identity is None or firsts[row.identity] == place]
        offered.sort(key=lambda place: (rows[place].identity or b"", place))
        written: set[int] = set()
        batch: list[tuple[int, NewRow, str, bytes]] = []
        size = 0
        for place in offered:
            text, record = packed[place]
            batch.append((ordinals[place], rows[place], text, record))
            size += len(text) + len(record)
            if size > _LARGEST:
                written |= self._write(batch)
                batch, size = [], 0
        written |= self._write(batch) if batch else set()
        ids = [row.item.id for row in rows]
        if len(written) < len(rows):
            ids = self._first_ids(rows, ordinals, written)
        edges = [
            (parent, ordinal)
            for ordinal, row in zip(ordinals, rows, strict=True)
            if ordinal in written
            for parent in dict.fromkeys(row.item.derived_from)
        ]
        self._link(edges)
        return ids

    def _next_ordinals(self, count: int) -> list[int]:
        rows = self._run("SELECT nextval('{s}.ordinals') FROM generate_series(1, %s)", (count,))
        return [row[0] for row in rows]

    def _write(self, offered: list[tuple[int, NewRow, str, bytes]]) -> set[int]:
        columns: list[tuple[Any, ...]] = []
        for ordinal, row, text, record in offered:
            item_id, _, *middle, expires_at = columns_of(row.item)
            expires_at = _NO_NUMBER if expires_at is None else expires_at
            keys = (row.content_key, row.identity or b"")
            columns.append((ordinal, item_id, *middle, expires_at, *keys, text, record))
        rows = self._run(_INSERT, (self._scope, *(list(column) for column in zip(*columns, strict=True))))
        return {row[0] for row in rows}

    def _first_ids(self, rows: Sequence[NewRow], ordinals: list[int], written: set[int]) -> list[str]:
        """The ids of the rows that hold what was offered; an id that exists under no such identity is an error."""
        holders = self.identities([row.identity for row in rows if row.identity is not None])
        ids: list[str] = []
        for ordinal, row in zip(ordinals, rows, strict=True):
            if ordinal in written:
                ids.append(row.item.id)
            elif row.identity is not None and row.identity in holders:
                ids.append(holders[row.identity])
            else:
                self._run("DELETE FROM {s}.items WHERE ordinal = ANY(%s)", (list(written),))
                raise id_conflict(row.item.id)
        return ids

    def _link(self, edges: list[tuple[str, int]]) -> None:
        if edges:
            self._run(
                "INSERT INTO {s}.edges SELECT parent, %s, child "
                "FROM unnest(%b::text[], %b::bigint[]) AS given (parent, child)",
                (self._scope, [parent for parent, _ in edges], [child for _, child in edges]),
            )

    def texts_since(self, ordinal: int, types: frozenset[str], tenants: Tenants) -> Iterator[TextRow]:
        scopes, kinds = scope_keys(tenants), known_names(sorted(types))
        settled = None if self._exclusive else self._settled()
        pages = Pages()
        while True:
            rows = self._run(
                page_statement(len(scopes) * len(kinds), "item.source, item.record, item.text", "erased = 0"),
                {
                    "tenants": scopes,
                    "types": kinds,
                    "after": ordinal,
                    "until": settled if settled is not None else 2**62,
                    "page": pages.size,
                },  # type: ignore[arg-type]
            )
            for ordinal, item_id, scope, kind, source, record, text in rows:
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
            if len(rows) < pages.size:
                return
            pages.read(sum(len(row[-1]) for row in rows))

    def _settled(self) -> int:
        """Up to which ordinal no other write can bring in a row any more."""
        given, lowest = (self._run(part.decode())[0][0] for part in self._locks.settled(self._quoted))
        return int(given) if lowest is None else min(int(given), int(lowest))

    def log(self, entries: Sequence[LogEntry]) -> None:
        # Written at the end: a chain is held by one writer at a time, and so for moments only.
        self._entries += [owned(entry, self._tenant) for entry in entries]

    def finish(self) -> None:
        """Write what was kept for the end."""
        if not self._entries:
            return
        deployment = scope_key(None)
        shared = "" if self._scope == deployment else "_shared"
        self._run(f"SELECT pg_advisory_xact_lock{shared}({self._locks.chain(deployment)})")
        if self._scope != deployment:
            self._run(f"SELECT pg_advisory_xact_lock({self._locks.chain(self._scope)})")
        head = self._run(
            "SELECT number, link FROM {s}.log WHERE tenant = %s ORDER BY number DESC LIMIT 1", (self._scope,)
        )
        last, link = head[0] if head else (0, b"")
        numbers = self._run("SELECT nextval('{s}.log_numbers') FROM generate_series(1, %s)", (len(self._entries),))
        written: list[tuple[Any, ...]] = []
        for entry, (number,) in zip(self._entries, numbers, strict=True):
            whole = chained(link, max(number, last + 1), entry)
            last, link = max(last, whole.number), whole.link
            written.append((whole.number, micros(whole.at), whole.kind, whole.body, whole.link))
        self._run(
            "INSERT INTO {s}.log SELECT %s, * "
            "FROM unnest(%b::bigint[], %b::bigint[], %b::text[], %b::text[], %b::bytea[])",
            (self._scope, *(list(column) for column in zip(*written, strict=True))),
        )
        if last > numbers[-1][0]:
            self._run("SELECT setval('{s}.log_numbers', greatest(last_value, %s)) FROM {s}.log_numbers", (last,))

    def put(self, document: Document, *, expected: int | None = None) -> int:
        document = owned(document, self._tenant)
        values = (self._scope, document.kind, document.id, document.session)
        if expected == 0 or expected is None:
            # A new document: whoever writes first has it, the other one waits and then sees it.
            written = self._run(
                "INSERT INTO {s}.documents VALUES (%s, %s, %s, %s, %s, %s) ON CONFLICT DO NOTHING RETURNING version",
                (*values, max(document.version, 1), document.body),
            )
            if written:
                return int(written[0][0])
        row = self._run(
            "SELECT version FROM {s}.documents WHERE tenant = %s AND kind = %s AND id = %s FOR UPDATE", values[:3]
        )
        actual = int(row[0][0]) if row else 0
        if expected is not None and expected != actual:
            raise version_conflict(document, expected, actual)
        self._run(
            "UPDATE {s}.documents SET session = %s, version = %s, body = %s "
            "WHERE tenant = %s AND kind = %s AND id = %s",
            (document.session, actual + 1, document.body, *values[:3]),
        )
        return actual + 1

    def revoke(self, ids: Sequence[str], at: datetime, reason: str) -> None:
        self._run(
            "INSERT INTO {s}.revoked SELECT id, tenant, %s, %s FROM {s}.items "
            "WHERE id = ANY(%s) AND tenant = %s ORDER BY id ON CONFLICT DO NOTHING",
            (micros(at), reason, known_names(ids), self._scope),
        )

    def emit(self, event: Event) -> int:
        return self._emit(owned(event, self._tenant), "event")

    def _emit(self, event: Event, what: str) -> int:
        self._run(f"SELECT pg_advisory_xact_lock({self._locks.events})")
        number = int(
            self._run(
                "INSERT INTO {s}.events (tenant, at, source, key, version, item_id, reason) "
                "VALUES (%s, %s, %s, %s, %s, %s, %s) RETURNING number",
                (
                    self._scope, micros(event.at), event.source, event.key, event.version, event.item_id,
                    event.reason,
                ),
            )[0][0]
        )  # fmt: skip
        self._count("events", "%s", number)
        self._run("SELECT pg_notify(%s, %s)", (self._channel, f"{what} {number}"))
        self.emitted = number
        return number

    def _count(self, name: str, value: str, given: int) -> None:
        # Under the lock of the events: what others read is what was committed last.
        self._run(f"UPDATE {{s}}.counters SET value = {value} WHERE name = %s", (given, name))

    def erase(self, ids: Sequence[str], at: datetime, reason: str) -> list[str]:
        rows = self._run(
            "SELECT ordinal, id, record FROM {s}.items "
            "WHERE id = ANY(%s) AND tenant = %s AND erased = 0 ORDER BY id FOR UPDATE",
            (known_names(ids), self._scope),
        )
        found = {item_id: (ordinal, record) for ordinal, item_id, record in rows}
        gone = [item_id for item_id in dict.fromkeys(ids) if item_id in found]
        for item_id in gone:
            ordinal, record = found[item_id]
            tombstone = tombstone_of(record, item_id, at, reason, ordinal)
            self._run(
                "UPDATE {s}.items SET session = NULL, seq = 0, subject = NULL, key = NULL, expires_at = NULL, "
                "content_key = NULL, identity = NULL, text = '', erased = 1, record = %s WHERE ordinal = %s",
                (pack_tombstone(tombstone), ordinal),
            )
            self._emit(Event(tenant=self._tenant, at=at, item_id=item_id, reason="erased"), "erased")
        if gone:
            self.erased = True
            self._count("erased", "value + %s", len(gone))
        return gone

    def restore(self, tombstones: Sequence[Tombstone]) -> None:
        if not tombstones:
            return
        whole = [msgspec.structs.replace(tombstone, tenant=self._tenant) for tombstone in tombstones]
        ordinals = self._next_ordinals(len(whole))
        written = self._run(
            "INSERT INTO {s}.items (ordinal, id, tenant, type, source, seq, erased, text, record) "
            "SELECT ordinal, id, %s, type, source, 0, 1, '', record "
            "FROM unnest(%s::bigint[], %s::text[], %s::text[], %s::text[], %s::bytea[]) "
            "AS given (ordinal, id, type, source, record) ON CONFLICT DO NOTHING RETURNING ordinal",
            (
                self._scope,
                ordinals,
                [stone.id for stone in whole],
                [stone.type for stone in whole],
                [stone.source for stone in whole],
                [pack_tombstone(stone) for stone in whole],
            ),
        )
        if len(written) < len(whole):
            self._run("DELETE FROM {s}.items WHERE ordinal = ANY(%s)", ([row[0] for row in written],))
            kept = {row[0] for row in written}
            raise id_conflict(next(s.id for s, ordinal in zip(whole, ordinals, strict=True) if ordinal not in kept))
        self._link(
            [
                (parent, ordinal)
                for stone, ordinal in zip(whole, ordinals, strict=True)
                for parent in dict.fromkeys(stone.derived_from)
            ]
        )


def page_statement(streams: int, columns: str, condition: str) -> str:
    """The statement that reads a page of items in order of writing: ordinal, id, tenant, type, and more.

    Few tenants and types are read each from its own index and merged; for many the table is walked in order.
    """
    wanted = f"SELECT item.ordinal, item.id, item.tenant, item.type, {columns} FROM {{s}}.items AS item WHERE "
    within = f"item.ordinal > %(after)s AND item.ordinal <= %(until)s AND {condition}"
    end = "ORDER BY ordinal LIMIT %(page)s"
    if streams > 64:
        return f"{wanted}item.tenant = ANY(%(tenants)s) AND item.type = ANY(%(types)s) AND {within} {end}"
    return (
        "SELECT found.* FROM unnest(%(tenants)s::text[]) AS scope (tenant), "
        f"unnest(%(types)s::text[]) AS kind (type), LATERAL ({wanted}item.tenant = scope.tenant AND "
        f"item.type = kind.type AND {within} {end}) AS found {end}"
    )
