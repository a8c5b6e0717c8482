"""Many texts as one, so that a search for something rare is one pass."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate

from .fold import beyond_ascii


class Joint:
    """Texts joined by line feeds, one before the first too; `parts` and `data` have a `?` for what is not ASCII."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.parts = [text.encode("ascii", "replace") for text in texts]
        self.data = b"\n".join((b"", *self.parts))
        # Place in the joint text of the line feed after each text.
        self._ends = list(accumulate((len(text) + 1 for text in texts), initial=0))[1:]

    @cached_property
    def beyond_ascii(self) -> set[str]:
        """The distinct characters of all texts that are not ASCII."""
        return beyond_ascii("".join([text for text in self.texts if not text.isascii()]))

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


def long_runs(marks: bytes, least: int) -> list[tuple[int, int]]:
    """Starts and ends of the stretches of at least `least` (15 or more) ones among zeros and ones."""
    import numpy as np

    # Such a stretch fills this many words of eight bytes one after another.
    words = np.frombuffer(marks, dtype="<u8", count=len(marks) // 8) == 0x0101010101010101
    full = words
    for step in range(1, (least - 7) // 8):
        full = full[:-1] & words[step:]
    found: list[tuple[int, int]] = []
    end = 0
    for at in (np.flatnonzero(full) * 8).tolist():
        if at < end:
            continue
        start = marks.rfind(b"\0", end, at) + 1 or end
        end = marks.find(b"\0", at)
        end = len(marks) if end < 0 else end
        if end - start >= least:
            found.append((start, end))
    return found
