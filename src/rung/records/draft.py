"""`Draft`: what is offered to a store, before it is an item."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from rung.records.item import Part
from rung.records.labels import Sensitivity
from rung.records.types import ContextType


class Draft(msgspec.Struct, frozen=True, kw_only=True):
    """Content with its declared type and source. The store decides whether it becomes an item.

    Attributes:
        type: the declared type; never guessed from the content.
        content: a `str`, a labelled text, or a JSON value.
        source: who brings it; a ContextSource may leave it empty, its own name is used.
        sensitivity, scopes, subject, session, turn: labels; None: what the handle and the source's policy say.
            They may narrow what the handle has, never widen it.
        observed_at, expires_at, key, version, parts, call_id, attrs: as on an item.
        score: how well it fits the turn, on the source's scale; a fact about this use, not kept on the item.
    """

    type: type[ContextType]
    content: Any
    source: str = ""
    sensitivity: Sensitivity | None = None
    scopes: Iterable[str] = ()
    subject: str | None = None
    session: str | None = None
    turn: str | None = None
    observed_at: datetime | None = None
    expires_at: datetime | None = None
    key: str | None = None
    version: str | None = None
    parts: Iterable[Part] = ()
    call_id: str | None = None
    attrs: Mapping[str, str] | tuple[tuple[str, str], ...] | None = ()
    score: float | None = None


class ItemFields(TypedDict, total=False):
    """What `store.add` may be told of an item beside its type, content and source.

    key: what fact it states; two items of one key with different texts are a conflict.
    version: as the source counts.
    sensitivity, scopes, subject, session, turn: labels; they narrow what the handle has.
    observed_at: when the source saw it. Aware.
    expires_at: from when on it may not be asserted. Aware.
    parts: tool calls, media references, opaque provider blocks.
    call_id: the tool call that this output answers.
    attrs: descriptive text such as `title` and `section`.
    """

    key: str | None
    version: str | None
    sensitivity: Sensitivity | None
    scopes: Iterable[str]
    subject: str | None
    session: str | None
    turn: str | None
    observed_at: datetime | None
    expires_at: datetime | None
    parts: Iterable[Part]
    call_id: str | None
    attrs: Mapping[str, str] | None
