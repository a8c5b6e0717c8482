"""A turn's candidates: `sources` sources, a system message, and a new question each turn.

Candidates have a score and about 60 tokens, sources have a priority; together they are many times the
budget. From turn to turn a few candidates are new (`fresh`), as after another retrieval; all others are the
very same objects.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass

from vocabulary import tokens

TEXT = """
account balance card payment transfer fee refund charge statement dispute merchant deposit savings
interest rate limit review branch agent customer policy order invoice shipment warehouse region
quarter contract ticket from the of to and in is for with on at this that will was has been after
before when which under between monthly daily small large first last next new old applies covers
excludes requires allows ends begins changes remains month year
"""
WORDS = TEXT.split()


@dataclass(frozen=True)
class Candidate:
    """One candidate: `priority` 0 to 100 is its source's, `score` 0 to 1 its own."""

    ident: str
    source: str
    text: str
    score: float
    priority: int


@dataclass(frozen=True)
class Turn:
    """What a packer gets: the question, and what changed since the turn before (index and candidate)."""

    question: str
    changed: tuple[tuple[int, Candidate], ...]


def prose(rnd: random.Random, size: int) -> str:
    """Return about `size` tokens of text."""
    parts: list[str] = []
    total = 0
    while total < size:
        words = [rnd.choice(WORDS) for _ in range(rnd.randint(7, 14))]
        parts.append(" ".join(words).capitalize() + rnd.choice([". ", ".\n"]))
        total += tokens(parts[-1])
    return "".join(parts).strip()


def candidate(rnd: random.Random, serial: int, index: int, sources: int) -> Candidate:
    """Return candidate `serial` of the source that `index` belongs to."""
    source = index % sources
    text = prose(rnd, rnd.randint(20, 80))
    score = round(rnd.random(), 6)
    return Candidate(f"c{serial:07d}", f"source_{source:02d}", text, score, 30 + source % 50)


class Workload:
    """The same turns for the same seed."""

    def __init__(self, *, sources: int = 40, candidates: int = 1000, fresh: int = 10, seed: int = 5) -> None:
        self.sources = sources
        self.fresh = fresh
        self.rnd = random.Random(seed)
        self.system = prose(random.Random(1), 150)
        self.serial = candidates
        self.candidates = [candidate(self.rnd, i, i, sources) for i in range(candidates)]

    def turns(self, count: int) -> Iterator[Turn]:
        """Yield `count` turns; the first changes nothing."""
        for number in range(count):
            changed = []
            for index in self.rnd.sample(range(len(self.candidates)), self.fresh if number else 0):
                self.serial += 1
                changed.append((index, candidate(self.rnd, self.serial, index, self.sources)))
            yield Turn(prose(self.rnd, 25), tuple(changed))
