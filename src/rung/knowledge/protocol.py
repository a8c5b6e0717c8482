"""`Knowledge`: what a source of passages asks of a knowledge base, wherever it is kept."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, Protocol

from rung.knowledge.values import Hit, Mode, Rerank
from rung.records.labels import Sensitivity


class Knowledge(Protocol):
    """Finds passages. `KnowledgeBase.search` says what each argument means."""

    def search(
        self,
        query: str,
        *,
        tenant: str | None,
        scopes: Iterable[str] = (),
        clearance: Sensitivity = Sensitivity.INTERNAL,
        limit: int = 10,
        minimum: float | None = None,
        mode: Mode = "auto",
        metadata: Mapping[str, Any] | None = None,
        version: str | None = None,
        document: str | None = None,
        now: datetime | None = None,
        rerank: Rerank | None = None,
        overfetch: int = 10,
    ) -> list[Hit]: ...
