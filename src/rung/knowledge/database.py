"""One connection, used by one thread at a time: read and write transactions, and the facts about the whole."""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Generator
from contextlib import contextmanager

from rung.errors import StoreError
from rung.knowledge.schema import connect, unavailable


class Database:
    """A knowledge base's file. Writers of all processes come one after another; readers see one state throughout."""

    def __init__(self, path: str, busy_timeout: float) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._connection = connect(path, busy_timeout)
        self._lock = threading.RLock()
        self._open = True

    @contextmanager
    def reading(self) -> Generator[sqlite3.Connection]:
        """A read transaction."""
        with self._transaction("BEGIN") as connection:
            yield connection

    @contextmanager
    def writing(self) -> Generator[sqlite3.Connection]:
        """A write transaction: all of it or nothing.

        Raises:
            StoreBusyError: another process held the file for longer than the bounded wait.
        """
        # IMMEDIATE: a transaction that reads first and then asks to write fails at once where another came between.
        with self._transaction("BEGIN IMMEDIATE") as connection:
            yield connection
            connection.execute("UPDATE meta SET value = value + 1 WHERE key = 'generation'")

    @contextmanager
    def _transaction(self, begin: str) -> Generator[sqlite3.Connection]:
        with self._lock:
            if not self._open:
                raise StoreError("the knowledge base is closed (open it again)", path=self.path)
            try:
                self._connection.execute(begin)
                try:
                    yield self._connection
                    self._connection.execute("COMMIT")
                except BaseException:
                    if self._connection.in_transaction:
                        self._connection.execute("ROLLBACK")
                    raise
            except sqlite3.OperationalError as error:
                raise unavailable(error, self.path, self._busy_timeout) from error
            except sqlite3.DatabaseError as error:
                raise StoreError(f"the knowledge base cannot be used ({error})", path=self.path) from error

    def close(self) -> None:
        with self._lock:
            self._open = False
            self._connection.close()


def fact(connection: sqlite3.Connection, key: str) -> str | None:
    """A fact about the whole base, or None."""
    row = connection.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def set_fact(connection: sqlite3.Connection, key: str, value: str) -> None:
    connection.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value)
    )


def generation(connection: sqlite3.Connection) -> int:
    """A number that every write transaction of any process raises."""
    return int(fact(connection, "generation") or 0)
