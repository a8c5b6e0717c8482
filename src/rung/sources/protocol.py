"""`ContextSource`: what the compiler asks for items, and what it is asked with."""

from __future__ import annotations

from collections.abc import Awaitable, Iterable
from datetime import datetime
from typing import Any, Protocol, runtime_checkable

import msgspec

from rung.records.draft import Draft
from rung.records.item import ContextItem
from rung.records.labels import Sensitivity


class Scored(msgspec.Struct, frozen=True, kw_only=True):
    """An item that the store issued before, and how well it fits the turn: 0 to 1, higher is better."""

    item: ContextItem[Any]
    score: float


Fetched = Iterable[Draft | ContextItem[Any] | Scored]
"""Drafts, which the store takes in under the source's name, or items that the store issued before."""


class Fetch(msgspec.Struct, frozen=True, kw_only=True):
    """What a source is asked for.

    Attributes:
        query: the text of the request; a source searches with it and keeps nothing of it.
        now: the turn's moment, aware UTC.
        tenant, subject, session: whose turn it is. A source returns nothing of anybody else.
        clearance, scopes: what the turn may see.
        limit: the most candidates that are wanted, or None.
        tokens: the most tokens that the source may take of the turn, or None.
    """

    query: str
    now: datetime
    tenant: str | None = None
    subject: str | None = None
    session: str | None = None
    clearance: Sensitivity = Sensitivity.INTERNAL
    scopes: frozenset[str] = frozenset()
    limit: int | None = None
    tokens: int | None = None


class ContextSource(Protocol):
    """Produces candidates for one turn. `name` is its source name, one namespace with all others.

    A synchronous `fetch` is called in a thread. Whatever it raises is reported in the manifest; its policy
    says whether the turn goes on without it.
    """

    @property
    def name(self) -> str: ...

    def fetch(self, want: Fetch) -> Fetched | Awaitable[Fetched]:
        """Candidates for this turn, best first; `Draft.score` says how well each fits."""
        ...


@runtime_checkable
class RefreshingSource(Protocol):
    """A source that can renew one of its items.

    A stale item is renewed at most once in a turn, within the source's time limit; where that gives nothing,
    the item stays stale and is left out.
    """

    @property
    def name(self) -> str: ...

    def refresh(self, item: ContextItem[Any], want: Fetch) -> Draft | Awaitable[Draft | None] | None:
        """The item as it is now, or None where it no longer exists."""
        ...
