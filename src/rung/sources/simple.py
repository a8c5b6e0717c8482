"""Simple sources: fixed items, a callable, a memory file, a tool's result."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, cast

import msgspec

from rung.errors import ConfigError, InputError, kind
from rung.records.clock import aware_utc
from rung.records.draft import Draft
from rung.records.item import ContextItem
from rung.records.types import ContextType, Memory, ToolOutput
from rung.sources.protocol import Fetch, Fetched


class FixedSource(msgspec.Struct, frozen=True):
    """The same drafts or items in every turn."""

    name: str
    items: Sequence[Draft | ContextItem[Any]]

    def fetch(self, want: Fetch) -> Fetched:
        return self.items


class CallableSource(msgspec.Struct, frozen=True):
    """What a function returns, sync or async: drafts and items, or plain values taken as `type`.

    Attributes:
        name: the source's name.
        call: called with the `Fetch`.
        type: the declared type of plain values.
    """

    name: str
    call: Callable[[Fetch], Any]
    type: type[ContextType] = ToolOutput

    def fetch(self, want: Fetch) -> Fetched | Awaitable[Fetched]:
        found = self.call(want)
        if inspect.isawaitable(found):
            return self._later(found)
        return self._drafts(found)

    async def _later(self, found: Awaitable[Any]) -> Fetched:
        return self._drafts(await found)

    def _drafts(self, found: Any) -> Fetched:
        if found is None:
            return ()
        values: Iterable[Any] = cast("Iterable[Any]", found) if isinstance(found, list | tuple) else (found,)
        out: list[Draft | ContextItem[Any]] = []
        for value in values:
            if isinstance(value, Draft | ContextItem):
                out.append(cast("Draft | ContextItem[Any]", value))
            else:
                out.append(Draft(type=self.type, content=value, source=self.name))
        return out


class _MemoryLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    id: str | None = None
    text: str
    category: str = "fact"
    tenant: str | None = None
    subject: str | None = None
    session: str | None = None
    observed_at: datetime | None = None
    expires_at: datetime | None = None
    key: str | None = None
    version: str | None = None
    supersedes: str | None = None
    confidence: float | None = None
    score: float | None = None


class MemoryFile(msgspec.Struct, frozen=True):
    """Memories from a JSON-lines file: one object a line with `text` and, where known, the fields of an item.

    Lines of another tenant or subject are never returned; a line without a subject is everybody's.
    """

    name: str
    path: str | Path

    def fetch(self, want: Fetch) -> Fetched:
        drafts: list[Draft] = []
        for number, line in enumerate(read_lines(self.path), start=1):
            try:
                entry = msgspec.json.decode(line, type=_MemoryLine)
            except (msgspec.ValidationError, msgspec.DecodeError) as problem:
                raise ConfigError(
                    f"`{self.path}` line {number}: {problem} (correct that line)", path=str(self.path)
                ) from None
            if entry.tenant not in (None, want.tenant) or entry.subject not in (None, want.subject):
                continue
            drafts.append(_memory(self.name, entry, f"{self.path} line {number}"))
        return drafts


def _memory(name: str, entry: _MemoryLine, place: str) -> Draft:
    attrs = {"category": entry.category}
    for field in ("id", "supersedes"):
        value = getattr(entry, field)
        if value is not None:
            attrs[field] = value
    if entry.confidence is not None:
        attrs["confidence"] = f"{entry.confidence:g}"
    return Draft(
        type=Memory,
        content=entry.text,
        source=name,
        subject=entry.subject,
        observed_at=None if entry.observed_at is None else aware_utc(entry.observed_at, f"{place}: observed_at"),
        expires_at=None if entry.expires_at is None else aware_utc(entry.expires_at, f"{place}: expires_at"),
        key=entry.key,
        version=entry.version,
        attrs=attrs,
        score=entry.score,
    )


class ToolResultFile(msgspec.Struct, frozen=True):
    """One tool result from a JSON file.

    Where the file is an envelope with `observed_at`, `key`, `tool` or `source`, those are taken from it; the
    content is the whole file, so that its own envelope can be judged.
    """

    name: str
    path: str | Path

    def fetch(self, want: Fetch) -> Fetched:
        text = read_text(self.path)
        try:
            value = msgspec.json.decode(text)
        except msgspec.DecodeError:
            return [Draft(type=ToolOutput, content=text, source=self.name)]
        fields: Mapping[str, Any] = cast("Mapping[str, Any]", value) if isinstance(value, dict) else {}
        seen = fields.get("observed_at")
        try:
            observed = None if seen is None else aware_utc(datetime.fromisoformat(str(seen)), "observed_at")
        except ValueError:
            raise InputError(
                f"`{self.path}`: observed_at is of kind {kind(seen)}, no ISO 8601 time with a zone",
                field="observed_at",
            ) from None
        key = fields.get("key")
        return [
            Draft(
                type=ToolOutput,
                content=value,
                source=self.name,
                observed_at=observed,
                key=key if isinstance(key, str) else None,
            )
        ]


def read_text(path: str | Path) -> str:
    """A file's text in UTF-8.

    Raises:
        ConfigError: it is missing, unreadable, or not UTF-8.
    """
    try:
        return Path(path).read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise ConfigError(f"`{path}` does not exist (correct the path)", path=str(path)) from None
    except UnicodeDecodeError as problem:
        raise ConfigError(f"`{path}` is not UTF-8 at byte {problem.start} (convert it)", path=str(path)) from None
    except OSError as problem:
        raise ConfigError(f"`{path}` cannot be read: {problem.strerror} (check the path)", path=str(path)) from None


def read_lines(path: str | Path) -> list[str]:
    """A file's lines that are not empty.

    Raises:
        ConfigError: as `read_text`.
    """
    return [line for line in read_text(path).splitlines() if line.strip()]
