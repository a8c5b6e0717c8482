"""The index of what untrusted documents brought in, and the check of a protected text against it.

Documents are numbers below 2**28. The untrusted side is cheap: of each view only the k-gram at every `stride`-th
offset is kept. The protected side looks up the k-gram at every offset: a shared window of n characters holds kept
grams of the document at known distances, so no shared run of n characters is missed. What the grams nominate is
verified on the text.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from operator import is_

import numpy as np

from rung.errors import InputError

from .check import Check, Earlier, Reading, contents, readings_of
from .hashing import MOST_DOCS
from .levels import KeyLevels
from .prints import Batch, batch, joined, sampling
from .runs import Run
from .views import DEFAULT_N

LEAST_N = 16
_BATCH_CHARACTERS = 1 << 20
_KEPT_TEXTS = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Held:
    """A text that an earlier protected item holds; what it shares with documents from number `since` on is
    no hit."""

    text: str
    since: int = 0


class FingerprintIndex:
    """Prints of untrusted documents. Safe to use from several threads.

    `n` is the length in normalised characters from which every shared run is found (at least 16). A protected
    text that is shorter is found where a document holds all of it, from `shortest` normalised characters on (28 for an
    n above 40).
    `first_party` are patterns of hosts and mail domains whose addresses are no hits (`*.acme.com`).
    """

    def __init__(self, n: int = DEFAULT_N, *, first_party: Sequence[str] = ()) -> None:
        if n < LEAST_N:
            raise InputError(f"a run of `{n}` characters is too short to mean anything (at least {LEAST_N})", field="n")
        self.n = n
        self.first_party = tuple(first_party)
        self._sampling = sampling(n)
        self._grams, self._shorts, self._literals = KeyLevels(), KeyLevels(), KeyLevels()
        self._lock = threading.Lock()
        self._encoded: set[int] = set()
        self._readings: OrderedDict[str, Reading] = OrderedDict()
        self._last_earlier: Earlier | None = None

    @property
    def shortest(self) -> int:
        """The normalised characters from which a protected text is found as a part of a document."""
        return self._sampling.shortest

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
            for levels in self._all():
                levels.remove(gone)
            self._encoded -= gone

    def nbytes(self) -> int:
        """Bytes that the index takes."""
        with self._lock:
            return sum(levels.nbytes() for levels in self._all())

    def settle(self) -> None:
        """Sort what was added lately, which the next check would otherwise do."""
        with self._lock:
            for levels in self._all():
                levels.levels()

    def _all(self) -> tuple[KeyLevels, KeyLevels, KeyLevels]:
        return self._grams, self._shorts, self._literals

    def _check(self, docs: Sequence[int]) -> None:
        for doc in docs:
            if not 0 <= doc < MOST_DOCS:
                raise InputError(f"document number `{doc}` is not in 0..{MOST_DOCS - 1}", field="docs")

    def _put(self, docs: Sequence[int], found: Batch) -> None:
        numbers = np.array(docs, dtype=np.uint64)
        with self._lock:
            kinds = (found.grams, found.shorts, found.literals)
            for levels, (hashes, owners) in zip(self._all(), kinds, strict=True):
                levels.add(hashes | numbers[owners])
            self._encoded.update(docs[index] for index in found.encoded)

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
        known = [h if isinstance(h, Held) else Held(text=h) for h in held]
        check = Check(self._read(text), self._earlier(known), self.n, self._sampling)
        with self._lock:
            indexed = [levels.levels() for levels in self._all()]
        found: list[Run] = []
        hits = 0
        for doc, theirs in contents(check.nominate(*indexed), get_text, accept, self._read_documents):
            runs = check.verify(doc, theirs)
            found += runs
            hits += bool(runs)
            if limit is not None and hits >= limit:
                break
        return found

    def _read_documents(self, docs: Sequence[int], texts: Sequence[str]) -> list[Reading]:
        encoded = {index for index, doc in enumerate(docs) if doc in self._encoded}
        return readings_of(texts, self.n, self.n, self.first_party, encoded=encoded)

    def _earlier(self, held: Sequence[Held]) -> Earlier:
        readings = [self._read(h.text) for h in held]
        since = [h.since for h in held]
        with self._lock:
            last = self._last_earlier
        # Mostly the same texts are held from one check to the next.
        if last and last.since == since and all(map(is_, last.readings, readings)):
            return last
        made = Earlier(readings, since)
        with self._lock:
            self._last_earlier = made
        return made

    def _read(self, text: str) -> Reading:
        """A protected text as it is compared; what is checked now is mostly held at the next check."""
        with self._lock:
            if text in self._readings:
                self._readings.move_to_end(text)
                return self._readings[text]
        made = readings_of((text,), self.n, self._sampling.shortest, self.first_party, rot13=True)[0]
        with self._lock:
            self._readings[text] = made
            while len(self._readings) > _KEPT_TEXTS:
                self._readings.popitem(last=False)
        return made


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
