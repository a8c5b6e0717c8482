"""What the parts of a knowledge base ask of a database inside one transaction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from rung.knowledge.filters import Filters

if TYPE_CHECKING:
    from rung.knowledge.vectors import Matrix

Scored = list[tuple[int, float]]
"""Rows of chunks with what a ranking gave them, best first."""


class Rows(Protocol):
    """The result of a statement."""

    def fetchone(self) -> Any: ...

    def fetchall(self) -> list[Any]: ...

    def __iter__(self) -> Iterator[Any]: ...


class Session(Protocol):
    """A transaction. Statements are written with `?` and `:name`, in what SQLite and PostgreSQL share."""

    def execute(self, statement: str, values: Any = (), /) -> Rows: ...

    def executemany(self, statement: str, values: Sequence[tuple[Any, ...]], /) -> object: ...

    def index_words(self, row: int, title: list[str], section: list[str], text: list[str]) -> None:
        """Make a chunk findable by its words."""
        ...

    def drop_words(self, doc: int) -> None:
        """Before the chunks of a document are deleted: delete their words."""
        ...

    def by_words(self, question: str, filters: Filters, limit: int) -> Scored:
        """Chunks by BM25 (k1 1.2, b 0.75; a word of the title counts three times)."""
        ...

    def by_meaning(
        self, asked: Matrix, filters: Filters, limit: int, floor: float, towards: Sequence[int], pull: float
    ) -> Scored:
        """Chunks by cosine above `floor`. The question's vector is first moved by `pull` times the centre of the
        chunks `towards`."""
        ...

    def vector(self, stored: bytes) -> Any:
        """A float32 vector as this database takes it."""
        ...

    def size(self) -> int:
        """Bytes of everything."""
        ...


class Database(Protocol):
    """Where a knowledge base is kept."""

    @property
    def path(self) -> str: ...

    def reading(self) -> AbstractContextManager[Session]: ...

    def writing(self) -> AbstractContextManager[Session]: ...

    def close(self) -> None: ...


def fact(session: Session, key: str) -> str | None:
    """A fact about the whole base, or None."""
    row = session.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
    return None if row is None else row[0]


def set_fact(session: Session, key: str, value: str) -> None:
    session.execute(
        "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key) DO UPDATE SET value = excluded.value", (key, value)
    )


def generation(session: Session) -> int:
    """A number that every write transaction of any process raises."""
    return int(fact(session, "generation") or 0)


def raise_generation(session: Session) -> None:
    set_fact(session, "generation", str(generation(session) + 1))
