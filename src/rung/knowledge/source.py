"""`KnowledgeSource`: a knowledge base as a source of passages for a turn."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rung.errors import InputError
from rung.knowledge.protocol import Knowledge
from rung.knowledge.values import Hit, Mode, Rerank
from rung.records.draft import Draft
from rung.records.types import Evidence
from rung.sources.protocol import Fetch


class KnowledgeSource:
    """Passages that fit the request, as Evidence with their document's id, version and time.

    A passage's key is `doc:` and its id, so it is the same item in each turn, whatever its rank. Tenant, scopes,
    clearance and moment are the turn's.

    Args:
        knowledge: a `KnowledgeBase`, or another with the same `search`.
        name: the source's name, as in the policy.
        limit: the most passages, where the turn names no limit.
        minimum, mode, rerank, metadata, version, overfetch: as for `KnowledgeBase.search`.
    """

    def __init__(
        self,
        knowledge: Knowledge,
        name: str = "knowledge",
        *,
        limit: int = 10,
        minimum: float | None = None,
        mode: Mode = "auto",
        rerank: Rerank | None = None,
        metadata: Mapping[str, Any] | None = None,
        version: str | None = None,
        overfetch: int = 10,
    ) -> None:
        if not name:
            raise InputError("a source needs a name", field="name")
        if limit < 1:
            raise InputError(f"`limit` is {limit} (give at least 1)", field="limit")
        self._knowledge = knowledge
        self._name = name
        self._limit = limit
        self._minimum = minimum
        self._mode: Mode = mode
        self._rerank = rerank
        self._metadata = metadata
        self._version = version
        self._overfetch = overfetch

    @property
    def name(self) -> str:
        return self._name

    def fetch(self, want: Fetch) -> list[Draft]:
        """The passages that fit `want.query`, best first."""
        hits = self._knowledge.search(
            want.query,
            tenant=want.tenant,
            scopes=want.scopes,
            clearance=want.clearance,
            limit=self._limit if want.limit is None else want.limit,
            minimum=self._minimum,
            mode=self._mode,
            metadata=self._metadata,
            version=self._version,
            now=want.now,
            rerank=self._rerank,
            overfetch=self._overfetch,
        )
        return [draft_of(hit) for hit in hits]


def draft_of(hit: Hit) -> Draft:
    """A passage as a draft; the store gives it the source's name and the turn's tenant."""
    attrs = {"id": hit.id, "document": hit.document, "title": hit.title, "place": f"{hit.place:06d}"}
    if hit.section:
        attrs["section"] = hit.section
    if hit.label is not None:
        attrs["label"] = hit.label
    return Draft(
        type=Evidence,
        content=hit.text,
        sensitivity=hit.sensitivity,
        scopes=hit.access,
        observed_at=hit.observed_at,
        expires_at=hit.valid_to,
        key=f"doc:{hit.id}",
        version=hit.version,
        attrs=attrs,
        score=hit.score,
    )
