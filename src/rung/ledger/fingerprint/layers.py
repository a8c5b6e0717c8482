"""A text and what it may carry inside: each layer keeps, for each of its characters, the span in the
original text."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Spans = tuple[NDArray[np.int64], NDArray[np.int64]]

Edit = tuple[int, int, str]
"""Start, end and replacement, in the coordinates of the text that is edited."""


class Layer:
    """A text derived from an original one, with its way there (`path`) and the number of encodings undone
    (`depth`).

    The spans are computed when first asked for: most texts are never part of a hit.
    """

    __slots__ = ("_local", "_parent", "_spans", "depth", "path", "text")

    def __init__(
        self,
        text: str,
        path: tuple[str, ...] = (),
        depth: int = 0,
        parent: Layer | None = None,
        local: Callable[[], Spans] | None = None,
    ) -> None:
        self.text, self.path, self.depth = text, path, depth
        self._parent, self._local = parent, local
        self._spans: Spans | None = None

    def spans(self) -> Spans:
        """Start and end in the original text for each character."""
        if self._spans is None:
            self._spans = self._trace()
        return self._spans

    def _trace(self) -> Spans:
        import numpy as np

        if self._parent is None or self._local is None:
            indices = np.arange(len(self.text), dtype=np.int64)
            return indices, indices + 1
        starts, ends = self._local()
        above_starts, above_ends = self._parent.spans()
        return above_starts[starts], above_ends[ends - 1]

    def translated(self, table: Mapping[int, int], name: str) -> Layer:
        """The same text with characters replaced one for one, as an encoding of its own."""
        return Layer(
            self.text.translate(table),
            (*self.path, name),
            self.depth + 1,
            self,
            lambda: _edited_spans(len(self.text), ()),
        )

    def edited(self, edits: Sequence[Edit], name: str) -> Layer:
        """The same text with spans replaced; a replacement's characters all come from its whole span."""
        pieces: list[str] = []
        at = 0
        for start, end, replacement in edits:
            pieces.append(self.text[at:start])
            pieces.append(replacement)
            at = end
        pieces.append(self.text[at:])
        kept = tuple(edits)
        return Layer("".join(pieces), (*self.path, name), self.depth, self, lambda: _edited_spans(len(self.text), kept))


def _edited_spans(length: int, edits: Sequence[Edit]) -> Spans:
    import numpy as np

    starts: list[NDArray[np.int64]] = []
    ends: list[NDArray[np.int64]] = []
    at = 0
    for start, end, replacement in (*edits, (length, length, "")):
        kept = np.arange(at, start, dtype=np.int64)
        starts += (kept, np.full(len(replacement), start, dtype=np.int64))
        ends += (kept + 1, np.full(len(replacement), end, dtype=np.int64))
        at = end
    return np.concatenate(starts), np.concatenate(ends)
