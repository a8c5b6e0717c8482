"""What a knowledge base is given and gives back."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from rung.records.labels import Sensitivity

Embed = Callable[[Sequence[str]], Any]
"""Texts to an array of shape (texts, dimensions). Its `name`, where it has one, says which model it is, so
that vectors of two models are never compared; its `floor` is the cosine up to which texts are unrelated."""

Status = Literal["added", "changed", "unchanged"]
Mode = Literal["auto", "fused", "lexical", "semantic"]


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A passage that was found.

    Attributes:
        document, title, section, anchor: where it stands; `id` is stable across turns, rankings and edits elsewhere.
        place: which passage of its document it is, from 0.
        text: as it is shown; tokens: of it.
        version: of the document's content, labels and chunking; label: by its owner's name, or None.
        score: 0 to 1, see `KnowledgeBase.search`.
        lexical, semantic: what BM25 and the cosine gave, or None where that ranking did not find it.
        observed_at: the document's own time.
        valid_from, valid_to, tenant, access, sensitivity, metadata: as they were given.
    """

    document: str
    anchor: str
    title: str
    section: str
    text: str
    tokens: int
    place: int
    version: str
    label: str | None
    score: float
    lexical: float | None
    semantic: float | None
    observed_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None
    tenant: str | None
    access: frozenset[str]
    sensitivity: Sensitivity | None
    metadata: Mapping[str, Any]

    @property
    def id(self) -> str:
        """The passage's own id: `document#anchor`."""
        return f"{self.document}#{self.anchor}"

    @property
    def citation(self) -> str:
        """`[id: title § section]`."""
        return f"[{self.id}: {self.title}{f' § {self.section}' if self.section else ''}]"


Rerank = Callable[[str, Sequence[Hit]], Sequence[float]]
"""The question and the hits to a score from 0 to 1 for each hit, on a scale of the callable's own."""

Progress = Callable[[int, int, str], None]
"""Called with how many are done, how many there are, and the present one's name."""


class Added(msgspec.Struct, frozen=True, kw_only=True):
    """What `add` did. `chunks` is how many passages the document has."""

    document: str
    version: str
    status: Status
    chunks: int


class Synced(msgspec.Struct, frozen=True, kw_only=True):
    """What `sync` did: document ids; of `failed`, each with its reason; `skipped` are files of no known kind."""

    added: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    unchanged: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    failed: tuple[tuple[str, str], ...] = ()
    skipped: tuple[str, ...] = ()


class DocumentInfo(msgspec.Struct, frozen=True, kw_only=True):
    """A document without its text."""

    document: str
    title: str
    tenant: str | None
    version: str
    label: str | None
    chunks: int
    tokens: int
    observed_at: datetime
    valid_from: datetime | None
    valid_to: datetime | None


class KnowledgeStats(msgspec.Struct, frozen=True, kw_only=True):
    """How much there is. `embedded` counts the chunks that have a vector of `embedder`."""

    documents: int
    chunks: int
    tokens: int
    tenants: int
    embedded: int
    embedder: str | None
    bytes: int
