"""The schema of a SQLite file, and how an older file becomes a newer one: forward only, after a backup."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from rung.errors import SchemaVersionError

APPLICATION_ID = 0x72756E67
"""Marks a file as ours: `rung` in ASCII, in the file's own header."""

# One step per version. A step that was released is never altered; what changes is a new step.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        # `tenant` is `-` for the deployment, else `=` and the name: in an index NULL never equals NULL.
        """CREATE TABLE items (
            ordinal INTEGER PRIMARY KEY,
            id TEXT NOT NULL UNIQUE,
            tenant TEXT NOT NULL,
            type TEXT NOT NULL,
            source TEXT NOT NULL,
            session TEXT,
            seq INTEGER NOT NULL,
            subject TEXT,
            key TEXT,
            expires_at INTEGER,
            content_key BLOB,
            identity BLOB,
            erased INTEGER NOT NULL DEFAULT 0,
            text TEXT NOT NULL,
            record BLOB NOT NULL
        ) STRICT""",
        "CREATE UNIQUE INDEX items_identity ON items (tenant, identity) WHERE identity IS NOT NULL",
        "CREATE INDEX items_content ON items (tenant, content_key, type) WHERE content_key IS NOT NULL",
        "CREATE INDEX items_session ON items (tenant, session, seq) WHERE session IS NOT NULL",
        "CREATE INDEX items_type ON items (tenant, type)",
        "CREATE INDEX items_key ON items (tenant, key) WHERE key IS NOT NULL",
        "CREATE INDEX items_subject ON items (tenant, subject) WHERE subject IS NOT NULL",
        "CREATE INDEX items_expiry ON items (tenant, expires_at) WHERE expires_at IS NOT NULL",
        """CREATE TABLE edges (
            parent TEXT NOT NULL,
            tenant TEXT NOT NULL,
            child INTEGER NOT NULL,
            PRIMARY KEY (parent, tenant, child)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE sessions (
            tenant TEXT NOT NULL,
            session TEXT NOT NULL,
            seq INTEGER NOT NULL,
            PRIMARY KEY (tenant, session)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE revoked (
            id TEXT PRIMARY KEY,
            tenant TEXT NOT NULL,
            at INTEGER NOT NULL,
            reason TEXT NOT NULL
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE events (
            number INTEGER PRIMARY KEY AUTOINCREMENT,
            tenant TEXT NOT NULL,
            at INTEGER NOT NULL,
            source TEXT,
            key TEXT,
            version TEXT,
            item_id TEXT,
            reason TEXT NOT NULL
        ) STRICT""",
        "CREATE INDEX events_tenant ON events (tenant)",
        """CREATE TABLE log (
            tenant TEXT NOT NULL,
            number INTEGER NOT NULL,
            at INTEGER NOT NULL,
            kind TEXT NOT NULL,
            body TEXT NOT NULL,
            link BLOB NOT NULL,
            PRIMARY KEY (tenant, number)
        ) STRICT, WITHOUT ROWID""",
        """CREATE TABLE documents (
            tenant TEXT NOT NULL,
            kind TEXT NOT NULL,
            id TEXT NOT NULL,
            session TEXT,
            version INTEGER NOT NULL,
            body TEXT NOT NULL,
            PRIMARY KEY (tenant, kind, id)
        ) STRICT""",
        "CREATE INDEX documents_session ON documents (tenant, kind, session) WHERE session IS NOT NULL",
        "CREATE TABLE counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) STRICT, WITHOUT ROWID",
        "INSERT INTO counters VALUES ('log', 0), ('erased', 0)",
    ),
)


def prepare(connection: sqlite3.Connection, path: str, migrations: Sequence[Sequence[str]] = MIGRATIONS) -> None:
    """Bring a file to the newest version of the schema; nothing is done to a file that has it.

    The copy that is taken before an older file changes is `<path>.v<version>.bak`.

    Raises:
        SchemaVersionError: the file is from a newer version, or is another program's database.
    """
    # One transaction, so that what is read belongs together while another process makes the tables.
    connection.execute("BEGIN")
    try:
        version = _version(connection, path, len(migrations))
    finally:
        connection.execute("COMMIT")
    if version == len(migrations):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        # Read again: another process may have been faster.
        version = _version(connection, path, len(migrations))
        if 0 < version < len(migrations):
            _back_up(path, version)
        for step in migrations[version:]:
            for statement in step:
                connection.execute(statement)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {len(migrations)}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _version(connection: sqlite3.Connection, path: str, supported: int) -> int:
    tables = connection.execute("SELECT count(*) FROM sqlite_schema").fetchone()[0]
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = int(connection.execute("PRAGMA user_version").fetchone()[0])
    if application != APPLICATION_ID and (application or version or tables):
        raise SchemaVersionError(
            f"`{path}` is another program's database (give the path of a rung store, or of a new file)",
            found=version,
            supported=supported,
        )
    if version > supported:
        raise SchemaVersionError(
            f"`{path}` has schema version {version}, this rung reads up to {supported} (upgrade rung)",
            found=version,
            supported=supported,
        )
    return version


def _back_up(path: str, version: int) -> None:
    # A reader of its own sees what was committed before the transaction that changes the file.
    target = f"{path}.v{version}.bak"
    fresh = f"{target}.part"
    if os.path.exists(fresh):
        os.remove(fresh)
    with closing(sqlite3.connect(path)) as source, closing(sqlite3.connect(fresh)) as copy:
        source.backup(copy)
    os.replace(fresh, target)
