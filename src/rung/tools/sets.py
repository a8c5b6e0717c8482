"""Sets of tools, and what a third party says of its own: read, cleaned, and pinned by its digest."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from hashlib import sha256
from typing import Any, Protocol, cast

import msgspec

from rung.assembly.invisible import treat_invisible
from rung.errors import ConfigError
from rung.records.canonical import canonical_json
from rung.tools.declare import NAME, Tool
from rung.tools.principal import Principal

LONGEST_DESCRIPTION = 1_024
"""Characters of a description; OpenAI, API reference, function `description`."""

_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_TEXTS = frozenset({"description", "title"})


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """Something odd about a tool that a third party describes.

    Attributes:
        tool: its name.
        code: `invisible_removed`, `description_cut`, `renamed`, `changed`.
        count: how many characters, where that says something.
    """

    tool: str
    code: str
    count: int = 0


class ToolSource(Protocol):
    """Gives tools for one turn: a static set, or a server that is asked."""

    @property
    def name(self) -> str: ...

    def tools(self, principal: Principal) -> Sequence[Tool] | Awaitable[Sequence[Tool]]:
        """The tools that this principal may be offered; called once a turn."""
        ...


class ToolSet(msgspec.Struct, frozen=True):
    """Tools that belong together; its name qualifies them where two sets use one name.

    Attributes:
        name: letters, digits, `_` or `-`.
        members: the tools.
        tenants: who may use the set; None: each tenant.
        trusted: the deployment wrote the descriptions. If not, they are cleaned, cut and marked as foreign.
        pins: name of a tool to the digest of its description and schema (`digest`); a tool that differs stays out.
        pinned: its tools are offered in every turn.
    """

    name: str
    members: tuple[Tool, ...]
    tenants: frozenset[str] | None = None
    trusted: bool = True
    pins: Mapping[str, str] = {}
    pinned: bool = False

    def __post_init__(self) -> None:
        if not NAME.match(self.name):
            raise ConfigError(f"`{self.name[:80]}` cannot name a tool set (letters, digits, `_` or `-`)", path="tools")
        msgspec.structs.force_setattr(self, "members", tuple(self.members))

    def tools(self, principal: Principal) -> Sequence[Tool]:
        if self.tenants is not None and principal.tenant not in self.tenants:
            return ()
        return self.members


class Offered(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a set offers it: which set, what is odd about it, whether it stays out."""

    owner: str
    tool: Tool
    findings: tuple[Finding, ...] = ()
    changed: bool = False


def digest(tool: Tool) -> str:
    """SHA-256 over what a tool says of itself: name, description and schema. Pin it to notice a change."""
    return sha256(canonical_json([tool.name, tool.description, dict(tool.parameters)]).encode()).hexdigest()


def offered(owner: str, tools: Iterable[Tool], *, trusted: bool, pins: Mapping[str, str]) -> list[Offered]:
    """The tools of a set, those of a third party cleaned: no invisible characters, bounded descriptions."""
    out: list[Offered] = []
    for one in tools:
        findings: list[Finding] = []
        changed = one.name in pins and pins[one.name] != digest(one)
        if changed:
            findings.append(Finding(tool=one.name, code="changed"))
        cleaned = one if trusted and not one.foreign else _cleaned(one, findings)
        out.append(Offered(owner=owner, tool=cleaned, findings=tuple(findings), changed=changed))
    return out


def _cleaned(one: Tool, findings: list[Finding]) -> Tool:
    name = one.name
    if not NAME.match(name):
        name = re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "tool"
        findings.append(Finding(tool=one.name, code="renamed"))
    counts = [0, 0]
    description = _text(one.description, counts)
    parameters = _walk(dict(one.parameters), counts)
    for code, count in zip(("invisible_removed", "description_cut"), counts, strict=True):
        if count:
            findings.append(Finding(tool=one.name, code=code, count=count))
    return msgspec.structs.replace(one, name=name, description=description, parameters=parameters, foreign=True)


def _text(text: str, counts: list[int]) -> str:
    shown, hidden = treat_invisible(text, "strip")
    shown, controls = _CONTROL.subn("", shown)
    counts[0] += hidden + controls
    if len(shown) > LONGEST_DESCRIPTION:
        counts[1] += len(shown) - LONGEST_DESCRIPTION
        shown = shown[: LONGEST_DESCRIPTION - 1] + "…"
    return shown


def _walk(value: Any, counts: list[int], depth: int = 0) -> Any:
    if depth > 64:
        return {}
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {
            key: _text(inner, counts) if key in _TEXTS and isinstance(inner, str) else _walk(inner, counts, depth + 1)
            for key, inner in fields.items()
            # A schema is applied here: it may not make anybody fetch an address.
            if not (key in ("$ref", "$dynamicRef", "$schema", "$id") and not str(inner).startswith("#"))
        }
    if isinstance(value, list):
        entries: list[Any] = value  # pyright: ignore[reportUnknownVariableType]
        return [_walk(inner, counts, depth + 1) for inner in entries]
    return value
