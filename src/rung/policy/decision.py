"""Decisions as values: what happens, and each reason for it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rung.policy.rules import Mode


class Hit(msgspec.Struct, frozen=True, kw_only=True):
    """A run of a protected text that an untrusted item brought in first.

    Attributes:
        item_id, type, source: the untrusted item.
        span: start and end in the protected text, in characters.
        origin_span: start and end in the item's text.
        length: of the run, in normalised characters.
        kind: `whole`, `run`, `short` or `literal`.
        view: the decoding under which it was found, `plain` for none.
        ordinal: the store's order of writing.
    """

    item_id: str
    type: str
    source: str
    span: tuple[int, int]
    origin_span: tuple[int, int]
    length: int
    kind: Literal["whole", "run", "short", "literal"]
    view: str = "plain"
    ordinal: int = 0


class Reason(msgspec.Struct, frozen=True, kw_only=True):
    """Why something is refused, or would be: the rule, a stable code, and a message without content."""

    rule: str
    code: str
    message: str
    mode: Mode = "enforce"
    hits: tuple[Hit, ...] = ()
    fields: dict[str, Any] = {}


class Refusal(msgspec.Struct, frozen=True, kw_only=True):
    """A refused attempt, or one that would have been, as `store.refusals()` lists it.

    Attributes:
        at: ISO 8601, UTC.
        mode: `enforce` (it was refused), `warn` or `observe` (it passed).
        target, source: the type and source that were attempted.
        digest: SHA-256 of the attempted text, in hexadecimal: binds an endorsement to it.
    """

    number: int
    at: str
    rule: str
    code: str
    mode: Mode
    target: str
    source: str
    message: str
    digest: str
    hits: tuple[Hit, ...] = ()
