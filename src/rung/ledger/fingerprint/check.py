"""The check of one protected text: what nominates documents, and what is verified on their text."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from .fold import codes, fold
from .hashing import among, distinct, every_gram, substrings
from .levels import matches
from .literals import LEAST_FORM, Literal
from .prints import SHORTEST, Sampling
from .runs import MOST_RUNS, NEVER, Run, Windows, longest_novel, outermost, reaches, shared
from .said import Said, layers_of, literals_of
from .sightings import MANY, Sightings, changes
from .views import Normalised, views_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .layers import Layer
    from .levels import Level, Levels


class Reading:
    """A text as it is compared: its views, those of them long enough for a run, its literals.

    `passages` are the views below n that are long enough to be found as a whole in a longer text.
    """

    def __init__(self, text: str, views: Sequence[Normalised], n: int, least: int, first_party: Sequence[str]) -> None:
        self.text, self.views = text, views
        self.windows = tuple(Windows(view, n) for view in views if len(view.text) >= n)
        self.passages = tuple(view for view in views if least <= len(view.text) < n)
        self._first_party = first_party

    @cached_property
    def _layers(self) -> list[Layer]:
        return layers_of(self.text, self.views)

    @cached_property
    def literals(self) -> list[Literal]:
        """The typed literals of the text."""
        return literals_of(self._layers, self._first_party)

    @cached_property
    def said(self) -> Said:
        """Where the text says which literals."""
        return Said(self._layers, self.views, self.literals)


def readings_of(
    texts: Sequence[str],
    n: int,
    least: int,
    first_party: Sequence[str],
    *,
    rot13: bool = False,
    encoded: Collection[int] | None = None,
) -> list[Reading]:
    """Texts as they are compared, decoded where at least `least` characters come out; `rot13` for a protected one,
    `encoded` as in `views_of`."""
    found = views_of(texts, least, rot13=rot13, encoded=encoded)
    return [Reading(text, views, n, least, first_party) for text, views in zip(texts, found, strict=True)]


class Earlier:
    """What earlier protected texts hold, each from a document number on."""

    def __init__(self, readings: Sequence[Reading], since: Sequence[int]) -> None:
        self.readings, self.since = readings, since
        pairs = zip(readings, since, strict=True)
        self._windows: list[tuple[Windows, int]] = [(w, at) for reading, at in pairs for w in reading.windows]
        hashes = [held.distinct for held, _ in self._windows]
        joint = np.concatenate([np.empty(0, dtype=np.uint64), *hashes])
        order = np.argsort(joint, kind="stable")
        self._hashes = joint[order]
        self._owners = np.repeat(np.arange(len(hashes)), list(map(len, hashes)) or 0)[order]

    def cover(self, windows: Windows) -> NDArray[np.int64]:
        """For each character of a view the least document number from which on a run of it was held."""
        cover = np.full(len(windows.view.text), NEVER, dtype=np.int64)
        if not len(self._hashes):
            return cover
        low = np.searchsorted(self._hashes, windows.distinct, side="left")
        high = np.searchsorted(self._hashes, windows.distinct, side="right")
        hit = np.flatnonzero(high > low)
        # Of the many texts that are held few have a part in this one.
        places: list[int] = []
        for i in hit.tolist():
            places += range(int(low[i]), int(high[i]))
        owners: set[int] = set(self._owners[np.array(places, dtype=np.int64)].tolist())
        for owner in sorted(owners):
            held, since = self._windows[owner]
            for start, end, _ in shared(windows, held):
                np.minimum(cover[start:end], since, out=cover[start:end])
        return cover

    def holder(self, wanted: str) -> int:
        """The least document number from which on a text held these normalised characters."""
        held = (
            since
            for reading, since in zip(self.readings, self.since, strict=True)
            if any(wanted in view.text for view in reading.views)
        )
        return min(held, default=NEVER)

    def before(self, doc: int) -> list[Reading]:
        """The texts that were held when a document came."""
        return [reading for reading, since in zip(self.readings, self.since, strict=True) if doc >= since]


@dataclass(frozen=True, slots=True)
class _Nomination:
    """Where in which view of the protected text a document's grams occur; None: in too many places to tell."""

    view: int
    places: tuple[int, ...] | None


class Check:
    """One protected text against an index."""

    def __init__(self, reading: Reading, earlier: Earlier, n: int, sampling: Sampling) -> None:
        self._reading, self._earlier, self._n, self._sampling = reading, earlier, n, sampling
        self._covers = [earlier.cover(windows) for windows in reading.windows]
        self._nominated: dict[int, list[_Nomination]] = {}
        self._passages: dict[int, list[Normalised]] = {}
        self._short: set[int] = set()
        self._literal: set[int] = set()

    def nominate(self, grams: Levels, shorts: Levels, values: Levels) -> list[int]:
        """The documents to verify, in ascending order."""
        for number in range(len(self._covers)):
            self._by_grams(number, *grams)
        for view in self._reading.passages:
            for doc in self._by_passage(view, grams[0]):
                if doc not in grams[1]:
                    self._passages.setdefault(doc, []).append(view)
        self._by_parts(shorts[0], values[0])
        self._by_literals(values[0])
        self._short -= shorts[1]
        self._literal -= values[1]
        return sorted(self._nominated.keys() | self._passages.keys() | self._short | self._literal)

    def _by_grams(self, number: int, levels: list[Level], removed: frozenset[int]) -> None:
        windows, cover = self._reading.windows[number], self._covers[number]
        k, stride = self._sampling.k, self._sampling.stride
        # From which document on every window around a gram is held: the latest of its surroundings.
        reach = self._n - k
        padded = np.concatenate((np.zeros(reach, np.int64), cover, np.zeros(reach, np.int64)))
        around = sliding_most(padded, k + 2 * reach)
        places = np.flatnonzero(around > 0)
        if not len(places):
            return
        seen = Sightings.of(every_gram(windows.data, k), levels, places, around[places])
        # The grams of a run follow one another at the stride at which they were kept.
        first = seen.keys
        for step in range(1, self._sampling.least(self._n)):
            first = first[among(seen.keys, first + step * stride)]
        docs, found = seen.split(first)
        for start, end in pairwise([*changes(docs).tolist(), len(docs)]):
            doc = int(docs[start])
            if doc not in removed and doc not in seen.often:
                where = tuple(found[start:end].tolist()) if end - start <= MANY else None
                self._nominated.setdefault(doc, []).append(_Nomination(number, where))
        for doc in seen.often - removed:
            self._nominated.setdefault(doc, []).append(_Nomination(number, None))

    def _by_passage(self, view: Normalised, levels: list[Level]) -> set[int]:
        """The documents that may hold all of a view too short for a run, and brought it in first."""
        holder = self._earlier.holder(view.text)
        if not holder:
            return set()
        k, stride = self._sampling.k, self._sampling.stride
        hashes = every_gram(codes(view.text), k)
        until = np.full(len(hashes), holder, dtype=np.int64)
        seen = Sightings.of(hashes, levels, np.arange(len(hashes), dtype=np.int64), until)
        # Wherever the document's kept grams fall in the passage, all of those at one distance from its start do.
        first = seen.keys[seen.split(seen.keys)[1] < stride]
        for step in range(stride, len(hashes), stride):
            is_inside = seen.split(first)[1] + step < len(hashes)
            first = first[~is_inside | among(seen.keys, first + step)]
        return {*seen.split(first)[0].tolist(), *seen.often}

    def _by_parts(self, shorts: list[Level], values: list[Level]) -> None:
        """The documents of which a part of the text, between word boundaries, may be all or a literal."""
        if not shorts and not values:
            return
        views = self._reading.said.views if values else self._reading.views
        for number, view in enumerate(views):
            starts, ends = _short_places(view, self._n)
            if not len(starts):
                continue
            hashes = substrings(codes(view.text), starts, ends)
            if values:
                self._literal.update(np.unique(matches(values, distinct(hashes))[1]).tolist())
            sizes = ends - starts
            hashes = distinct(hashes[(sizes >= SHORTEST) | (sizes == len(view.text))])
            # The further views are for literals only.
            if shorts and len(hashes) and number < len(self._reading.views):
                self._short.update(np.unique(matches(shorts, hashes)[1]).tolist())

    def _by_literals(self, levels: list[Level]) -> None:
        wanted = self._reading.said.hashes() if levels else ()
        if wanted:
            hashes = np.array(sorted(wanted), dtype=np.uint64)
            self._literal.update(np.unique(matches(levels, hashes)[1]).tolist())

    def verify(self, doc: int, theirs: Reading) -> list[Run]:
        """The hits in a document, from its text."""
        nominations = self._nominated.get(doc, [])
        found = [run for nomination in nominations for run in self._long_runs(doc, nomination, theirs)]
        found += self._passage_runs(doc, theirs)
        if doc in self._short:
            found += self._short_runs(doc, theirs)
        if doc in self._literal:
            found += self._literal_runs(doc, theirs)
        return outermost(found)

    def _long_runs(self, doc: int, nomination: _Nomination, theirs: Reading) -> Iterator[Run]:
        windows, cover = self._reading.windows[nomination.view], self._covers[nomination.view]
        text = windows.view.text
        wanted: NDArray[np.bool_] | None = None
        count = 0
        for other in theirs.windows:
            if nomination.places is not None and not any(
                reaches(text, place, self._sampling.k, self._n, other.view.text) for place in nomination.places
            ):
                continue
            if wanted is None:
                # Only windows with a character that was not yet held can be part of a hit.
                wanted = sliding_most(cover, self._n) > doc
            for start, end, place in shared(windows, other, wanted):
                novel = longest_novel(cover[start:end], doc)
                if 2 * novel >= self._n and count < MOST_RUNS:
                    count += 1
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

    def _passage_runs(self, doc: int, theirs: Reading) -> Iterator[Run]:
        for view in self._passages.get(doc, ()):
            size = len(view.text)
            for other in theirs.views:
                at = other.text.find(view.text)
                if at >= 0:
                    yield Run(
                        doc=doc,
                        kind="short",
                        span=view.span(0, size),
                        doc_span=other.span(at, at + size),
                        length=size,
                        novel=size,
                        view=view.path,
                        doc_view=other.path,
                    )

    def _short_runs(self, doc: int, theirs: Reading) -> Iterator[Run]:
        for other in theirs.views:
            size = len(other.text)
            if size >= self._n or other.is_decoded:
                continue
            spots = [
                (view, at) for view in self._reading.views if (at := view.stands(other.text, SHORTEST)) is not None
            ]
            if not spots or any(other.text in view.text for r in self._earlier.before(doc) for view in r.views):
                continue
            for view, at in spots:
                yield Run(
                    doc=doc,
                    kind="short",
                    span=view.span(at, at + size),
                    doc_span=other.span(0, size),
                    length=size,
                    novel=size,
                    view=view.path,
                    doc_view=other.path,
                )

    def _literal_runs(self, doc: int, theirs: Reading) -> Iterator[Run]:
        before: list[Reading] | None = None
        for literal in theirs.literals:
            by = Said.place
            at = by(self._reading.said, literal)
            if at is None:
                # A text that only names the host excuses no address on it.
                by = Said.host
                at = by(self._reading.said, literal)
            if at is None:
                continue
            before = self._earlier.before(doc) if before is None else before
            if any(by(reading.said, literal) for reading in before):
                continue
            size = len(fold(literal.value))
            yield Run(
                doc=doc,
                kind="literal",
                span=at,
                doc_span=literal.span,
                length=size,
                novel=size,
                view=literal.kind,
                doc_view=literal.kind,
            )


def _short_places(view: Normalised, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where a literal or a whole short document may stand: between word boundaries, or the whole view."""
    edges = np.flatnonzero(view.boundaries())
    length = len(view.text)
    low, high = np.searchsorted(edges, edges + LEAST_FORM), np.searchsorted(edges, edges + n)
    counts = high - low
    steps = np.arange(int(counts.sum())) - np.repeat(np.cumsum(counts) - counts, counts)
    starts, ends = np.repeat(edges, counts), edges[np.repeat(low, counts) + steps]
    if 0 < length < LEAST_FORM:
        starts, ends = np.append(starts, 0), np.append(ends, length)
    return starts, ends


def sliding_most(values: NDArray[np.int64], width: int) -> NDArray[np.int64]:
    """Maximum of each window of `width` values."""
    size, reached = 1, values
    while size * 2 <= width:
        reached = np.maximum(reached[: len(reached) - size], reached[size:])
        size *= 2
    rest = width - size
    return np.maximum(reached[: len(reached) - rest], reached[rest:]) if rest else reached


def contents(
    docs: Sequence[int],
    get_text: Callable[[int], str | None],
    accept: Callable[[int], bool] | None,
    read: Callable[[Sequence[int], Sequence[str]], Sequence[Reading]],
) -> Iterator[tuple[int, Reading]]:
    """The texts of documents, read some at a time: few, in case they are enough, then more."""
    at, size = 0, 8
    while at < len(docs):
        part = [doc for doc in docs[at : at + size] if accept is None or accept(doc)]
        known = [(doc, text) for doc in part if (text := get_text(doc)) is not None]
        numbers, texts = [doc for doc, _ in known], [text for _, text in known]
        yield from zip(numbers, read(numbers, texts), strict=True)
        at, size = at + size, min(2 * size, 128)
