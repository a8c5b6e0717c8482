"""The normalised views of a text: as written, with escapes undone, without markup, and decoded.

Two texts are compared by their views. Each view knows the way it was made (`base64>escapes`) and leads back
to the original text. Rot13 is undone on one side only, the protected one: what is rot13 on either side is
found there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from typing import TYPE_CHECKING

from .escapes import contextual
from .fold import Variant, fold, fold_origins, reads_by_case
from .layers import Layer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_N = 40
"""Length in normalised characters from which every shared run is found."""

DEPTH = 2
"""How many encodings inside one another are undone."""

_RULES = 1
NORMALISATION_VERSION = _RULES * 1000 + int(unicodedata.unidata_version.split(".")[0])
"""Version of this pipeline with that of the interpreter's Unicode data; prints of another version are made
anew."""


class Normalised:
    """One view: `text` holds only canonical letters and digits; `path` names how it was made."""

    __slots__ = ("_layer", "_origins", "path", "text", "variant")

    def __init__(self, layer: Layer, variant: Variant, text: str | None = None) -> None:
        self._layer = layer
        self.variant: Variant = variant
        self.text = fold(layer.text, variant) if text is None else text
        name = ">".join(layer.path) or "plain"
        self.path = name if variant == "look" else f"{name}>{variant}"
        self._origins: NDArray[np.int64] | None = None

    @property
    def is_decoded(self) -> bool:
        """True if an encoding was undone to make this view."""
        return self._layer.depth > 0

    def origins(self) -> NDArray[np.int64]:
        """For each normalised character its index in the text of its layer."""
        if self._origins is None:
            self._origins = fold_origins(self._layer.text, self.variant)
        return self._origins

    def origin(self, index: int) -> int:
        """Index in the original text of the normalised character at `index`."""
        return int(self._layer.spans()[0][self.origins()[index]])

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Span in the original text of the normalised characters `start` up to `end` (not empty)."""
        starts, ends = self._layer.spans()
        origins = self.origins()
        return int(starts[origins[start]]), int(ends[origins[end - 1]])

    def boundaries(self) -> NDArray[np.bool_]:
        """For each place between normalised characters (and both ends) whether a word may begin or end
        there."""
        import numpy as np

        origins = self.origins()
        edges = np.ones(len(origins) + 1, dtype=bool)
        if len(origins) > 1:
            gap = np.diff(origins)
            points = np.frombuffer(self.text.encode("utf-32-le"), dtype="<u4")
            # Scripts written without spaces: a word may end after any character.
            unspaced = (points >= 0x2E80) | ((points >= 0x0E00) & (points < 0x1200))
            edges[1:-1] = (gap > 1) | ((gap > 0) & (unspaced[1:] | unspaced[:-1]))
        return edges


def normalise(text: str) -> Normalised:
    """The view of a text as it is written."""
    return Normalised(Layer(text), "look")


def layers(text: str, n: int = DEFAULT_N, *, encoded: bool = True) -> list[Layer]:
    """The text and all that it carries inside, to depth 2; `encoded=False` leaves base64 and hex alone."""
    found = list(contextual(Layer(text)))
    if not encoded:
        return found
    from .encodings import decoded

    seen = {layer.text for layer in found}
    frontier = found
    while frontier:
        below: list[Layer] = []
        for layer in frontier:
            for piece in decoded(layer, n, DEPTH):
                for inner in contextual(piece):
                    if inner.text not in seen:
                        seen.add(inner.text)
                        below.append(inner)
        found = found + below
        frontier = below
    return found


def _read(layer: Layer, rot13: bool) -> Iterator[Normalised]:
    yield Normalised(layer, "look")
    if reads_by_case(layer.text):
        yield Normalised(layer, "case")
    if rot13 and layer.depth < DEPTH:
        yield Normalised(layer, "rot13")


def views(text: str, n: int = DEFAULT_N, *, rot13: bool = False, encoded: bool = True) -> list[Normalised]:
    """All views of a text that are not empty, each once; `rot13` adds those of the protected side."""
    found: dict[str, Normalised] = {}
    for layer in layers(text, n, encoded=encoded):
        for view in _read(layer, rot13):
            if view.text:
                found.setdefault(view.text, view)
    return list(found.values())
