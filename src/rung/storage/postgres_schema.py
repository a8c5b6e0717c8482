"""The schema of a PostgreSQL ledger: the tables of the SQLite file, in a schema of their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import psycopg

from rung.errors import SchemaVersionError

TABLES = ("items", "edges", "sessions", "revoked", "events", "log", "documents")
"""The tables that hold rows of tenants."""

# `{s}` is the quoted schema. Collation "C" makes equality and order those of the bytes, as in SQLite.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE SEQUENCE {s}.ordinals",
        # One number is spent, so that `last_value` always is a number that was given before.
        "SELECT nextval('{s}.ordinals')",
        """CREATE TABLE {s}.items (
            ordinal bigint PRIMARY KEY,
            id text COLLATE "C" NOT NULL UNIQUE,
            tenant text COLLATE "C" NOT NULL,
            type text COLLATE "C" NOT NULL,
            source text COLLATE "C" NOT NULL,
            session text COLLATE "C",
            seq bigint NOT NULL,
            subject text COLLATE "C",
            key text COLLATE "C",
            expires_at bigint,
            content_key bytea,
            identity bytea,
            erased smallint NOT NULL DEFAULT 0,
            text text COLLATE "C" NOT NULL,
            record bytea NOT NULL
        )""",
        "CREATE UNIQUE INDEX items_identity ON {s}.items (tenant, identity) WHERE identity IS NOT NULL",
        "CREATE INDEX items_content ON {s}.items (tenant, content_key, type, ordinal) WHERE content_key IS NOT NULL",
        "CREATE INDEX items_session ON {s}.items (tenant, session, seq) WHERE session IS NOT NULL",
        "CREATE INDEX items_type ON {s}.items (tenant, type, ordinal)",
        "CREATE INDEX items_key ON {s}.items (tenant, key, ordinal) WHERE key IS NOT NULL",
        "CREATE INDEX items_subject ON {s}.items (tenant, subject, ordinal) WHERE subject IS NOT NULL",
        "CREATE INDEX items_expiry ON {s}.items (tenant, expires_at) WHERE expires_at IS NOT NULL",
        """CREATE TABLE {s}.edges (
            parent text COLLATE "C" NOT NULL,
            tenant text COLLATE "C" NOT NULL,
            child bigint NOT NULL,
            PRIMARY KEY (parent, tenant, child)
        )""",
        """CREATE TABLE {s}.sessions (
            tenant text COLLATE "C" NOT NULL,
            session text COLLATE "C" NOT NULL,
            seq bigint NOT NULL,
            PRIMARY KEY (tenant, session)
        )""",
        """CREATE TABLE {s}.revoked (
            id text COLLATE "C" PRIMARY KEY,
            tenant text COLLATE "C" NOT NULL,
            at bigint NOT NULL,
            reason text COLLATE "C" NOT NULL
        )""",
        """CREATE TABLE {s}.events (
            number bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
            tenant text COLLATE "C" NOT NULL,
            at bigint NOT NULL,
            source text COLLATE "C",
            key text COLLATE "C",
            version text COLLATE "C",
            item_id text COLLATE "C",
            reason text COLLATE "C" NOT NULL
        )""",
        "CREATE INDEX events_tenant ON {s}.events (tenant, number)",
        "CREATE SEQUENCE {s}.log_numbers",
        """CREATE TABLE {s}.log (
            tenant text COLLATE "C" NOT NULL,
            number bigint NOT NULL,
            at bigint NOT NULL,
            kind text COLLATE "C" NOT NULL,
            body text COLLATE "C" NOT NULL,
            link bytea NOT NULL,
            PRIMARY KEY (tenant, number)
        )""",
        """CREATE TABLE {s}.documents (
            tenant text COLLATE "C" NOT NULL,
            kind text COLLATE "C" NOT NULL,
            id text COLLATE "C" NOT NULL,
            session text COLLATE "C",
            version bigint NOT NULL,
            body text COLLATE "C" NOT NULL,
            PRIMARY KEY (tenant, kind, id)
        )""",
        "CREATE INDEX documents_session ON {s}.documents (tenant, kind, session) WHERE session IS NOT NULL",
        # The last event and how many items were erased, so that whoever missed a message finds out.
        'CREATE TABLE {s}.counters (name text COLLATE "C" PRIMARY KEY, value bigint NOT NULL)',
        "INSERT INTO {s}.counters VALUES ('events', 0), ('erased', 0)",
    ),
)

# The tenants that a transaction may touch are a JSON array in `app.tenant`; without it there are none.
_POLICY = """CREATE POLICY tenants ON {s}.{table} USING (tenant = ANY (ARRAY(
    SELECT jsonb_array_elements_text(coalesce(nullif(current_setting('app.tenant', true), ''), '[]')::jsonb)
)))"""


def prepare(
    connection: psycopg.Connection[Any],
    schema: str,
    quoted: str,
    lock: int,
    *,
    install_rls: bool,
    migrations: Sequence[Sequence[str]] = MIGRATIONS,
) -> None:
    """Bring a schema to the newest version, in one transaction; processes that open at once wait for each other.

    Raises:
        SchemaVersionError: the schema is from a newer version, or holds another program's tables.
    """
    supported = len(migrations)
    if _version(connection, schema, quoted, supported) == supported and not install_rls:
        return
    with connection.transaction():
        connection.execute(f"SELECT pg_advisory_xact_lock({lock})".encode())
        version = _version(connection, schema, quoted, supported)
        if version == 0:
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {quoted}".encode())
            connection.execute(f"CREATE TABLE {quoted}.version (version integer NOT NULL)".encode())
            connection.execute(f"INSERT INTO {quoted}.version VALUES (0)".encode())
        for step in migrations[version:]:
            for statement in step:
                connection.execute(statement.replace("{s}", quoted).encode())
        connection.execute(f"UPDATE {quoted}.version SET version = {supported}".encode())
        if install_rls:
            _install_rls(connection, schema, quoted)


def _version(connection: psycopg.Connection[Any], schema: str, quoted: str, supported: int) -> int:
    found = connection.execute(
        b"SELECT table_name FROM information_schema.tables WHERE table_schema = %s", (schema,)
    ).fetchall()
    names = {row[0] for row in found}
    if "version" not in names:
        if names & set(TABLES):
            raise SchemaVersionError(
                f"the schema `{schema}` holds another program's tables (give another `schema`)",
                found=0,
                supported=supported,
            )
        return 0
    version = int(connection.execute(f"SELECT version FROM {quoted}.version".encode()).fetchone()[0])  # type: ignore[index]
    if version > supported:
        raise SchemaVersionError(
            f"the schema `{schema}` has version {version}, this rung reads up to {supported} (upgrade rung)",
            found=version,
            supported=supported,
        )
    return version


def _install_rls(connection: psycopg.Connection[Any], schema: str, quoted: str) -> None:
    installed = connection.execute(
        b"SELECT tablename FROM pg_policies WHERE schemaname = %s AND policyname = 'tenants'", (schema,)
    ).fetchall()
    for table in TABLES:
        if (table,) not in installed:
            connection.execute(f"ALTER TABLE {quoted}.{table} ENABLE ROW LEVEL SECURITY".encode())
            connection.execute(_POLICY.replace("{s}", quoted).replace("{table}", table).encode())
