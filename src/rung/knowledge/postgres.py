"""A knowledge base in PostgreSQL: BM25 over its text search vectors, and pgvector for meaning.

The server's own ranking knows no inverse document frequency, so BM25 is computed from the positions that a
`tsvector` holds; the index on it finds the candidates.
"""

from __future__ import annotations

import json
import math
import re
import threading
from collections.abc import Generator, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from rung.errors import ConfigError, InputError, SchemaVersionError, StoreBusyError, StoreError, missing_extra
from rung.knowledge.filters import Filters
from rung.knowledge.session import Rows, Scored, fact, raise_generation
from rung.knowledge.terms import MAX_COUNT, MAX_WORDS, TITLE_WEIGHT, query_words
from rung.knowledge.vectors import moved

if TYPE_CHECKING:
    import psycopg

    from rung.knowledge.vectors import Matrix

    Connection = psycopg.Connection[tuple[Any, ...]]

VERSION = 1

_TABLES = """
CREATE TABLE meta (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE documents (
    row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant text COLLATE "C" NOT NULL,
    document text COLLATE "C" NOT NULL,
    version text NOT NULL,
    label text,
    title text NOT NULL,
    collection text,
    observed_at bigint NOT NULL,
    valid_from bigint,
    valid_to bigint,
    sensitivity integer,
    access text NOT NULL,
    metadata text NOT NULL,
    UNIQUE (tenant, document, version)
);
CREATE TABLE chunks (
    row bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    doc bigint NOT NULL REFERENCES documents (row) ON DELETE CASCADE,
    anchor text NOT NULL,
    section text NOT NULL,
    text text NOT NULL,
    tokens integer NOT NULL,
    vector {vector},
    length integer NOT NULL DEFAULT 0,
    terms tsvector
);
ALTER TABLE chunks ALTER terms SET STORAGE EXTERNAL;  -- read by every search: not worth compressing
CREATE INDEX chunks_doc ON chunks (doc);
CREATE INDEX chunks_terms ON chunks USING gin (terms);
"""

_ACCESS = """NOT EXISTS (
    SELECT 1 FROM jsonb_array_elements_text(d.access::jsonb) a
    WHERE a NOT IN (SELECT jsonb_array_elements_text(:scopes::jsonb))
)"""
_METADATA = "d.metadata::jsonb ->> {key} = {value}"

_BM25 = """
WITH candidates AS MATERIALIZED (
    SELECT c.row, c.terms, c.length, d.document
    FROM chunks c JOIN documents d ON d.row = c.doc
    WHERE c.terms @@ :query::tsquery AND {where}
    ORDER BY ts_rank(c.terms, :query::tsquery, 1) DESC, c.row LIMIT :candidates
), scored AS (
    SELECT c.row, c.document, sum(a.weight * f.tf * 2.2 / (f.tf + 1.2 * (0.25 + 0.75 * c.length / :average))) AS score
    FROM candidates c
    CROSS JOIN LATERAL unnest(c.terms) AS l (lexeme, positions, weights)
    JOIN unnest(:lexemes::text[], :idfs::float8[]) AS a (lexeme, weight) ON a.lexeme = l.lexeme
    CROSS JOIN LATERAL (
        SELECT sum(CASE w WHEN 'A' THEN :title ELSE 1.0 END)::float8 AS tf FROM unnest(l.weights) AS w
    ) f
    GROUP BY c.row, c.document
)
SELECT row, score FROM scored ORDER BY round(score::numeric, 9) DESC, document, row LIMIT :limit
"""

_CANDIDATES = 2_000
"""Scored by BM25 at most: reading every position of a large base would take seconds."""


class PostgresDatabase:
    """One connection, used by one thread at a time. Writers of all machines come one after another.

    Args:
        path: `postgresql://…`.
        busy_timeout: how long a write waits for other writers, in seconds.
        schema: where the tables are; made if absent.

    Raises:
        MissingExtraError: `psycopg` is not installed.
        SchemaVersionError: the tables are from a newer version.
        StoreError: the server cannot be reached.
    """

    def __init__(self, path: str, busy_timeout: float, schema: str = "rung_knowledge") -> None:
        try:
            import psycopg
        except ImportError:
            raise missing_extra("psycopg", "postgres") from None
        if re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", schema) is None:
            raise InputError(f"`{schema}` is no name of a schema (lower-case letters, digits and `_`)", field="schema")
        self._psycopg = psycopg
        self._dsn = path
        self._busy_timeout = busy_timeout
        self._schema = schema
        self._lock = threading.RLock()
        self._closed = False
        with self._translated():
            self._session = self._connect()

    @property
    def path(self) -> str:
        """The schema's name: the address may hold a password."""
        return f"postgresql schema {self._schema}"

    def _connect(self) -> PostgresSession:
        connection = self._psycopg.connect(self._dsn, autocommit=True)
        try:
            connection.execute(f"SET lock_timeout = {max(1, int(self._busy_timeout * 1000))}".encode())
            connection.execute(b"SET client_encoding = 'UTF8'")
            # Compiling a search takes longer than running it.
            connection.execute(b"SET jit = off")
            with connection.transaction():
                _lock(connection, self._schema)
                has_vectors = self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return PostgresSession(connection, has_vectors)

    def _prepare(self, connection: Connection) -> bool:
        connection.execute(f"CREATE SCHEMA IF NOT EXISTS {self._schema}".encode())
        where = _vector_schema(connection)
        if (
            where is None
            and connection.execute(b"SELECT 1 FROM pg_available_extensions WHERE name = 'vector'").fetchone()
        ):
            with suppress(self._psycopg.errors.InsufficientPrivilege), connection.transaction():
                connection.execute(b"CREATE EXTENSION vector SCHEMA public")
            where = _vector_schema(connection)
        path = self._schema if where is None else f'{self._schema}, "{where}"'
        connection.execute(f"SET search_path = {path}".encode())
        if connection.execute(b"SELECT to_regclass(%s)", (f"{self._schema}.meta",)).fetchone() == (None,):
            connection.execute(_TABLES.replace("{vector}", "bytea" if where is None else "vector").encode())
            connection.execute(b"INSERT INTO meta VALUES ('schema', %s), ('generation', '0')", (str(VERSION),))
        found = int(fact(PostgresSession(connection, False), "schema") or 0)
        if found > VERSION:
            raise SchemaVersionError(
                f"`{self._schema}` has version {found}, this program reads up to {VERSION} (update rung)",
                found=found,
                supported=VERSION,
            )
        kind = connection.execute(
            b"SELECT udt_name FROM information_schema.columns "
            b"WHERE table_schema = %s AND table_name = 'chunks' AND column_name = 'vector'",
            (self._schema,),
        ).fetchone()
        return kind == ("vector",)

    @contextmanager
    def reading(self) -> Generator[PostgresSession, None, None]:
        """A read transaction that sees one state throughout."""
        with self._transaction("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY") as session:
            yield session

    @contextmanager
    def writing(self) -> Generator[PostgresSession, None, None]:
        """A write transaction: all of it or nothing.

        Raises:
            StoreBusyError: another writer took longer than the bounded wait.
        """
        with self._transaction("BEGIN") as session:
            _lock(session.connection, self._schema)
            yield session
            raise_generation(session)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[PostgresSession, None, None]:
        with self._lock, self._translated():
            if self._closed:
                raise StoreError("the knowledge base is closed (open it again)", path=self.path)
            try:
                self._session.connection.execute(begin.encode())
            except self._psycopg.OperationalError:
                # A server that restarted leaves a dead connection: nothing was done yet, so take a new one.
                self._session.connection.close()
                self._session = self._connect()
                self._session.connection.execute(begin.encode())
            try:
                yield self._session
                self._session.connection.execute(b"COMMIT")
            except BaseException:
                with suppress(self._psycopg.Error):
                    self._session.connection.execute(b"ROLLBACK")
                raise

    @contextmanager
    def _translated(self) -> Generator[None, None, None]:
        try:
            yield
        except self._psycopg.errors.LockNotAvailable as error:
            raise StoreBusyError(
                f"`{self._schema}` was held by another writer for {self._busy_timeout:g} s "
                "(try again, or raise busy_timeout)",
                waited=self._busy_timeout,
            ) from error
        except self._psycopg.Error as error:
            # The server's message may quote the address; its kind is enough.
            raise StoreError(
                f"the knowledge base in `{self._schema}` cannot be used ({type(error).__name__})", path=self.path
            ) from error

    def close(self) -> None:
        with self._lock:
            self._closed = True
            self._session.connection.close()


class PostgresSession:
    """A transaction on the one connection."""

    def __init__(self, connection: Connection, has_vectors: bool) -> None:
        self.connection = connection
        self._has_vectors = has_vectors
        self._stems: dict[str, str] = {}

    def execute(self, statement: str, values: Any = (), /) -> Rows:
        return self.connection.execute(_translated(statement), values or None)

    def executemany(self, statement: str, values: Sequence[tuple[Any, ...]], /) -> None:
        self.connection.cursor().executemany(_translated(statement), values)

    def index_words(self, row: int, title: list[str], section: list[str], text: list[str]) -> None:
        every = [*title, *section, *text]
        stems = self._stemmed(every)
        places: dict[str, list[str]] = {}
        for place, word in enumerate(every):
            held = places.setdefault(stems[word], [])
            if len(held) < 255:
                # A position counts once, and none is above 16,383: beyond, what is counted matters, not where.
                weight = "A" if place < len(title) else ""
                held.append(f"{1 + (place if place < 16_000 else 16_000 + len(held))}{weight}")
        literal = " ".join(f"'{lexeme}':{','.join(held)}" for lexeme, held in places.items())
        self.execute("UPDATE chunks SET terms = ?::tsvector, length = ? WHERE row = ?", (literal, len(every), row))

    def _stemmed(self, wanted: Sequence[str]) -> dict[str, str]:
        """English stems by the server's own dictionary; a word that it would leave out stays as it is."""
        missing = [word for word in dict.fromkeys(wanted) if word not in self._stems]
        if missing:
            if len(self._stems) > 100_000:
                self._stems.clear()
                missing = list(dict.fromkeys(wanted))
            for word, stem in self.execute(
                "SELECT w, (ts_lexize('english_stem', w))[1] FROM unnest(?::text[]) AS w", (missing,)
            ):
                self._stems[word] = stem or word
        return self._stems

    def drop_words(self, doc: int) -> None:
        """Nothing: words go with their chunk."""

    def by_words(self, question: str, filters: Filters, limit: int) -> Scored:
        asked = query_words(question)
        counts: dict[str, int] = {}
        stems = self._stemmed(list(asked)[: MAX_WORDS * 8])
        for word in list(asked)[: MAX_WORDS * 8]:
            counts[stems[word]] = counts.get(stems[word], 0) + min(asked[word], MAX_COUNT)
        total, average = self.execute("SELECT count(*), coalesce(avg(length), 1)::float8 FROM chunks").fetchone()
        held = [
            (found, lexeme)
            for lexeme, found in self.execute(
                "SELECT l, (SELECT count(*) FROM chunks c WHERE c.terms @@ quote_literal(l)::tsquery) "
                "FROM unnest(?::text[]) AS l",
                (list(counts),),
            )
            if found
        ]
        kept = sorted(held)[:MAX_WORDS]
        if not kept:
            return []
        where, values = filters.where(_ACCESS, _METADATA)
        idfs = [max(1e-6, math.log((total - found + 0.5) / (found + 0.5))) * counts[lexeme] for found, lexeme in kept]
        return self.execute(
            _BM25.replace("{where}", where),
            {
                **values,
                "lexemes": [lexeme for _, lexeme in kept],
                "idfs": idfs,
                # A word holds letters, digits and marks only: inside quotes nothing of it is syntax.
                "query": " | ".join(f"'{lexeme}'" for _, lexeme in kept),
                "average": max(average, 1.0),
                "title": TITLE_WEIGHT,
                "candidates": max(_CANDIDATES, limit),
                "limit": limit,
            },
        ).fetchall()

    def by_meaning(
        self, asked: Matrix, filters: Filters, limit: int, floor: float, towards: Sequence[int], pull: float
    ) -> Scored:
        import numpy as np

        if pull > 0 and towards:
            found = self.execute(
                "SELECT avg(vector)::text FROM chunks WHERE row = ANY(?) AND vector IS NOT NULL", (list(towards),)
            ).fetchone()[0]
            if found is not None:
                asked = moved(asked, np.array(json.loads(found), dtype=np.float32), pull)
        where, values = filters.where(_ACCESS, _METADATA)
        return self.execute(
            "SELECT row, cosine FROM (SELECT c.row, "
            "round((-(c.vector <#> :asked::vector))::numeric, 6)::float8 AS cosine "
            f"FROM chunks c JOIN documents d ON d.row = c.doc "
            f"WHERE c.vector IS NOT NULL AND {where}) AS found "
            "WHERE cosine > :floor ORDER BY cosine DESC, row LIMIT :limit",
            {**values, "asked": _literal(asked), "floor": floor, "limit": limit},
        ).fetchall()

    def vector(self, stored: bytes) -> Any:
        """
        Raises:
            ConfigError: the server had no pgvector when the tables were made.
        """
        import numpy as np

        if not self._has_vectors:
            raise ConfigError("the server has no pgvector (install it, then make the tables anew)", path="embed")
        return _literal(np.frombuffer(stored, dtype=np.float32))

    def size(self) -> int:
        tables = "('meta'), ('documents'), ('chunks')"
        found = self.execute(f"SELECT sum(pg_total_relation_size(t::regclass)) FROM (VALUES {tables}) AS v (t)")
        return int(found.fetchone()[0])


def _lock(connection: Connection, schema: str) -> None:
    connection.execute(b"SELECT pg_advisory_xact_lock(hashtext('rung knowledge'), hashtext(%s))", (schema,))


def _vector_schema(connection: Connection) -> str | None:
    row = connection.execute(
        b"SELECT n.nspname FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace WHERE e.extname = 'vector'"
    ).fetchone()
    return None if row is None else str(row[0])


def _literal(vector: Matrix) -> str:
    return f"[{','.join(repr(float(value)) for value in vector)}]"


@lru_cache(maxsize=256)
def _translated(statement: str) -> bytes:
    """A statement with `?` and `:name` as this driver writes them."""
    named = re.sub(r"(?<![:\w]):([a-z]\w*)", r"%(\1)s", statement)
    return named.replace("?", "%s").encode()
