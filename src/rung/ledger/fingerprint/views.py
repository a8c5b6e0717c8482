"""The normalised views of a text: as written, with escapes undone, without markup, and decoded.

Two texts are compared by their views. Each view knows the way it was made (`base64>escapes`) and leads back
to the original text. Rot13 is undone on one side only, the protected one: what is rot13 on either side is
found there.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Iterator, Sequence
from itertools import chain
from typing import TYPE_CHECKING

from .carriers import carriers
from .encodings import ascii_text, decoded, is_full_width
from .escapes import contextual, may_differ
from .fold import ROT13, Variant, fold, fold_origins, readings
from .joint import Joint
from .layers import Layer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

DEFAULT_N = 44
"""Length in normalised characters from which every shared run is found."""

DEPTH = 2
"""How many encodings inside one another are undone."""

_RULES = 2
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
    def layer(self) -> Layer:
        """What the view is the fold of."""
        return self._layer

    @property
    def is_decoded(self) -> bool:
        """True if an encoding was undone to make this view."""
        return self._layer.depth > 0 or self.variant == "rot13"

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

    def stands(self, short: str, least: int) -> int | None:
        """Where a short text stands between word boundaries; one of fewer than `least` characters only as all of it."""
        at = self.text.find(short)
        if at < 0:
            return None
        if len(short) == len(self.text):
            # A few letters mean something only as they are written.
            return None if self.is_decoded and len(short) < least else 0
        edges = self.boundaries() if len(short) >= least else None
        while at >= 0 and edges is not None:
            if edges[at] and edges[at + len(short)]:
                return at
            at = self.text.find(short, at + 1)
        return None

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


def inner_layers(joint: Joint, n: int, encoded: Collection[int] | None = None) -> dict[int, list[Layer]]:
    """By index those texts that are more than they are written, with all layers to depth 2.

    `encoded` names the texts that carry encoded runs, where that is known already.
    """
    found = {index: list(contextual(Layer(joint.texts[index]))) for index in sorted(may_differ(joint))}
    # By text and place among its layers; a full-width letter is the one that is not ASCII and may be part of a run.
    if not found and encoded is None and not any(map(is_full_width, joint.beyond_ascii)):
        data, owners = joint.parts, None
    else:
        chosen = range(len(joint.texts)) if encoded is None else sorted(encoded)
        owners = [(index, place) for index in chosen for place in range(len(found.get(index, (None,))))]
        data = [
            ascii_text(found[index][place].text if index in found else joint.texts[index]) for index, place in owners
        ]
    for at in sorted(carriers(data, n)):
        index, place = owners[at] if owners else (at, 0)
        layers = found.setdefault(index, [Layer(joint.texts[index])])
        layers += _below(layers[place], n, {known.text for known in layers})
    return found


def _below(layer: Layer, n: int, seen: set[str]) -> Iterator[Layer]:
    frontier = [layer]
    while frontier:
        pieces = [piece for outer in frontier for piece in decoded(outer, n, DEPTH)]
        below: list[Layer] = []
        for inner in chain.from_iterable(map(contextual, pieces)):
            if inner.text not in seen:
                seen.add(inner.text)
                below.append(inner)
                yield inner
        frontier = below


def _read(layer: Layer, rot13: bool) -> Iterator[Normalised]:
    for variant in readings(layer.text):
        yield Normalised(layer, variant)
    if rot13 and layer.depth < DEPTH:
        yield Normalised(layer, "rot13")
        if not layer.text.isascii():
            # Look-alikes may have been put in before or after the letters were turned.
            turned = layer.translated(ROT13, "rot13")
            for variant in readings(turned.text):
                yield Normalised(turned, variant)


def views_of(
    texts: Sequence[str], n: int = DEFAULT_N, *, rot13: bool = False, encoded: Collection[int] | None = None
) -> list[list[Normalised]]:
    """The views of many texts: for each those that are not empty, each once; `encoded` as in `inner_layers`."""
    result: list[list[Normalised]] = []
    inner = inner_layers(Joint(texts), n, encoded)
    for index, text in enumerate(texts):
        found: dict[str, Normalised] = {}
        for layer in inner.get(index) or (Layer(text),):
            for view in _read(layer, rot13):
                # What is decoded counts only if it is long enough for a run.
                if view.text and (layer.depth == 0 or len(view.text) >= n):
                    found.setdefault(view.text, view)
        result.append(list(found.values()))
    return result


def views(text: str, n: int = DEFAULT_N, *, rot13: bool = False) -> list[Normalised]:
    """All views of a text that are not empty, each once; `rot13` adds those of the protected side."""
    return views_of((text,), n, rot13=rot13)[0]
