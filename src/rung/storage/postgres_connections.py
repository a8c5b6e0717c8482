"""Connections to PostgreSQL: a pool that writes, a pool that reads, and the errors of both in our words."""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import psycopg_pool
from psycopg import errors, sql

from rung.errors import InputError, RungError, ScopeError, StoreBusyError, StoreError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")

Connection = psycopg.Connection[tuple[Any, ...]]


class Connections:
    """Two pools, so that a thread that writes and reads never waits for itself.

    Args:
        dsn: the address.
        schema: the schema of the tables.
        busy_timeout: how long one waits for a lock or a connection, in seconds.
        most: how many connections per pool at most.
    """

    def __init__(self, dsn: str, schema: str, busy_timeout: float, most: int) -> None:
        if not _NAME.fullmatch(schema):
            raise InputError(
                f"`{schema}` cannot name the schema (a letter, then letters, digits and `_`, at most 63)",
                field="schema",
            )
        self.dsn = dsn
        self.schema = schema
        self.quoted = sql.Identifier(schema).as_string(None)
        self.busy_timeout = busy_timeout
        self._most = most
        self._process = os.getpid()
        self._closed = False
        self._thread = threading.local()
        with self.translated():
            # A wrong address is told at once and in full, not by a pool that keeps trying.
            self.connect().close()
        self._writers = self._pool("write")
        self._readers = self._pool("read")

    def _pool(self, name: str) -> psycopg_pool.ConnectionPool[Connection]:
        return psycopg_pool.ConnectionPool(
            self.dsn,
            min_size=0,
            max_size=self._most,
            timeout=self.busy_timeout,
            kwargs={"autocommit": True},
            configure=self._configure,
            max_idle=60.0,
            name=f"rung-{name}",
            open=True,
        )

    def connect(self) -> Connection:
        """A connection of its own, for the caller to close."""
        connection = psycopg.connect(self.dsn, autocommit=True)
        self._configure(connection)
        return connection

    def _configure(self, connection: Connection) -> None:
        connection.execute(f"SET lock_timeout = {max(1, int(self.busy_timeout * 1000))}".encode())
        connection.execute(b"SET client_encoding = 'UTF8'")

    def _ready(self) -> None:
        if self._closed:
            raise StoreError("the store is closed (open it again)")
        if self._process != os.getpid():
            raise StoreError("the store was opened before this process was forked (open it in each process)")

    @contextmanager
    def writing(self, begin: bytes) -> Generator[Connection, None, None]:
        """A connection in a transaction that began with these statements."""
        self._ready()
        if getattr(self._thread, "writes", False):
            raise StoreError("a write is open in this thread already (end it before the next one)")
        self._thread.writes = True
        try:
            with self.translated():
                connection = self._begun(begin)
                try:
                    yield connection
                    if connection.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                        raise StoreError("a statement of this write failed, so nothing of it can be kept")
                    connection.execute(b"COMMIT")
                except BaseException:
                    with suppress(psycopg.Error):
                        connection.execute(b"ROLLBACK")
                    raise
                finally:
                    self._writers.putconn(connection)
        finally:
            self._thread.writes = False

    def _begun(self, begin: bytes) -> Connection:
        # A server that restarted leaves dead connections in the pool: nothing was done yet, so take the next.
        for _ in range(self._most):
            connection = self._writers.getconn()
            try:
                connection.execute(begin)
                return connection
            except psycopg.OperationalError:
                broken = connection.closed
                with suppress(psycopg.Error):
                    connection.execute(b"ROLLBACK")
                self._writers.putconn(connection)
                if not broken:
                    raise
            except BaseException:
                with suppress(psycopg.Error):
                    connection.execute(b"ROLLBACK")
                self._writers.putconn(connection)
                raise
        return self._writers.getconn()

    def read(self, statement: str, values: tuple[Any, ...] = (), tenants: str | None = None) -> list[tuple[Any, ...]]:
        """Rows of one statement.

        Args:
            statement: with `{s}` for the schema.
            values: of its placeholders.
            tenants: what `app.tenant` is for this statement; None where no row-level security is installed.
        """
        self._ready()
        query = statement.replace("{s}", self.quoted).encode()
        with self.translated():
            for attempt in range(self._most + 1):
                connection = self._readers.getconn()
                try:
                    if tenants is None:
                        return connection.execute(query, values, binary=True).fetchall()
                    with connection.pipeline(), connection.transaction():
                        connection.execute(b"SELECT set_config('app.tenant', %s, true)", (tenants,))
                        cursor = connection.execute(query, values, binary=True)
                    return cursor.fetchall()
                except psycopg.OperationalError:
                    if not connection.closed or attempt == self._most:
                        raise
                finally:
                    self._readers.putconn(connection)
        raise StoreError("the database cannot be reached (check the server)")

    @contextmanager
    def translated(self) -> Generator[None, None, None]:
        """Turns errors of the driver into ours."""
        try:
            yield
        except RungError:
            raise
        except (errors.LockNotAvailable, errors.DeadlockDetected, psycopg_pool.PoolTimeout) as problem:
            raise StoreBusyError(
                f"the database is busy for {self.busy_timeout:g} s (keep writes short, or raise busy_timeout)",
                waited=self.busy_timeout,
            ) from problem
        except errors.InsufficientPrivilege as problem:
            raise ScopeError(
                "the database's own rules exclude this (row-level security, or a privilege of the role)",
                reason="row_level_security",
            ) from problem
        except psycopg.Error as problem:
            code = problem.sqlstate or "no connection"
            raise StoreError(
                f"the database refused or could not be reached ({code}, {type(problem).__name__}; check the server)"
            ) from problem

    def close(self) -> None:
        """Close both pools; connections that are lent close when they come back."""
        if self._closed:
            return
        self._closed = True
        if self._process == os.getpid():
            self._readers.close()
            self._writers.close()
