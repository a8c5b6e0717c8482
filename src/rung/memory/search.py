"""Which memories fit a message: by words and by meaning, on a scale that does not depend on the other hits."""

from __future__ import annotations

import sqlite3
import threading
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import log, sqrt
from typing import TYPE_CHECKING, Any, NamedTuple

from rung.knowledge.terms import STOP_WORDS, query_words, words
from rung.knowledge.values import Embed
from rung.records.item import ContextItem, body

if TYPE_CHECKING:
    from rung.knowledge.vectors import Matrix

_KEPT = 50_000
MOST_WORDS = 128
"""Of a longer message the first so many different words are looked up."""


class Fit(NamedTuple):
    """How well a memory fits: by words, by meaning (None without an embedding), and both."""

    lexical: float
    semantic: float | None
    score: float


class Stemmer:
    """English stems by SQLite's own Porter tokenizer, so that words match here as they do in a knowledge base."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect(":memory:", check_same_thread=False, isolation_level=None)
        # It ends with the stemmer; one that is only let go is complained of from Python 3.13 on.
        weakref.finalize(self, self._connection.close)
        self._connection.execute(
            "CREATE VIRTUAL TABLE line USING fts5 "
            "(x, content = '', tokenize = \"porter unicode61 remove_diacritics 0 categories 'L* N* M*'\")"
        )
        self._connection.execute("CREATE VIRTUAL TABLE stems USING fts5vocab (line, instance)")
        self._lock = threading.Lock()

    def __call__(self, found: Sequence[str]) -> list[str]:
        """The stems of words, in order."""
        with self._lock:
            self._connection.execute("INSERT INTO line (rowid, x) VALUES (1, ?)", (" ".join(found),))
            stems = [term for (term,) in self._connection.execute("SELECT term FROM stems ORDER BY offset")]
            self._connection.execute("INSERT INTO line (line) VALUES ('delete-all')")
        return stems


class Matcher:
    """Scores memories against messages; stems and vectors of what it has seen are kept. Safe for threads."""

    def __init__(self, embed: Embed | None = None) -> None:
        self._embed = embed
        self._stem = Stemmer()
        self._stems: OrderedDict[str, frozenset[str]] = OrderedDict()
        self._vectors: OrderedDict[str, Any] = OrderedDict()
        self._lock = threading.Lock()

    def fits(self, message: str, items: Sequence[ContextItem[Any]]) -> dict[str, Fit]:
        """How well each item fits a message, by item id."""
        return self.texts_fit(message, {item.id: body(item) for item in items})

    def texts_fit(self, message: str, texts: Mapping[str, str]) -> dict[str, Fit]:
        """How well each text fits a message, by the text's name. A name must always mean the same text."""
        lexical = self._lexical(message, texts)
        if self._embed is None:
            return {name: Fit(score, None, score) for name, score in lexical.items()}
        semantic = self._semantic(message, texts)
        return {
            name: Fit(score, semantic[name], 1.0 - (1.0 - score) * (1.0 - semantic[name]))
            for name, score in lexical.items()
        }

    def _lexical(self, message: str, texts: Mapping[str, str]) -> dict[str, float]:
        asked = dict.fromkeys(self._stem(list(query_words(message))[:MOST_WORDS]))
        held = {name: self._of(name, text) for name, text in texts.items()}
        counts: dict[str, int] = {}
        for stems in held.values():
            for stem in stems:
                counts[stem] = counts.get(stem, 0) + 1
        weights = {stem: log(1 + (len(held) - count + 0.5) / (count + 0.5)) for stem, count in counts.items()}
        unknown = log(1 + (len(held) + 0.5) / 0.5)
        wanted = sum(weights.get(stem, unknown) for stem in asked)
        return {name: _overlap(asked, stems, weights, wanted) for name, stems in held.items()}

    def _of(self, name: str, text: str) -> frozenset[str]:
        with self._lock:
            known = self._stems.get(name)
            if known is not None:
                self._stems.move_to_end(name)
                return known
        found = words(text)
        made = frozenset(self._stem([word for word in found if word not in STOP_WORDS] or found))
        with self._lock:
            self._stems[name] = made
            while len(self._stems) > _KEPT:
                self._stems.popitem(last=False)
        return made

    def _semantic(self, message: str, texts: Mapping[str, str]) -> dict[str, float]:
        from rung.knowledge.vectors import embedded

        assert self._embed is not None
        floor = float(getattr(self._embed, "floor", 0.0))
        asked: Matrix = embedded(self._embed, [message])[0]
        with self._lock:
            fresh = [name for name in texts if name not in self._vectors]
        made = embedded(self._embed, [texts[name] for name in fresh], len(asked)) if fresh else ()
        with self._lock:
            self._vectors.update(zip(fresh, made, strict=True))
            found = {name: float(self._vectors[name] @ asked) for name in texts}
            while len(self._vectors) > _KEPT:
                self._vectors.popitem(last=False)
        # Six digits are enough to rank by, and hide the last bits, in which machines differ.
        return {name: round(max(0.0, min(1.0, (cosine - floor) / (1.0 - floor))), 6) for name, cosine in found.items()}

    def forget(self, ids: Sequence[str]) -> None:
        """Drop what is kept of these items."""
        with self._lock:
            for item_id in ids:
                self._stems.pop(item_id, None)
                self._vectors.pop(item_id, None)


def _overlap(asked: Mapping[str, None], stems: frozenset[str], weights: Mapping[str, float], wanted: float) -> float:
    """The root of the greater share: of what is asked for that it holds, or of what it holds that is asked for.

    A short memory in a long message and a short question to a long memory both score; a rare word counts more.
    """
    shared = sum(weights[stem] for stem in asked if stem in stems)
    if shared <= 0:
        return 0.0
    own = sum(weights[stem] for stem in sorted(stems))
    return round(sqrt(min(1.0, max(shared / wanted, shared / own))), 6)
