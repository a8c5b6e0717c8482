"""The connections to one SQLite file: one that writes, a few that read."""

from __future__ import annotations

import os
import random
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress

from rung.errors import StoreBusyError, StoreError
from rung.storage.sqlite_schema import MIGRATIONS, prepare

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)

# Connections that a fork left in a child: SQLite forbids using or closing them there, so they are kept alive.
_left_behind: list[object] = []


class Connections:
    """Opens, lends and closes connections, also after a fork.

    Args:
        path: the file.
        busy_timeout: how long one waits for another writer, in seconds.
        synchronous: `FULL` or `NORMAL`, as in SQLite's documentation of `PRAGMA synchronous`.
        readers: how many reading connections at most.
    """

    def __init__(self, path: str, busy_timeout: float, synchronous: str, readers: int) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._synchronous = synchronous
        self._most = readers
        self._start()
        try:
            with self.translated():
                self._switch_to_wal(self._writer)
                prepare(self._writer, path, MIGRATIONS)
        except BaseException:
            self._writer.close()
            raise

    def _start(self) -> None:
        self._process = os.getpid()
        self._closed = False
        self._writing = threading.Lock()
        self._owner: int | None = None
        self._lending = threading.Semaphore(self._most)
        self._idle: list[sqlite3.Connection] = []
        self._guard = threading.Lock()
        with self.translated():
            self._writer = self.connect()

    def connect(self) -> sqlite3.Connection:
        """A new connection of its own, for the caller to close."""
        connection = sqlite3.connect(
            self.path, timeout=self._busy_timeout, isolation_level=None, check_same_thread=False
        )
        try:
            connection.execute(f"PRAGMA synchronous = {self._synchronous}")
            # What an item said is overwritten when it is erased, not only unlinked.
            connection.execute("PRAGMA secure_delete = ON")
        except BaseException:
            connection.close()
            raise
        return connection

    def _switch_to_wal(self, connection: sqlite3.Connection) -> None:
        # Two processes that open a new file at once meet here; the busy timeout does not cover this switch.
        deadline = time.monotonic() + self._busy_timeout
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as problem:
                if not _is_busy(problem) or time.monotonic() > deadline:
                    raise
                time.sleep(0.01)

    def _ready(self) -> None:
        if self._process != os.getpid():
            _left_behind.append((self._writer, self._idle))
            self._start()
        if self._closed:
            raise StoreError(f"the store `{self.path}` is closed (open it again)")

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection, None, None]:
        """The writing connection inside a transaction that began with `BEGIN IMMEDIATE`.

        A deferred BEGIN would read first and then fail to become a writer, whatever the timeout.
        """
        self._ready()
        if self._owner == threading.get_ident():
            raise StoreError("a write is open in this thread already (end it before the next one)")
        if not self._writing.acquire(timeout=self._busy_timeout):
            raise self._busy()
        try:
            self._owner = threading.get_ident()
            with self.translated():
                self._begin()
                try:
                    yield self._writer
                    self._writer.execute("COMMIT")
                except BaseException:
                    with suppress(sqlite3.Error):
                        self._writer.execute("ROLLBACK")
                    raise
        finally:
            self._owner = None
            self._writing.release()

    def _begin(self) -> None:
        # SQLite's own wait sleeps up to 100 ms between attempts, so that one busy process starves the others.
        deadline = time.monotonic() + self._busy_timeout
        pause = 0.0002
        self._writer.execute("PRAGMA busy_timeout = 0")
        while True:
            try:
                self._writer.execute("BEGIN IMMEDIATE")
                return
            except sqlite3.OperationalError as problem:
                if not _is_busy(problem) or time.monotonic() > deadline:
                    raise
            time.sleep(pause * random.uniform(0.5, 1.5))
            pause = min(pause * 1.5, 0.001)

    @contextmanager
    def alone(self) -> Generator[sqlite3.Connection, None, None]:
        """The writing connection outside a transaction, for what may not run in one."""
        self._ready()
        if not self._writing.acquire(timeout=self._busy_timeout):
            raise self._busy()
        try:
            with self.translated():
                self._writer.execute(f"PRAGMA busy_timeout = {int(self._busy_timeout * 1000)}")
                yield self._writer
        finally:
            self._writing.release()

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection, None, None]:
        """A reading connection; each statement on it sees what was committed before it."""
        self._ready()
        if not self._lending.acquire(timeout=self._busy_timeout):
            raise self._busy()
        lending = self._lending
        try:
            with self.translated():
                with self._guard:
                    connection = self._idle.pop() if self._idle else None
                if connection is None:
                    connection = self.connect()
                    connection.execute("PRAGMA query_only = ON")
                try:
                    yield connection
                except BaseException:
                    # Nobody knows what state it is in.
                    connection.close()
                    raise
                with self._guard:
                    if not self._closed:
                        self._idle.append(connection)
                        return
                connection.close()
        finally:
            lending.release()

    def _busy(self) -> StoreBusyError:
        return StoreBusyError(
            f"`{self.path}` is busy for {self._busy_timeout:g} s (keep writes short, or raise busy_timeout)",
            waited=self._busy_timeout,
        )

    @contextmanager
    def translated(self) -> Generator[None, None, None]:
        """Turns errors of the driver into ours."""
        try:
            yield
        except sqlite3.Error as problem:
            if _is_busy(problem):
                raise self._busy() from problem
            raise StoreError(
                f"`{self.path}` could not be read or written: {problem} (check the file and the disk)"
            ) from problem

    def close(self) -> None:
        """Close all connections; those that are lent close when they come back."""
        if self._process != os.getpid():
            return
        with self._guard:
            if self._closed:
                return
            self._closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
        with self._writing:
            self._writer.close()


def _is_busy(problem: sqlite3.Error) -> bool:
    code = getattr(problem, "sqlite_errorcode", None)
    return code is not None and code & 0xFF in _BUSY
