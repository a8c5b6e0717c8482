"""Ranking: BM25, cosine, and both fused."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from rung.knowledge.filters import read_metadata, tenant_of
from rung.knowledge.session import Session
from rung.knowledge.terms import query_words
from rung.knowledge.times import moment
from rung.knowledge.values import Hit
from rung.records.labels import Sensitivity

RRF_K = 20
"""Of reciprocal rank fusion (Cormack, Clarke and Büttcher, SIGIR 2009, with 60 for lists of a thousand)."""

FEEDBACK = 5
FOCUSED = 8


class Ranked(NamedTuple):
    """A chunk's row, its score from 0 to 1, and what each ranking gave."""

    row: int
    score: float
    lexical: float | None
    semantic: float | None


def relative(found: Sequence[tuple[int, float]]) -> list[tuple[int, float]]:
    """Scores as shares of the best one."""
    best = found[0][1] if found else 1.0
    return [(row, score / best) for row, score in found if score > 0] if best > 0 else []


def trust_in_meaning(question: str) -> float:
    """The part of the semantic ranking in a fused one, from 1 down.

    A short question is as well put by its meaning as by its words. In a long one the average of its meaning
    blurs, while each more word tells documents apart: beyond eight words its part falls as 8 / words.
    """
    return min(1.0, FOCUSED / max(1, len(query_words(question))))


def fuse(
    by_words: Sequence[tuple[int, float]], by_meaning: Sequence[tuple[int, float]], weights: tuple[float, float]
) -> list[Ranked]:
    """Reciprocal rank fusion, as a share of what the first of both rankings would get."""
    total: dict[int, float] = {}
    for found, weight in ((by_words, weights[0]), (by_meaning, weights[1])):
        for rank, (row, _) in enumerate(found, 1):
            total[row] = total.get(row, 0.0) + weight / (RRF_K + rank)
    most = sum(weights) / (RRF_K + 1)
    words, meaning = dict(by_words), dict(by_meaning)
    order = sorted(total, key=lambda row: (-round(total[row], 12), -words.get(row, 0.0), row))
    return [Ranked(row, min(1.0, total[row] / most), words.get(row), meaning.get(row)) for row in order]


_PAGE = 32
_COLUMNS = (
    "c.row, d.document, c.anchor, d.title, c.section, c.text, c.tokens, "
    "(SELECT count(*) FROM chunks b WHERE b.doc = c.doc AND b.row < c.row), d.version, d.label, d.observed_at, "
    "d.valid_from, d.valid_to, d.tenant, d.access, d.sensitivity, d.metadata"
)


def read_hits(session: Session, ranked: Sequence[Ranked], limit: int) -> list[Hit]:
    """The passages behind the first rows, in the same order. A text that its document repeats comes once."""
    seen: set[tuple[str, str | None, str]] = set()
    hits: list[Hit] = []
    for start in range(0, len(ranked), _PAGE):
        page = ranked[start : start + _PAGE]
        found = session.execute(
            f"SELECT {_COLUMNS} FROM chunks c JOIN documents d ON d.row = c.doc "
            f"WHERE c.row IN ({','.join('?' * len(page))})",
            [one.row for one in page],
        )
        rows = {row[0]: row for row in found}
        for one in page:
            hit = _hit(rows[one.row], one)
            same = (hit.document, hit.tenant, hit.text)
            if same not in seen:
                seen.add(same)
                hits.append(hit)
                if len(hits) == limit:
                    return hits
    return hits


def _hit(row: tuple[Any, ...], ranked: Ranked) -> Hit:
    (_, document, anchor, title, section, text, tokens, place, version, label, observed, *rest) = row
    start, end, tenant, access, sensitivity, metadata = rest
    return Hit(
        document=document,
        anchor=anchor,
        title=title,
        section=section,
        text=text,
        tokens=tokens,
        place=place,
        version=version,
        label=label,
        score=ranked.score,
        lexical=ranked.lexical,
        semantic=ranked.semantic,
        observed_at=moment(observed),
        valid_from=None if start is None else moment(start),
        valid_to=None if end is None else moment(end),
        tenant=tenant_of(tenant),
        access=frozenset(json.loads(access)),
        sensitivity=None if sensitivity is None else Sensitivity(sensitivity),
        metadata=read_metadata(metadata),
    )
