"""What a memory store is given and gives back."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from rung.records.item import ContextItem
from rung.transforms.validators import Failure

Category = Literal["preference", "fact", "interaction", "feedback", "standing"]

CATEGORIES: tuple[Category, ...] = ("preference", "fact", "interaction", "feedback", "standing")
"""What a memory can be. `standing` is a request that holds until it is forgotten."""

MemoryState = Literal["current", "superseded", "stale", "expired", "invalidated", "revoked"]


class MemoryRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A memory and what has become of it. Its text is `item.text`.

    Attributes:
        item: MEMORY, or the INSTRUCTION that an approved standing request became.
        category: one of `CATEGORIES`.
        state: `current`, or why it enters no turn.
        origin: who said it: the sources of what it was derived from.
        confidence: 0 to 1.
        supersedes: the id or name of what it replaces, or None.
        superseded_by: the id of what stands in its place, or None.
        expires_at: from when on it is stale or expired, or None.
        skewed: it was seen later than now, beyond the policy's tolerance.
    """

    item: ContextItem[Any]
    category: str
    state: MemoryState
    origin: str
    confidence: float
    supersedes: str | None = None
    superseded_by: str | None = None
    expires_at: datetime | None = None
    skewed: bool = False

    @property
    def id(self) -> str:
        return self.item.id


class MemoryHit(msgspec.Struct, frozen=True, kw_only=True):
    """A memory that fits a message.

    Attributes:
        item: the memory.
        score: 0 to 1, see `MemoryStore.search`.
        lexical, semantic: what words and meaning gave; `semantic` is None without an embedding.
        replaced: earlier memories that it stands for and that the message fits too.
    """

    item: ContextItem[Any]
    score: float
    lexical: float
    semantic: float | None = None
    replaced: tuple[ContextItem[Any], ...] = ()


class Forgotten(msgspec.Struct, frozen=True, kw_only=True):
    """What was forgotten.

    Attributes:
        ids: the memories, those that it had replaced included, and all that was derived from them.
        turns: recorded turns that were shown one of them; their replies may repeat it.
        erased: whether their texts are gone, or they were revoked only.
    """

    ids: tuple[str, ...]
    turns: tuple[str, ...] = ()
    erased: bool = True


class Remembered(msgspec.Struct, frozen=True, kw_only=True):
    """One thing to keep, as an `extract` names it.

    Attributes:
        items: what it is derived from: USER or EVIDENCE items.
        text: what is kept; None: the item's own text.
        category, key, confidence: as for `MemoryStore.remember`.
    """

    items: tuple[ContextItem[Any], ...]
    text: str | None = None
    category: Category = "fact"
    key: str | None = None
    confidence: float | None = None


class Proposal(msgspec.Struct, frozen=True, kw_only=True):
    """What a validator of memories looks at: the text, its category and key, and what it is derived from."""

    text: str
    category: str
    key: str | None
    items: tuple[ContextItem[Any], ...]


Validate = Callable[[Proposal], Failure | None]
"""Looks at what would be kept: a failure, or None."""

Extract = Callable[[Sequence[ContextItem[Any]]], Iterable[Remembered] | Awaitable[Iterable[Remembered]]]
"""From the items of a turn to what should be kept of it."""
