"""From a question to ranked passages: words, meaning, both, and a caller's own order."""

from __future__ import annotations

import msgspec

from rung.errors import SourceError
from rung.knowledge.filters import Filters
from rung.knowledge.meaning import Meaning
from rung.knowledge.search import FEEDBACK, Ranked, fuse, relative, trust_in_meaning
from rung.knowledge.session import Session
from rung.knowledge.values import Hit, Mode, Rerank

DEFAULT_MINIMUM = {"lexical": 0.7, "semantic": 0.7, "fused": 0.35, "reranked": 0.0}
"""Minimum scores, on the scale of each ranking."""


def ranked(
    session: Session,
    meaning: Meaning | None,
    question: str,
    filters: Filters,
    *,
    mode: Mode,
    pool: int,
    weights: tuple[float, float],
) -> tuple[str, list[Ranked]]:
    """Up to `pool` rows of each ranking that `mode` names and there are vectors for, best first, and on which scale.

    `weights` are of words and of meaning where both are fused.
    """
    if mode == "semantic" and meaning is not None:
        found = meaning.nearest(session, question, filters, pool) or []
        cosines = dict(found)
        return "semantic", [Ranked(row, share, None, cosines[row]) for row, share in relative(found)]
    by_words = session.by_words(question, filters, pool)
    if meaning is not None and mode != "lexical":
        trust = trust_in_meaning(question)
        by_meaning = meaning.nearest(
            session,
            question,
            filters,
            pool,
            towards=[row for row, _ in by_words[:FEEDBACK]],
            pull=1.0 - trust,
        )
        if by_meaning is not None:
            return "fused", fuse(by_words, by_meaning, (weights[0], weights[1] * trust))
    scores = dict(by_words)
    return "lexical", [Ranked(row, share, scores[row], None) for row, share in relative(by_words)]


def reranked(rerank: Rerank, query: str, hits: list[Hit]) -> list[Hit]:
    """Hits in the order of a caller's own scores.

    Raises:
        SourceError: it returned another number of scores, or one that is not from 0 to 1.
    """
    scores = [float(score) for score in rerank(query, tuple(hits))] if hits else []
    if len(scores) != len(hits) or not all(0.0 <= score <= 1.0 for score in scores):
        raise SourceError(
            f"the rerank hook returned {len(scores)} scores for {len(hits)} passages, or one that is not from 0 to 1",
            source="rerank",
        )
    order = sorted(range(len(hits)), key=lambda place: (-scores[place], place))
    return [msgspec.structs.replace(hits[place], score=scores[place]) for place in order]
