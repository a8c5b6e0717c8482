"""Vectors: checked once, stored as float32 of length one, compared by brute force."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rung.errors import SourceError
from rung.knowledge.values import Embed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix = NDArray[np.float32]

BATCH = 256


def embedder_name(embed: Embed) -> str:
    """Which model an embedding callable is, as far as it says so."""
    named = getattr(embed, "name", None)
    if isinstance(named, str) and named:
        return named
    kind = type(embed)
    where: Any = embed if hasattr(embed, "__qualname__") else kind
    return f"{where.__module__}.{where.__qualname__}"


def embedded(embed: Embed, texts: Sequence[str], dimensions: int | None = None) -> Matrix:
    """A row of length one for each text; a row of zeros for a text that says nothing to the model.

    Raises:
        SourceError: the callable returned another shape, or values that are not finite.
    """
    import numpy as np

    rows: list[Matrix] = []
    for start in range(0, len(texts), BATCH):
        batch = list(texts[start : start + BATCH])
        matrix = np.asarray(embed(batch), dtype=np.float32)
        if matrix.ndim != 2 or matrix.shape[0] != len(batch) or matrix.shape[1] == 0:
            raise _wrong(embed, f"the shape {matrix.shape} for {len(batch)} texts (give one row for each)")
        if dimensions is not None and matrix.shape[1] != dimensions:
            raise _wrong(embed, f"{matrix.shape[1]} dimensions, not the {dimensions} that are stored")
        if not np.isfinite(matrix).all():
            raise _wrong(embed, "values that are not finite")
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        rows.append(np.divide(matrix, norms, out=np.zeros_like(matrix), where=norms > 0))
    return np.concatenate(rows) if rows else np.zeros((0, dimensions or 0), dtype=np.float32)


def _wrong(embed: Embed, what: str) -> SourceError:
    name = embedder_name(embed)
    return SourceError(f"the embedding `{name}` returned {what}", source=name)


def moved(asked: Matrix, centre: Matrix | None, pull: float) -> Matrix:
    """The question's vector, moved by `pull` times the centre (Rocchio 1971), of length one again."""
    if centre is None:
        return asked
    vector: Matrix = (asked + pull * centre).astype(asked.dtype)
    length = float((vector @ vector) ** 0.5)
    return (vector / length).astype(asked.dtype) if length > 0 else asked


class VectorIndex:
    """All vectors of a knowledge base in one matrix, as of one generation."""

    __slots__ = ("_matrix", "_rows", "generation")

    def __init__(self, generation: int, rows: Sequence[tuple[int, bytes]]) -> None:
        import numpy as np

        self.generation = generation
        self._rows = np.array([row for row, _ in rows], dtype=np.int64)
        joined = b"".join(blob for _, blob in rows)
        self._matrix: Matrix = np.frombuffer(joined, dtype=np.float32).reshape(len(rows), -1 if rows else 0)

    @property
    def dimensions(self) -> int | None:
        return int(self._matrix.shape[1]) if len(self._rows) else None

    def centre(self, rows: Sequence[int]) -> Matrix | None:
        """The mean of the vectors of some chunks, or None where none of them has one."""
        import numpy as np

        places = np.flatnonzero(np.isin(self._rows, np.asarray(rows, dtype=np.int64)))
        return self._matrix[places].mean(axis=0) if len(places) else None

    def nearest(self, query: Matrix, allowed: Sequence[int], limit: int, floor: float) -> list[tuple[int, float]]:
        """The chunks among `allowed` with the greatest cosine above `floor`, best first; ties by row."""
        import numpy as np

        # Six digits are enough to rank by, and hide the last bits, in which machines differ.
        places = np.flatnonzero(np.isin(self._rows, np.asarray(allowed, dtype=np.int64)))
        cosines = np.round((self._matrix[places] @ query).astype(np.float64), 6)
        rows = self._rows[places]
        best = np.lexsort((rows, -cosines))[:limit]
        return [(int(rows[place]), float(cosines[place])) for place in best if cosines[place] > floor]
