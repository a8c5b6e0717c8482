"""The index of what untrusted documents brought in, and the check of a protected text against it.

Documents are numbers below 2**28. The untrusted side is cheap: of each view only every (n - k + 1)-th
k-gram is kept. The protected side looks up the k-gram at every offset: a shared window of n characters
holds exactly one sampled gram of the document, so no shared run of n characters is missed. What the grams
nominate is verified on the text.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from rung.errors import InputError

from .fold import fold
from .hashing import MOST_DOCS, every_gram, of_literal, substrings
from .levels import KeyLevels, matches
from .literals import Literal, literals
from .prints import SHORTEST, Batch, batch, gram_length, joined
from .runs import MOST_RUNS, NEVER, Run, Windows, longest_novel, outermost, shared
from .views import DEFAULT_N, Normalised, views_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

LEAST_N = 16
_BATCH_CHARACTERS = 1 << 20
_KEPT_TEXTS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A text that an earlier protected item holds; what it shares with documents from number `since` on is
    no hit."""

    text: str
    since: int = 0


@dataclass(frozen=True, slots=True)
class _Read:
    """A text as it is compared: its views long enough for a run, all its views, its literals."""

    windows: tuple[Windows, ...]
    views: tuple[Normalised, ...]
    literals: tuple[Literal, ...]


class FingerprintIndex:
    """Prints of untrusted documents. Safe to use from several threads.

    `n` is the length in normalised characters from which every shared run is found (at least 16);
    `first_party` are patterns of hosts and mail domains whose addresses are no hits (`*.acme.com`).
    """

    def __init__(self, n: int = DEFAULT_N, *, first_party: Sequence[str] = ()) -> None:
        if n < LEAST_N:
            raise InputError(f"a run of `{n}` characters is too short to mean anything (at least {LEAST_N})", field="n")
        self.n = n
        self.first_party = tuple(first_party)
        self._k = gram_length(n)
        self._grams, self._shorts, self._literals = KeyLevels(), KeyLevels(), KeyLevels()
        self._lock = threading.Lock()
        self._reads: OrderedDict[str, _Read] = OrderedDict()

    # --- the untrusted side

    def add(self, doc: int, text: str) -> None:
        """Index one untrusted text under a document number that was never used before."""
        self.add_many((doc,), (text,))

    def add_many(self, docs: Sequence[int], texts: Sequence[str]) -> None:
        """Index many untrusted texts; much cheaper than one by one."""
        if len(docs) != len(texts):
            raise InputError(f"{len(docs)} documents for {len(texts)} texts", field="docs")
        self._check(docs)
        for part in _parts(texts):
            self._put(docs[part], batch(texts[part], self.n, self.first_party))

    def prints(self, text: str) -> bytes:
        """What `add_prints` needs to index the text again, without normalising it again; about half a byte
        a character."""
        return self.prints_many((text,))[0]

    def prints_many(self, texts: Sequence[str]) -> list[bytes]:
        """`prints` of many texts at once."""
        return [
            data
            for part in _parts(texts)
            for data in batch(texts[part], self.n, self.first_party).split(len(texts[part]))
        ]

    def add_prints(self, doc: int, prints: bytes) -> None:
        """Index a document by its prints, made with the same `n` and `NORMALISATION_VERSION`."""
        self.add_prints_many((doc,), (prints,))

    def add_prints_many(self, docs: Sequence[int], prints: Sequence[bytes]) -> None:
        """`add_prints` of many documents at once."""
        if len(docs) != len(prints):
            raise InputError(f"{len(docs)} documents for {len(prints)} prints", field="docs")
        self._check(docs)
        try:
            found = joined(prints)
        except ValueError as problem:
            raise InputError(f"{problem} (make them anew from the text)", field="prints") from problem
        self._put(docs, found)

    def remove(self, doc: int) -> None:
        """Forget a document. Its number may not be used again."""
        self.remove_many((doc,))

    def remove_many(self, docs: Iterable[int]) -> None:
        """Forget documents."""
        gone = set(docs)
        with self._lock:
            for levels in (self._grams, self._shorts, self._literals):
                levels.remove(gone)

    def nbytes(self) -> int:
        """Bytes that the index takes."""
        with self._lock:
            return self._grams.nbytes() + self._shorts.nbytes() + self._literals.nbytes()

    def settle(self) -> None:
        """Sort what was added lately, which the next check would otherwise do."""
        with self._lock:
            for levels in (self._grams, self._shorts, self._literals):
                levels.levels()

    def _check(self, docs: Sequence[int]) -> None:
        for doc in docs:
            if not 0 <= doc < MOST_DOCS:
                raise InputError(f"document number `{doc}` is not in 0..{MOST_DOCS - 1}", field="docs")

    def _put(self, docs: Sequence[int], found: Batch) -> None:
        numbers = np.array(docs, dtype=np.uint64)
        with self._lock:
            for levels, (hashes, owners) in (
                (self._grams, found.grams),
                (self._shorts, found.shorts),
                (self._literals, found.literals),
            ):
                levels.add(hashes | numbers[owners])

    # --- the protected side

    def find(
        self,
        text: str,
        get_text: Callable[[int], str | None],
        *,
        held: Iterable[str | Held] = (),
        accept: Callable[[int], bool] | None = None,
        limit: int | None = None,
    ) -> list[Run]:
        """What a protected text shares with the documents, in ascending order of their numbers.

        `get_text` gives a document's text (None: it is gone). `held` are the texts of earlier protected
        items: a run is a hit only where at least n/2 characters in a row lie outside every run that these
        hold. `accept` leaves documents out by number (another tenant's). `limit` stops after that many
        documents with hits.
        """
        reading = self._read(text, protected=True)
        earlier = [(self._read(h.text), h.since) if isinstance(h, Held) else (self._read(h), 0) for h in held]
        with self._lock:
            indexed = [levels.levels() for levels in (self._grams, self._shorts, self._literals)]
        candidates: dict[int, set[int]] = {}
        covers = [_cover(windows, earlier) for windows in reading.windows]
        for number, (windows, cover) in enumerate(zip(reading.windows, covers, strict=True)):
            for doc in self._gram_candidates(windows, cover, *indexed[0]):
                candidates.setdefault(doc, set()).add(number)
        for doc in (
            *self._short_candidates(reading.views, *indexed[1]),
            *_literal_candidates(reading, *indexed[2]),
        ):
            candidates.setdefault(doc, set())
        found: list[Run] = []
        hits = 0
        for doc, theirs in self._contents(sorted(candidates), get_text, accept):
            nominated = [(reading.windows[i], covers[i]) for i in sorted(candidates[doc])]
            runs = self._verify(doc, theirs, reading, nominated, earlier)
            found += runs
            hits += bool(runs)
            if limit is not None and hits >= limit:
                break
        return found

    def _contents(
        self, docs: Sequence[int], get_text: Callable[[int], str | None], accept: Callable[[int], bool] | None
    ) -> Iterator[tuple[int, _Read]]:
        """The texts of the documents, read some at a time: few, in case they are enough, then more."""
        at, size = 0, 8
        while at < len(docs):
            part = [doc for doc in docs[at : at + size] if accept is None or accept(doc)]
            known = [(doc, text) for doc in part if (text := get_text(doc)) is not None]
            yield from zip([doc for doc, _ in known], self._make([text for _, text in known]), strict=True)
            at, size = at + size, min(2 * size, 128)

    def _read(self, text: str, *, protected: bool = False) -> _Read:
        key = ("!" if protected else "=") + text
        with self._lock:
            if key in self._reads:
                self._reads.move_to_end(key)
                return self._reads[key]
        made = self._make((text,), protected=protected)[0]
        with self._lock:
            self._reads[key] = made
            while len(self._reads) > _KEPT_TEXTS:
                self._reads.popitem(last=False)
        return made

    def _make(self, texts: Sequence[str], *, protected: bool = False) -> list[_Read]:
        return [
            _Read(
                tuple(Windows(view, self.n) for view in found if len(view.text) >= self.n),
                tuple(found),
                tuple(literals(text, self.first_party)),
            )
            for text, found in zip(texts, views_of(texts, self.n, rot13=protected), strict=True)
        ]

    def _gram_candidates(
        self,
        windows: Windows,
        cover: NDArray[np.int64],
        levels: list[NDArray[np.uint64]],
        removed: frozenset[int],
    ) -> Iterator[int]:
        hashes = every_gram(windows.data, self._k)
        # From which document on every window around the gram is held: the latest `since` of its surroundings.
        reach = self.n - self._k
        padded = np.concatenate((np.zeros(reach, np.int64), cover, np.zeros(reach, np.int64)))
        around = _sliding_most(padded, self._k + 2 * reach)
        open_at = np.flatnonzero(around > 0)
        if not len(open_at):
            return
        distinct, which = np.unique(hashes[open_at], return_inverse=True)
        until = np.zeros(len(distinct), dtype=np.int64)
        np.maximum.at(until, which, around[open_at])
        index, docs = matches(levels, distinct)
        for doc in np.unique(docs[docs.astype(np.int64) < until[index.astype(np.int64)]]).tolist():
            if doc not in removed:
                yield doc

    def _short_candidates(
        self, found: Sequence[Normalised], levels: list[NDArray[np.uint64]], removed: frozenset[int]
    ) -> Iterator[int]:
        if not levels:
            return
        for view in found:
            starts, ends = self._short_places(view)
            if len(starts):
                hashes = np.unique(substrings(Windows(view, self.n).data, starts, ends))
                for doc in np.unique(matches(levels, hashes)[1]).tolist():
                    if doc not in removed:
                        yield doc

    def _short_places(self, view: Normalised) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where a whole short document may stand: between word boundaries, or the whole view."""
        edges = np.flatnonzero(view.boundaries())
        length = len(view.text)
        starts: list[NDArray[np.int64]] = []
        ends: list[NDArray[np.int64]] = []
        low = np.searchsorted(edges, edges + SHORTEST)
        high = np.searchsorted(edges, edges + self.n)
        counts = high - low
        if int(counts.sum()):
            steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
            starts.append(np.repeat(edges, counts))
            ends.append(edges[np.repeat(low, counts) + steps])
        if 0 < length < SHORTEST:
            starts.append(np.zeros(1, dtype=np.int64))
            ends.append(np.full(1, length, dtype=np.int64))
        empty = np.empty(0, dtype=np.int64)
        return np.concatenate((empty, *starts)), np.concatenate((empty, *ends))

    def _verify(
        self,
        doc: int,
        theirs: _Read,
        reading: _Read,
        nominated: Sequence[tuple[Windows, NDArray[np.int64]]],
        earlier: Sequence[tuple[_Read, int]],
    ) -> list[Run]:
        found = [
            run
            for windows, cover in nominated
            for other in theirs.windows
            for run in _long_runs(doc, windows, cover, other)
        ]
        held = [read for read, since in earlier if doc >= since]
        found += self._short_runs(doc, reading, theirs, held)
        found += _literal_runs(doc, reading, theirs, held)
        return outermost(found)

    def _short_runs(self, doc: int, reading: _Read, theirs: _Read, held: Sequence[_Read]) -> Iterator[Run]:
        for other in theirs.views:
            size = len(other.text)
            if (
                size >= self.n
                or other.is_decoded
                or any(other.text in view.text for read in held for view in read.views)
            ):
                continue
            for view in reading.views:
                at = view.text.find(other.text)
                edges = view.boundaries() if at >= 0 else None
                while at >= 0 and edges is not None:
                    whole = size == len(view.text)
                    if whole or (size >= SHORTEST and edges[at] and edges[at + size]):
                        yield Run(
                            doc=doc, kind="short", span=view.span(at, at + size), doc_span=other.span(0,
                            size), length=size, novel=size, view=view.path, doc_view=other.path,
                        )  # fmt: skip
                        break
                    at = view.text.find(other.text, at + 1)


def _parts(texts: Sequence[str]) -> Iterator[slice]:
    """Slices of about a million characters: one pass over a batch should stay in the processor's cache."""
    start, size = 0, 0
    for index, text in enumerate(texts):
        size += len(text)
        if size >= _BATCH_CHARACTERS:
            yield slice(start, index + 1)
            start, size = index + 1, 0
    if start < len(texts):
        yield slice(start, len(texts))


def _cover(windows: Windows, earlier: Sequence[tuple[_Read, int]]) -> NDArray[np.int64]:
    """For each character of the view the least document number from which on an earlier text holds it in a
    run."""
    cover = np.full(len(windows.view.text), NEVER, dtype=np.int64)
    for read, since in earlier:
        for other in read.windows:
            for start, end, _ in shared(windows, other):
                np.minimum(cover[start:end], since, out=cover[start:end])
    return cover


def _sliding_most(values: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Maximum of each window of `width` values."""
    size, reached = 1, values
    while size * 2 <= width:
        reached = np.maximum(reached[: len(reached) - size], reached[size:])
        size *= 2
    rest = width - size
    return np.maximum(reached[: len(reached) - rest], reached[rest:]) if rest else reached


def _long_runs(doc: int, windows: Windows, cover: NDArray[np.int64], other: Windows) -> Iterator[Run]:
    # Only windows with a character that was not yet held can be part of a hit.
    found = 0
    for start, end, place in shared(windows, other, _sliding_most(cover, windows.n) > doc):
        novel = longest_novel(cover[start:end], doc)
        if 2 * novel >= windows.n and found < MOST_RUNS:
            found += 1
            yield Run(
                doc=doc,
                kind="run",
                span=windows.view.span(start, end),
                doc_span=other.view.span(place, place + end - start),
                length=end - start,
                novel=novel,
                view=windows.view.path,
                doc_view=other.view.path,
            )


def _literal_candidates(reading: _Read, levels: list[NDArray[np.uint64]], removed: frozenset[int]) -> Iterator[int]:
    if levels and reading.literals:
        hashes = np.unique(np.array([of_literal(x.kind, x.value) for x in reading.literals], dtype=np.uint64))
        for doc in np.unique(matches(levels, hashes)[1]).tolist():
            if doc not in removed:
                yield doc


def _literal_runs(doc: int, reading: _Read, theirs: _Read, held: Sequence[_Read]) -> Iterator[Run]:
    known = {(x.kind, x.value) for read in held for x in read.literals}
    places = {(x.kind, x.value): x.span for x in reversed(theirs.literals)}
    for mine in reading.literals:
        place = places.get((mine.kind, mine.value))
        if place is not None and (mine.kind, mine.value) not in known:
            size = len(fold(mine.value))
            yield Run(
                doc=doc, kind="literal", span=mine.span, doc_span=place, length=size, novel=size,
                view=mine.kind, doc_view=mine.kind,
            )  # fmt: skip
