"""Many texts as one, so that a search for something rare is one pass."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import accumulate
from typing import TYPE_CHECKING

from .fold import beyond_ascii
from .looks import looks_of, replaced, tells

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_FEW = 12


class Joint:
    """Texts joined by line feeds, one before the first too; `parts` and `data` have a `?` for what is not ASCII."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = texts
        self.parts = [text.encode("ascii", "replace") for text in texts]
        self.data = b"\n".join((b"", *self.parts))
        self.ends = list(accumulate((len(text) + 1 for text in texts), initial=0))[1:]
        """Place in the joint text of the line feed after each text."""

    @cached_property
    def beyond_ascii(self) -> set[str]:
        """The distinct characters of all texts that are not ASCII."""
        return beyond_ascii("".join([text for text in self.texts if not text.isascii()]))

    @cached_property
    def _seen(self) -> dict[str, str]:
        """What those characters look like that look like ASCII ones, or like nothing."""
        return looks_of("".join(self.beyond_ascii))

    @cached_property
    def looks(self) -> bytes:
        """`data` with an ASCII character for each that looks like one and may tell where a literal is."""
        telling = {char: look for char, look in self._seen.items() if tells(char, look)}
        if not telling:
            return self.data

        def look(text: str) -> bytes:
            met = telling if len(telling) <= _FEW else {c: telling[c] for c in beyond_ascii(text) if c in telling}
            return replaced(text, met).encode("ascii", "replace")

        pairs = zip(self.texts, self.parts, strict=True)
        return b"\n".join((b"", *(part if text.isascii() else look(text) for text, part in pairs)))

    @property
    def few_looks(self) -> dict[str, str] | None:
        """What characters look like others, where they are so few that a search for each of them is fast."""
        return self._seen if len(self._seen) <= _FEW else None

    @cached_property
    def unseen(self) -> list[int]:
        """Indices of the texts with a character that is not seen."""
        gone = {char for char, look in self._seen.items() if not look}
        found = enumerate(self.texts) if gone else ()
        return [index for index, text in found if not text.isascii() and not gone.isdisjoint(beyond_ascii(text))]

    def owner(self, place: int) -> int:
        """Index of the text that a place in `data` belongs to; a line feed belongs to the text after it."""
        return bisect_right(self.ends, place)

    def holders(self, pattern: bytes, data: bytes | None = None) -> Iterator[int]:
        """Indices of the texts that hold a pattern (in their translated `data`), each once."""
        data = self.data if data is None else data
        at = data.find(pattern)
        while at >= 0:
            owner = self.owner(at)
            yield owner
            at = data.find(pattern, self.ends[owner])

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


def long_runs(marks: NDArray[np.bool_], least: int) -> list[tuple[int, int]]:
    """Starts and ends of the stretches of at least `least` (15 or more) marked places."""
    import numpy as np

    # Such a stretch fills this many words of eight bytes one after another.
    words = np.frombuffer(marks, dtype="<u8", count=len(marks) // 8) == 0x0101010101010101
    full = words
    for step in range(1, (least - 7) // 8):
        full = full[:-1] & words[step:]
    places = (np.flatnonzero(full) * 8).tolist()
    data = marks.tobytes() if places else b""
    found: list[tuple[int, int]] = []
    end = 0
    for at in places:
        if at < end:
            continue
        start = data.rfind(b"\0", end, at) + 1 or end
        end = data.find(b"\0", at)
        end = len(data) if end < 0 else end
        if end - start >= least:
            found.append((start, end))
    return found
