"""The manifest: what was included, excluded or truncated in a turn, and why. It holds no content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

SCHEMA_VERSION = 1

State = Literal["included", "truncated", "excluded", "stale", "failed", "not_fetched"]

REASONS: Mapping[str, str] = {
    "required": "it must be in",
    "selected": "chosen by priority and score",
    "history": "a recent exchange",
    "over_budget": "it does not fit what is left of the turn's budget",
    "source_cap": "it does not fit its source's cap",
    "component_cap": "it does not fit the cap of knowledge, or of memory",
    "truncated": "shortened by its source's rule",
    "below_score": "its score is below the source's minimum",
    "over_limit": "its source sent more candidates than its limit",
    "duplicate_of": "another item has the same content",
    "represented_by": "the item promoted from it is in",
    "superseded_by": "a later version or value of the same key is in",
    "conflict": "another item states the same key differently",
    "stale": "older than its freshness class allows",
    "expired": "its expiry has passed",
    "invalidated": "its source said that it no longer holds",
    "revoked": "it was revoked",
    "above_clearance": "more sensitive than the turn may see",
    "missing_scope": "it needs scopes that the turn lacks",
    "other_tenant": "it belongs to another tenant",
    "other_subject": "it belongs to another subject",
    "not_in_intent": "the intent does not use its source",
    "fetch_failed": "its source failed",
    "timeout": "its source did not answer in time",
    "history_window": "older than the part of the history that is sent",
    "summarised": "a summary stands in its place",
    "empty": "it has nothing to show",
    "represents_result": "its result is shown in the context block",
    "repaired": "changed so that the provider accepts the request",
    "reserved": "kept for the reply",
}
"""Stable reason codes; parameters stand beside them."""


class Entry(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """One item, or a stretch of history in one state, in one turn.

    Attributes:
        source, item, type, version, key: which item; `item` is the first of a stretch.
        observed_at: ISO 8601, or None.
        tokens: what it adds to the request; 0 where it is not in.
        size: what it would have added, where known.
        state, reason, params: what became of it and why; `params` are numbers, ids and names only.
        place: where it stands: `instructions`, `summary`, `history`, `context`, `request`.
        label: the short id that a reply can cite.
        count: how many items this row stands for.
        last: the last item of a stretch.
    """

    source: str
    item: str | None = None
    type: str | None = None
    version: str | None = None
    key: str | None = None
    observed_at: str | None = None
    tokens: int = 0
    size: int = 0
    state: State
    reason: str
    params: dict[str, Any] = {}
    place: str | None = None
    label: str | None = None
    count: int = 1
    last: str | None = None

    def own(self) -> Entry:
        """The same row, to give away: its parameters may be changed."""
        return msgspec.structs.replace(self, params={**self.params})


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """Tokens of the request by part; `total` is their sum and at most `available`."""

    instructions: int = 0
    summary: int = 0
    history: int = 0
    context: int = 0
    request: int = 0
    tools: int = 0
    response_schema: int = 0
    framing: int = 0
    total: int = 0
    budget: int = 0
    available: int = 0
    reserve_output: int = 0


class Counter(msgspec.Struct, frozen=True, kw_only=True):
    """Who counted: the tokenizer, whether it is exact for its encoding, and the framing's version."""

    tokenizer: str
    exact: bool
    framing: str


class Conflict(msgspec.Struct, frozen=True, kw_only=True):
    """One key stated differently: by whom, when, and how it was settled."""

    key: str
    items: tuple[str, ...]
    sources: tuple[str, ...]
    times: tuple[str, ...]
    settled: str


class Prefix(msgspec.Struct, frozen=True, kw_only=True):
    """How much of the request's beginning equals the previous turn's."""

    tokens: int
    share: float
    broken_by: str | None = None
    reason: str | None = None


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """Why a turn is as it is. Its JSON form is versioned; `json_schema()` describes it.

    `turn` identifies this compilation; `exchange` is the turn of the session that it belongs to, as the session's
    items name it, where they do.
    """

    schema: int = SCHEMA_VERSION
    turn: str
    at: str
    target: str
    intent: str | None = None
    tenant: str | None = None
    session: str | None = None
    exchange: str | None = None
    entries: tuple[Entry, ...] = ()
    totals: Totals
    counter: Counter
    conflicts: tuple[Conflict, ...] = ()
    notes: tuple[str, ...] = ()
    prefix: Prefix | None = None

    def json(self) -> str:
        """Canonical JSON: the same manifest, the same bytes."""
        return msgspec.json.encode(self, order="sorted").decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Manifest:
        """Read a manifest back.

        Raises:
            InputError: not a manifest of this schema version.
        """
        from rung.errors import InputError

        try:
            return msgspec.json.decode(text, type=cls)
        except (msgspec.ValidationError, msgspec.DecodeError) as problem:
            raise InputError(
                f"this is no manifest: {problem} (write it with Manifest.json())", field="manifest"
            ) from None

    def included(self) -> tuple[Entry, ...]:
        """The rows that are in the request, whole or truncated."""
        return tuple(entry for entry in self.entries if entry.state in ("included", "truncated"))

    def of(self, item_id: str) -> Entry | None:
        """The row of an item, or None."""
        return next((entry for entry in self.entries if entry.item == item_id), None)

    def table(self) -> str:
        """The manifest as lines of text, with totals; and one line a source where items were left out."""
        return "\n".join(_lines(self))


def json_schema() -> dict[str, Any]:
    """The JSON Schema of a manifest, so that other tools can read it."""
    return msgspec.json.schema(Manifest)


_HEAD = ("source", "item", "type", "label", "observed", "tokens", "state", "reason")


def _lines(manifest: Manifest) -> list[str]:
    rows = [_HEAD, *(_row(entry) for entry in manifest.entries)]
    widths = [min(34, max(len(row[column]) for row in rows)) for column in range(len(_HEAD))]
    lines = [
        "  ".join(
            cell[:width].rjust(width) if column == 5 else cell[:width].ljust(width)
            for column, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]
    totals = manifest.totals
    parts = [
        f"{name} {getattr(totals, name)}"
        for name in (
            "instructions",
            "summary",
            "history",
            "context",
            "request",
            "tools",
            "response_schema",
            "framing",
        )
        if getattr(totals, name)
    ]
    lines.append("")
    lines.append(f"total {totals.total} of {totals.available} tokens: {', '.join(parts)}")
    counter = manifest.counter
    lines.append(
        f"counted by {counter.tokenizer} ({'exact' if counter.exact else 'estimate'}), framing {counter.framing}"
    )
    lines += [
        f"conflict on {conflict.key}: {', '.join(conflict.sources)} ({conflict.settled})"
        for conflict in manifest.conflicts
    ]
    if manifest.prefix is not None:
        same = manifest.prefix
        broken = f", broken by {_short(same.broken_by or '-')} ({same.reason})" if same.reason else ""
        lines.append(f"prefix: {same.tokens} tokens equal to the previous turn's ({same.share:.0%}){broken}")
    lines += _left_out(manifest)
    lines += [f"note: {note}" for note in manifest.notes]
    return lines


def _row(entry: Entry) -> tuple[str, ...]:
    params = " ".join(f"{name}={_short(value)}" for name, value in entry.params.items())
    if entry.version and not hash_like(entry.version):
        params = f"{params} version={entry.version}".strip()
    item = _short(entry.item or "-") if entry.count == 1 else f"{_short(entry.item or '-')}..+{entry.count - 1}"
    return (
        entry.source,
        item,
        entry.type or "-",
        entry.label or "-",
        (entry.observed_at or "-")[:19],
        str(entry.tokens),
        entry.state,
        f"{entry.reason} {params}".strip(),
    )


def hash_like(version: str) -> bool:
    """Whether a version is a hash, which tells a reader nothing."""
    return len(version) >= 12 and all(char in "0123456789abcdef" for char in version)


def _short(value: object) -> str:
    if isinstance(value, float):
        return f"{value:.4g}"
    text = str(value)
    return text[:8] if len(text) == 32 and all(char in "0123456789abcdef" for char in text) else text


def _left_out(manifest: Manifest) -> list[str]:
    by_source: dict[str, list[Entry]] = {}
    for entry in manifest.entries:
        by_source.setdefault(entry.source, []).append(entry)
    lines: list[str] = []
    for source, entries in by_source.items():
        out = [entry for entry in entries if entry.state not in ("included", "truncated")]
        if not out:
            continue
        reasons: dict[str, int] = {}
        for entry in out:
            reasons[entry.reason] = reasons.get(entry.reason, 0) + entry.count
        told = ", ".join(f"{count} {reason}" for reason, count in sorted(reasons.items()))
        used = sum(entry.tokens for entry in entries)
        seen = sum(entry.count for entry in entries)
        setting = _setting(source, reasons)
        lines.append(f"{source}: {seen - sum(reasons.values())} of {seen} in, {used} tokens; left out: {told}{setting}")
    return lines


def _setting(source: str, reasons: Mapping[str, int]) -> str:
    if "source_cap" in reasons:
        return f" (raise sources.{source}.max_tokens)"
    if "component_cap" in reasons:
        return " (raise budget.knowledge or budget.memory)"
    if "over_budget" in reasons:
        return " (raise the budget or the source's priority)"
    if "over_limit" in reasons:
        return f" (raise sources.{source}.limit)"
    if "below_score" in reasons:
        return f" (lower sources.{source}.min_score)"
    return ""
