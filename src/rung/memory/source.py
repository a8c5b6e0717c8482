"""`MemorySource`: a person's memories as a source of a turn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rung.records.item import ContextItem, body
from rung.sources.protocol import Fetch, Scored
from rung.tokens import tokenizer_for

if TYPE_CHECKING:
    from rung.memory.store import MemoryStore

MOST_TOKENS = 1_000
"""What memories take of a turn where the source's policy names no cap."""

FRAME_TOKENS = 40
"""Allowed for each frame beside its text."""


class MemorySource:
    """The memories that fit the request, as the stored items themselves, with their scores.

    Standing requests come in every turn, before all others. A memory that was replaced comes along where the
    request fits it, so that the manifest says what stands in its place. A turn without a subject has no memories.
    """

    def __init__(self, memory: MemoryStore) -> None:
        self._memory = memory

    @property
    def name(self) -> str:
        return self._memory.name

    def fetch(self, want: Fetch) -> list[ContextItem[Any] | Scored]:
        """The memories that fit `want.query`, best first, of the turn's person alone."""
        if want.subject is None:
            return []
        memory = self._memory.scope(tenant=want.tenant, subject=want.subject)
        cap = MOST_TOKENS if want.tokens is None else want.tokens
        count = tokenizer_for("o200k_base").count
        out: list[ContextItem[Any] | Scored] = []
        for item in memory.standing():
            if item.type.name == "memory":
                out.append(Scored(item=item, score=1.0))
                cap -= count(body(item)) + FRAME_TOKENS
            else:
                out.append(item)
        replaced: list[Scored] = []
        for hit in memory.search(want.query, limit=want.limit):
            size = count(body(hit.item)) + FRAME_TOKENS
            if size > cap:
                continue
            cap -= size
            out.append(Scored(item=hit.item, score=hit.score))
            seen = (hit.item, *hit.replaced)
            if all(_readable(item, want) for item in seen):
                # Left out by the compiler as replaced, which holds only while what replaces them is in.
                replaced += (Scored(item=item, score=hit.score) for item in hit.replaced)
        return [*out, *replaced]


def _readable(item: ContextItem[Any], want: Fetch) -> bool:
    return (
        item.labels.readable_by(clearance=want.clearance, scopes=want.scopes, tenant=want.tenant, subject=want.subject)
        is None
    )
