"""The semantic half of a knowledge base: which model its vectors are of, making them, and the nearest ones."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rung.errors import ConfigError
from rung.knowledge.filters import Filters
from rung.knowledge.session import Database, Scored, Session, fact, set_fact
from rung.knowledge.values import Embed
from rung.knowledge.vectors import embedded, embedder_name
from rung.knowledge.writing import Prepared, embedding_text

_PAGE = 512


class Meaning:
    """Vectors of one model."""

    def __init__(self, database: Database, embed: Embed) -> None:
        self._database = database
        self._embed = embed
        self._name = embedder_name(embed)
        self._floor = float(getattr(embed, "floor", 0.0))

    def check(self, session: Session) -> None:
        """Refuse to compare with vectors of another model.

        Raises:
            ConfigError: the stored vectors are another model's.
        """
        stored = fact(session, "embedder")
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

    def claim(self, session: Session, prepared: Sequence[Prepared]) -> None:
        """Note which model the vectors to be written are of, and that they are alike.

        Raises:
            ConfigError: another process has written vectors of another model since, or of another size.
        """
        self.check(session)
        sizes = {len(vector) // 4 for one in prepared for vector in one.vectors or ()}
        if not sizes:
            return
        stored = fact(session, "dimensions")
        if stored is not None:
            sizes.add(int(stored))
        if len(sizes) > 1:
            raise ConfigError(
                f"`{self._name}` gives vectors of another size than those that are stored (open with reembed=True)",
                path="embed",
            )
        set_fact(session, "embedder", self._name)
        set_fact(session, "dimensions", str(next(iter(sizes))))

    def nearest(
        self,
        session: Session,
        question: str,
        filters: Filters,
        limit: int,
        *,
        towards: Sequence[int] = (),
        pull: float = 0.0,
    ) -> Scored | None:
        """Chunks by cosine, best first; None if the base holds no vectors.

        With `pull`, the question's vector is moved towards the centre of the chunks `towards` (pseudo-relevance
        feedback, Rocchio 1971): 1 gives both the same part.
        """
        stored = fact(session, "dimensions")
        if stored is None:
            return None
        self.check(session)
        asked = embedded(self._embed, [question], int(stored))[0]
        return session.by_meaning(asked, filters, limit, self._floor, towards, pull)

    def reembed(self) -> None:
        """Compute every vector again, in one transaction."""
        with self._database.writing() as session:
            session.execute("UPDATE chunks SET vector = NULL")
            session.execute("DELETE FROM meta WHERE key IN ('embedder', 'dimensions')")
            dimensions: int | None = None
            last = -1
            while rows := session.execute(
                "SELECT c.row, d.title, c.section, c.text FROM chunks c JOIN documents d ON d.row = c.doc "
                "WHERE c.row > ? ORDER BY c.row LIMIT ?",
                (last, _PAGE),
            ).fetchall():
                texts = ["\n".join(part for part in row[1:] if part) for row in rows]
                vectors = embedded(self._embed, texts, dimensions)
                dimensions = int(vectors.shape[1])
                session.executemany(
                    "UPDATE chunks SET vector = ? WHERE row = ?",
                    [(session.vector(vector.tobytes()), row[0]) for vector, row in zip(vectors, rows, strict=True)],
                )
                last = rows[-1][0]
            if dimensions is not None:
                set_fact(session, "embedder", self._name)
                set_fact(session, "dimensions", str(dimensions))
