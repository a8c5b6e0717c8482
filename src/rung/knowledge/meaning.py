"""The semantic half of a knowledge base: which model its vectors are of, making them, and the nearest ones."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

import msgspec

from rung.errors import ConfigError
from rung.knowledge.database import Database, fact, generation, set_fact
from rung.knowledge.filters import Filters
from rung.knowledge.search import allowed_chunks
from rung.knowledge.values import Embed
from rung.knowledge.vectors import VectorIndex, embedded, embedder_name
from rung.knowledge.writing import Prepared, embedding_text

_PAGE = 512


class Meaning:
    """Vectors of one model. The matrix is read again when any process has written."""

    def __init__(self, database: Database, embed: Embed) -> None:
        self._database = database
        self._embed = embed
        self._name = embedder_name(embed)
        self._floor = float(getattr(embed, "floor", 0.0))
        self._index: VectorIndex | None = None

    def check(self, connection: sqlite3.Connection) -> None:
        """Refuse to compare with vectors of another model.

        Raises:
            ConfigError: the stored vectors are another model's.
        """
        stored = fact(connection, "embedder")
        if stored is not None and stored != self._name:
            raise ConfigError(
                f"the stored vectors are of `{stored}`, not of `{self._name}` (open with it, or with reembed=True)",
                path="embed",
            )

    def with_vectors(self, prepared: Sequence[Prepared]) -> list[Prepared]:
        """The documents with a vector for each passage, computed in batches over all of them."""
        texts = [embedding_text(one.title, passage) for one in prepared for passage in one.chunks]
        rows = iter(embedded(self._embed, texts))
        return [
            msgspec.structs.replace(one, vectors=tuple(next(rows).tobytes() for _ in one.chunks)) for one in prepared
        ]

    def claim(self, connection: sqlite3.Connection, prepared: Sequence[Prepared]) -> None:
        """Note which model the vectors to be written are of, and that they are alike.

        Raises:
            ConfigError: another process has written vectors of another model since, or of another size.
        """
        self.check(connection)
        sizes = {len(vector) // 4 for one in prepared for vector in one.vectors or ()}
        if not sizes:
            return
        stored = fact(connection, "dimensions")
        if stored is not None:
            sizes.add(int(stored))
        if len(sizes) > 1:
            raise ConfigError(
                f"`{self._name}` gives vectors of another size than those that are stored (open with reembed=True)",
                path="embed",
            )
        set_fact(connection, "embedder", self._name)
        set_fact(connection, "dimensions", str(next(iter(sizes))))

    def nearest(
        self,
        connection: sqlite3.Connection,
        question: str,
        filters: Filters,
        limit: int,
        *,
        towards: Sequence[int] = (),
        pull: float = 0.0,
    ) -> list[tuple[int, float]] | None:
        """Chunks by cosine, best first; None if the base holds no vectors.

        With `pull`, the question's vector is moved towards the centre of the chunks `towards` (pseudo-relevance
        feedback, Rocchio 1971): 1 gives both the same part.
        """
        index = self._current(connection)
        if index.dimensions is None:
            return None
        asked = embedded(self._embed, [question], index.dimensions)[0]
        centre = index.centre(towards) if pull > 0 and towards else None
        if centre is not None:
            moved = asked + pull * centre
            asked = moved / max(float((moved @ moved) ** 0.5), 1e-9)
        return index.nearest(asked, allowed_chunks(connection, filters), limit, self._floor)

    def _current(self, connection: sqlite3.Connection) -> VectorIndex:
        now = generation(connection)
        if self._index is None or self._index.generation != now:
            self.check(connection)
            rows = connection.execute("SELECT row, vector FROM chunks WHERE vector IS NOT NULL ORDER BY row")
            self._index = VectorIndex(now, rows.fetchall())
        return self._index

    def reembed(self) -> None:
        """Compute every vector again, in one transaction."""
        with self._database.writing() as connection:
            connection.execute("UPDATE chunks SET vector = NULL")
            connection.execute("DELETE FROM meta WHERE key IN ('embedder', 'dimensions')")
            dimensions: int | None = None
            last = -1
            while rows := connection.execute(
                "SELECT c.row, d.title, c.section, c.text FROM chunks c JOIN documents d ON d.row = c.doc "
                "WHERE c.row > ? ORDER BY c.row LIMIT ?",
                (last, _PAGE),
            ).fetchall():
                texts = ["\n".join(part for part in row[1:] if part) for row in rows]
                vectors = embedded(self._embed, texts, dimensions)
                dimensions = int(vectors.shape[1])
                connection.executemany(
                    "UPDATE chunks SET vector = ? WHERE row = ?",
                    [(vector.tobytes(), row[0]) for vector, row in zip(vectors, rows, strict=True)],
                )
                last = rows[-1][0]
            if dimensions is not None:
                set_fact(connection, "embedder", self._name)
                set_fact(connection, "dimensions", str(dimensions))
