"""The tables of a knowledge base, and opening its file."""

from __future__ import annotations

import os
import sqlite3
import time

from rung.errors import SchemaVersionError, StoreBusyError, StoreError

APPLICATION_ID = 0x72754B42
VERSION = 1

_TABLES = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) STRICT, WITHOUT ROWID;
INSERT INTO meta VALUES ('generation', '0');
CREATE TABLE documents (
    row INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,              -- '' for everybody's, otherwise ':' and the tenant
    document TEXT NOT NULL,
    version TEXT NOT NULL,             -- of content, labels and chunking together
    label TEXT,                        -- the version by its owner's name
    title TEXT NOT NULL,
    collection TEXT,                   -- the folder that it is synchronised with
    observed_at INTEGER NOT NULL,      -- microseconds
    valid_from INTEGER,
    valid_to INTEGER,
    sensitivity INTEGER,
    access TEXT NOT NULL,              -- JSON: sorted scopes
    metadata TEXT NOT NULL,            -- JSON: key to JSON text
    UNIQUE (tenant, document, version)
) STRICT;
CREATE TABLE chunks (
    row INTEGER PRIMARY KEY,
    doc INTEGER NOT NULL REFERENCES documents (row) ON DELETE CASCADE,
    anchor TEXT NOT NULL,
    section TEXT NOT NULL,
    text TEXT NOT NULL,
    tokens INTEGER NOT NULL,
    vector BLOB                        -- float32, of length one
) STRICT;
CREATE INDEX chunks_doc ON chunks (doc);
CREATE VIRTUAL TABLE terms USING fts5 (
    title, section, body, tokenize = "porter unicode61 remove_diacritics 0 categories 'L* N* M*'"
);
CREATE VIRTUAL TABLE vocabulary USING fts5vocab (terms, row);
"""


def connect(path: str, busy_timeout: float) -> sqlite3.Connection:
    """A connection in WAL mode to a knowledge base, made if absent.

    Raises:
        SchemaVersionError: the file is another program's, or from a newer version.
        StoreBusyError: another process held it for longer than `busy_timeout` seconds.
        StoreError: the file cannot be opened, or is no database.
    """
    try:
        connection = sqlite3.connect(
            path, timeout=busy_timeout, isolation_level=None, check_same_thread=False, cached_statements=256
        )
    except sqlite3.Error as error:
        raise StoreError(f"`{os.path.basename(path)}` cannot be opened ({error})", path=path) from error
    try:
        _prepare(connection, path, busy_timeout)
    except sqlite3.OperationalError as error:
        connection.close()
        raise unavailable(error, path, busy_timeout) from error
    except sqlite3.DatabaseError as error:
        connection.close()
        raise StoreError(f"`{os.path.basename(path)}` is no knowledge base ({error})", path=path) from error
    except BaseException:
        connection.close()
        raise
    return connection


def unavailable(error: sqlite3.OperationalError, path: str, waited: float) -> StoreError:
    """Busy or broken, as an error of this package."""
    text = str(error)
    if "locked" in text or "busy" in text:
        return StoreBusyError(
            f"`{os.path.basename(path)}` was held by another writer for {waited:g} s "
            "(try again, or raise busy_timeout)",
            waited=waited,
        )
    return StoreError(f"`{os.path.basename(path)}` cannot be used ({text})", path=path)


def _prepare(connection: sqlite3.Connection, path: str, busy_timeout: float) -> None:
    # Read before anything is written, so that another program's file is left as it is; and in one transaction, so
    # that what is read belongs together while another handle makes the tables.
    connection.execute("BEGIN")
    try:
        owner, version = _identity(connection)
        holds_tables = connection.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
    finally:
        connection.execute("COMMIT")
    if owner == APPLICATION_ID and version > VERSION:
        raise SchemaVersionError(
            f"`{os.path.basename(path)}` has version {version}, this program reads up to {VERSION} (update rung)",
            found=version,
            supported=VERSION,
        )
    if owner != APPLICATION_ID and (owner or holds_tables):
        raise SchemaVersionError(
            f"`{os.path.basename(path)}` is the database of another program (give another path)",
            found=version,
            supported=VERSION,
        )
    _use_wal(connection, busy_timeout)
    connection.execute("PRAGMA foreign_keys = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute("PRAGMA trusted_schema = OFF")
    if owner == APPLICATION_ID:
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        if _identity(connection)[0] != APPLICATION_ID:
            for statement in _TABLES.split(";\n"):
                if statement.strip():
                    connection.execute(statement)
            connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {VERSION}")
        connection.execute("COMMIT")
    except BaseException:
        connection.execute("ROLLBACK")
        raise


def _identity(connection: sqlite3.Connection) -> tuple[int, int]:
    owner = connection.execute("PRAGMA application_id").fetchone()[0]
    return int(owner), int(connection.execute("PRAGMA user_version").fetchone()[0])


def _use_wal(connection: sqlite3.Connection, busy_timeout: float) -> None:
    # Changing the mode does not wait for others by itself.
    end = time.monotonic() + busy_timeout
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)
