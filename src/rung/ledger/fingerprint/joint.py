"""Many texts as one, so that a search for something rare is one pass."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from .fold import beyond_ascii

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Joint:
    """Texts joined by line feeds, one before the first too; `data` has a `?` for what is not ASCII."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.text = "\n".join(("", *texts))
        self.data = self.text.encode("ascii", "replace")
        # Place in the joint text of the line feed after each text.
        self._ends = list(accumulate((len(text) + 1 for text in texts), initial=0))[1:]

    @cached_property
    def beyond_ascii(self) -> set[str]:
        """The distinct characters of all texts that are not ASCII."""
        return beyond_ascii(self.text)

    def owner(self, place: int) -> int:
        """Index of the text that a place in `data` belongs to; a line feed belongs to the text after it."""
        return bisect_right(self._ends, place)

    def holders(self, pattern: bytes, data: bytes | None = None) -> Iterator[int]:
        """Indices of the texts that hold a pattern (in their translated `data`), each once."""
        data = self.data if data is None else data
        at = data.find(pattern)
        while at >= 0:
            owner = self.owner(at)
            yield owner
            at = data.find(pattern, self._ends[owner])

    def matchers(self, pattern: re.Pattern[bytes]) -> Iterator[int]:
        """Indices of the texts in which a regular expression matches."""
        for found in pattern.finditer(self.data):
            yield self.owner(found.start())

    def speakers(self, chars: re.Pattern[str]) -> Iterator[int]:
        """Indices of the texts with a non-ASCII character that matches; no pass at all if none of them has."""
        if any(map(chars.match, self.beyond_ascii)):
            for index, text in enumerate(self.texts):
                if not text.isascii() and any(map(chars.match, beyond_ascii(text))):
                    yield index


def long_runs(marks: bytes, least: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Starts and ends of the stretches of at least `least` ones among zeros and ones."""
    import numpy as np

    zeros = np.flatnonzero(np.frombuffer(marks, dtype=np.uint8) == 0)
    bounds = np.concatenate(([-1], zeros, [len(marks)]))
    long = np.flatnonzero(np.diff(bounds) > least)
    return bounds[long] + 1, bounds[long + 1]
