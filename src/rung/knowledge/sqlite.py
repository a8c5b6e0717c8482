"""A knowledge base in a SQLite file: FTS5 for words, one matrix for vectors."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from rung.errors import StoreError
from rung.knowledge.filters import Filters
from rung.knowledge.schema import connect, unavailable
from rung.knowledge.session import Rows, Scored, generation, raise_generation
from rung.knowledge.terms import BODY_WEIGHT, MAX_COUNT, MAX_WORDS, SECTION_WEIGHT, TITLE_WEIGHT, query_words
from rung.knowledge.vectors import VectorIndex, moved

if TYPE_CHECKING:
    from rung.knowledge.vectors import Matrix

_ACCESS = """NOT EXISTS (
    SELECT 1 FROM json_each(d.access) a WHERE a.value NOT IN (SELECT s.value FROM json_each(:scopes) s)
)"""
_METADATA = "EXISTS (SELECT 1 FROM json_each(d.metadata) m WHERE m.key = {key} AND m.value = {value})"


class SqliteDatabase:
    """One connection, used by one thread at a time. Writers of all processes come one after another; readers see
    one state throughout."""

    def __init__(self, path: str, busy_timeout: float) -> None:
        self.path = path
        self._busy_timeout = busy_timeout
        self._connection = connect(path, busy_timeout)
        # A base that is let go is closed too: what was written is whole already.
        weakref.finalize(self, self._connection.close)
        self._session = SqliteSession(self._connection)
        self._lock = threading.RLock()
        self._open = True

    @contextmanager
    def reading(self) -> Generator[SqliteSession, None, None]:
        """A read transaction."""
        with self._transaction("BEGIN") as session:
            yield session

    @contextmanager
    def writing(self) -> Generator[SqliteSession, None, None]:
        """A write transaction: all of it or nothing.

        Raises:
            StoreBusyError: another process held the file for longer than the bounded wait.
        """
        # IMMEDIATE: a transaction that reads first and then asks to write fails at once where another came between.
        with self._transaction("BEGIN IMMEDIATE") as session:
            yield session
            raise_generation(session)

    @contextmanager
    def _transaction(self, begin: str) -> Generator[SqliteSession, None, None]:
        with self._lock:
            if not self._open:
                raise StoreError("the knowledge base is closed (open it again)", path=self.path)
            try:
                self._connection.execute(begin)
                try:
                    yield self._session
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


class SqliteSession:
    """A transaction on the one connection."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection
        self._vectors: VectorIndex | None = None

    def execute(self, statement: str, values: Any = (), /) -> Rows:
        return self._connection.execute(statement, values)

    def executemany(self, statement: str, values: Sequence[tuple[Any, ...]], /) -> object:
        return self._connection.executemany(statement, values)

    def index_words(self, row: int, title: list[str], section: list[str], text: list[str]) -> None:
        self._connection.execute(
            "INSERT INTO terms (rowid, title, section, body) VALUES (?,?,?,?)",
            (row, " ".join(title), " ".join(section), " ".join(text)),
        )

    def drop_words(self, doc: int) -> None:
        self._connection.execute("DELETE FROM terms WHERE rowid IN (SELECT row FROM chunks WHERE doc = ?)", (doc,))

    def by_words(self, question: str, filters: Filters, limit: int) -> Scored:
        expression = self._expression(question)
        if expression is None:
            return []
        where, values = filters.where(_ACCESS, _METADATA)
        return self._connection.execute(
            f"SELECT c.row, -bm25(terms, {TITLE_WEIGHT}, {SECTION_WEIGHT}, {BODY_WEIGHT}) AS score "
            "FROM terms JOIN chunks c ON c.row = terms.rowid JOIN documents d ON d.row = c.doc "
            f"WHERE terms MATCH :expression AND {where} "
            "ORDER BY round(score, 9) DESC, d.document, c.row LIMIT :limit",
            {**values, "expression": expression, "limit": limit},
        ).fetchall()

    def _expression(self, question: str) -> str | None:
        """A question as a full-text expression: any of its words, each quoted; None if it has none.

        A word counts as often as it is asked for, up to three times. Of more than 64 words the rarest are kept, so
        that a long message costs no more than a long question.
        """
        counts = query_words(question)
        if len(counts) > MAX_WORDS:
            held: list[tuple[int, str]] = []
            for word in list(counts)[: MAX_WORDS * 8]:
                sought = "SELECT count(*) FROM terms WHERE terms MATCH ?"
                found = self._connection.execute(sought, (f'"{word}"',)).fetchone()[0]
                if found:
                    held.append((found, word))
            counts = {word: counts[word] for _, word in sorted(held)[:MAX_WORDS]}
        # A word holds letters, digits and marks only: inside quotes nothing of it is syntax.
        return " OR ".join(f'"{word}"' for word, count in counts.items() for _ in range(min(count, MAX_COUNT))) or None

    def by_meaning(
        self, asked: Matrix, filters: Filters, limit: int, floor: float, towards: Sequence[int], pull: float
    ) -> Scored:
        index = self._current_vectors()
        where, values = filters.where(_ACCESS, _METADATA)
        rows = self._connection.execute(
            f"SELECT c.row FROM chunks c JOIN documents d ON d.row = c.doc WHERE c.vector IS NOT NULL AND {where}",
            values,
        )
        centre = index.centre(towards) if pull > 0 and towards else None
        return index.nearest(moved(asked, centre, pull), [row for (row,) in rows], limit, floor)

    def _current_vectors(self) -> VectorIndex:
        """All vectors, read again when any process has written."""
        now = generation(self)
        if self._vectors is None or self._vectors.generation != now:
            rows = self._connection.execute("SELECT row, vector FROM chunks WHERE vector IS NOT NULL ORDER BY row")
            self._vectors = VectorIndex(now, rows.fetchall())
        return self._vectors

    def vector(self, stored: bytes) -> Any:
        return stored

    def size(self) -> int:
        pages, size = (self._connection.execute(f"PRAGMA {name}").fetchone()[0] for name in ("page_count", "page_size"))
        return int(pages * size)
