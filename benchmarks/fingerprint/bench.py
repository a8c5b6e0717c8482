"""Indexing against counting tokens, and the check of an instruction against a large store, in one run.

    python benchmarks/fingerprint/bench.py [--quick]

Text is random English: words by their frequency in Python's manual, with sentences, numbers, an address now
and then, and some characters beyond ASCII. All times are processor times of one thread. Tokens are counted by
tiktoken with the vocabulary o200k_base.
"""

from __future__ import annotations

import argparse
import re
import time
from collections import Counter
from collections.abc import Callable
from importlib.metadata import version
from pydoc_data.topics import topics

import numpy as np

from rung.ledger.fingerprint import FingerprintIndex
from rung.tokens.encodings import TiktokenTokenizer

BATCH = 1_000
SIZES = (200, 2_000, 20_000, 1_000_000)
STORES = (1_000, 10_000, 100_000)
ITEM_CHARACTERS = 2_000
INSTRUCTION_CHARACTERS = 4_000
SHORT_CHARACTERS = 40
"""About 33 letters and digits."""
WARM, CHECKS = 2, 20


def vocabulary() -> tuple[list[str], list[int]]:
    """English words and how often each occurs in Python's own manual."""
    counts = Counter(word for topic in topics.values() for word in re.findall(r"[a-z]+(?:['-][a-z]+)*", topic.lower()))
    return list(counts), list(counts.values())


class Prose:
    """Deterministic text with the word frequencies of natural language."""

    def __init__(self, seed: int) -> None:
        words, counts = vocabulary()
        self._words = np.array(words, dtype=object)
        self._rng = np.random.default_rng(seed)
        self._cumulative = np.cumsum(counts) / sum(counts)

    def text(self, characters: int) -> str:
        """Text of exactly this length."""
        pieces: list[str] = []
        size = 0
        while size < characters:
            count = int(self._rng.integers(6, 22))
            chosen = np.searchsorted(self._cumulative, self._rng.random(count))
            sentence = " ".join(self._words[np.minimum(chosen, len(self._words) - 1)])
            kind = self._rng.random()
            if kind < 0.02:
                sentence += f" at https://docs.handbook.dev/{int(self._rng.integers(10**6))}"
            elif kind < 0.08:
                sentence += f" ({int(self._rng.integers(10**5))} items, 2026-0{int(self._rng.integers(1, 9))}-14)"
            elif kind < 0.11:
                sentence += " — the café’s “own” rule"
            sentence = sentence[:1].upper() + sentence[1:] + (". " if kind < 0.9 else ".\n\n")
            pieces.append(sentence)
            size += len(sentence)
        return "".join(pieces)[:characters]


def seconds(*works: Callable[[], object], repeat: int = 4) -> list[float]:
    """Processor time of each work, the best of some runs that take turns: other load hits all alike."""
    best = [float("inf")] * len(works)
    for _ in range(repeat):
        for number, work in enumerate(works):
            start = time.process_time()
            work()
            best[number] = min(best[number], time.process_time() - start)
    return best


def indexing(prose: Prose, budget: int) -> None:
    """Throughput of indexing and of counting tokens, side by side, batches of 1,000 items."""
    tokenizer = TiktokenTokenizer("o200k_base")
    tokenizer.count("warm")
    print(f"{'characters':>10} {'items':>6} {'index MB/s':>11} {'tiktoken MB/s':>14} {'ratio':>6} {'bytes/char':>11}")
    for size in SIZES:
        batches = max(min(budget // (size * BATCH), 10), 1)
        count = BATCH * batches if size * BATCH <= budget else max(budget // size, 1)
        texts = [prose.text(size) for _ in range(count)]
        total = sum(len(text.encode()) for text in texts)
        made: list[FingerprintIndex] = []

        def index(texts: list[str] = texts, made: list[FingerprintIndex] = made) -> None:
            made[:] = [FingerprintIndex()]
            for start in range(0, len(texts), BATCH):
                part = texts[start : start + BATCH]
                made[0].add_many(range(start, start + len(part)), part)
            made[0].settle()

        def count_tokens(texts: list[str] = texts) -> None:
            for text in texts:
                tokenizer.count(text)

        ours, theirs = seconds(index, count_tokens)
        print(
            f"{size:>10,} {count:>6,} {total / ours / 1e6:>11.1f} {total / theirs / 1e6:>14.1f} "
            f"{theirs / ours:>6.2f} {made[0].nbytes() / (size * count):>11.2f}"
        )


def checking(prose: Prose, stores: tuple[int, ...]) -> None:
    """Time of one check as the store grows; each protected text is new, some quote a document.

    A short one is all cut out of a document, too short for a run of its own.
    """
    index = FingerprintIndex()
    texts: list[str] = []
    print(
        f"{'items':>8} {'characters':>10} {'clean ms':>9} {'worst ms':>9} "
        f"{'quoting ms':>11} {'worst ms':>9} {'bytes/char':>11}"
    )
    for size in stores:
        while len(texts) < size:
            fresh = [prose.text(ITEM_CHARACTERS) for _ in range(BATCH)]
            index.add_many(range(len(texts), len(texts) + BATCH), fresh)
            texts += fresh
        index.settle()
        for length in (INSTRUCTION_CHARACTERS, SHORT_CHARACTERS):
            figures: list[float] = []
            for quoting in (False, True):
                kind = "run" if length > SHORT_CHARACTERS else "short"
                times: list[float] = []
                for number in range(WARM + CHECKS):
                    text = prose.text(length)
                    if quoting:
                        taken = texts[number * 37][500 : 500 + min(length, 200)]
                        text = text[: length // 2] + taken + text[length // 2 :] if kind == "run" else taken
                    start = time.process_time()
                    hits = [run for run in index.find(text, texts.__getitem__) if run.kind == kind]
                    times.append((time.process_time() - start) * 1e3)
                    assert bool(hits) == quoting, hits
                times = times[WARM:]
                figures += (sorted(times)[len(times) // 2], max(times))
            print(
                f"{size:>8,} {length:>10,} {figures[0]:>9.1f} {figures[1]:>9.1f} {figures[2]:>11.1f} "
                f"{figures[3]:>9.1f} {index.nbytes() / (size * ITEM_CHARACTERS):>11.2f}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a tenth of the text, stores up to 10,000 items")
    quick = parser.parse_args().quick
    prose = Prose(7)
    print(f"tiktoken {version('tiktoken')}, numpy {version('numpy')}, n = {FingerprintIndex().n}\n")
    indexing(prose, 2_000_000 if quick else 20_000_000)
    print()
    checking(prose, STORES[:2] if quick else STORES)


if __name__ == "__main__":
    main()
