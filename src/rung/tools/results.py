"""What of a tool's result enters the session: the fields wanted, canonical JSON, and never more than the caps."""

from __future__ import annotations

from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from rung.compiler.project import project
from rung.errors import InputError, RungError, ToolError, kind
from rung.records.canonical import canonical_json, plain
from rung.tools.declare import Tool, ToolResult
from rung.tools.gate import Verdict, refusal

LARGEST = 64 * 1024 * 1024
"""Bytes of a result above which it is not even projected: the tool should page."""

_HEAD_SHARE = 0.7


class Shown(msgspec.Struct, frozen=True, kw_only=True):
    """A result as it enters the session.

    Attributes:
        content: text, or a JSON value.
        attrs: facts about it; where something was left out, `bytes` and `sha256` of the whole.
        failed: it reports a failure, a refusal included.
        observed_at, key, version: as the tool said.
    """

    content: Any
    attrs: dict[str, str] = {}
    failed: bool = False
    observed_at: datetime | None = None
    key: str | None = None
    version: str | None = None


def shown(tool: Tool, value: Any) -> Shown:
    """A result within the tool's caps. A value without a JSON form becomes an error result of this call."""
    given = value if isinstance(value, ToolResult) else ToolResult(value=value)
    try:
        content, attrs = _within(tool, given.value)
    except (InputError, RecursionError) as problem:
        told = problem.message if isinstance(problem, InputError) else "it is nested too deeply"
        return failure("unserialisable_result", told)
    return Shown(content=content, attrs=attrs, observed_at=given.observed_at, key=given.key, version=given.version)


def failure(code: str, detail: str, **more: Any) -> Shown:
    """The result of a call that failed: a JSON object whose `error` says so to the model and to the validators."""
    return Shown(content={"error": code, "detail": detail, **more}, attrs={"failed": code}, failed=True)


def failed(tool: Tool, problem: BaseException) -> Shown:
    """The result of a call that raised. Only an error of rung's own speaks to the model; others give their kind."""
    if isinstance(problem, TimeoutError):
        return failure("timeout", f"no result within {tool.timeout:g} seconds")
    if isinstance(problem, ToolError):
        return failure(str(problem.fields.get("reason", "tool_failed")), problem.message)
    if isinstance(problem, RungError):
        return failure("tool_failed", problem.message)
    return failure("tool_failed", f"the tool raised {kind(problem)}")


def refused(verdict: Verdict) -> Shown:
    """The result of a call that was not made."""
    return Shown(content=refusal(verdict), attrs={"refused": verdict.reason}, failed=True)


def _within(tool: Tool, value: Any) -> tuple[Any, dict[str, str]]:
    if value is None:
        return "", {}
    dump = getattr(value, "model_dump", None)
    if dump is not None and callable(dump):  # a model of pydantic
        value = dump()
    if isinstance(value, str):
        return _text(value, tool.max_bytes)
    made = plain(value, "result")
    whole = canonical_json(made, "result")
    size = len(whole) if whole.isascii() else len(whole.encode())
    if size > LARGEST:
        raise InputError(f"it has {size} bytes, above the limit of {LARGEST} (page it)", field="result")
    small = size <= tool.max_bytes
    if small and not tool.fields and tool.max_rows is None:
        return made, {}
    attrs = {"bytes": str(size), "sha256": sha256(whole.encode()).hexdigest()}
    try:
        cut = project(made, tool.fields, max_rows=tool.max_rows, max_bytes=None if small else tool.max_bytes)
    except InputError:
        # Nothing of its structure fits: its text does.
        text, _ = _text(whole, tool.max_bytes)
        return text, attrs
    return cut, ({} if cut == made else attrs)


def _text(text: str, most: int) -> tuple[str, dict[str, str]]:
    """The head and the tail of a text that is too long, and between them how much is left out."""
    if len(text) * 4 <= most:
        return text, {}
    data = text.encode("utf-8", "replace")
    if len(data) <= most:
        return text, {}
    attrs = {"bytes": str(len(data)), "sha256": sha256(data).hexdigest()}
    room = most - 80
    head = data[: int(room * _HEAD_SHARE)].decode("utf-8", "ignore")
    tail = data[len(data) - (room - int(room * _HEAD_SHARE)) :].decode("utf-8", "ignore")
    # A line is kept whole where one ends near the cut.
    line = head.rfind("\n")
    if line > len(head) * 0.8:
        head = head[: line + 1]
    line = tail.find("\n")
    if 0 <= line < len(tail) * 0.2:
        tail = tail[line + 1 :]
    left_out = len(data) - len(head.encode()) - len(tail.encode())
    return f"{head.rstrip()}\n[... {left_out} bytes left out ...]\n{tail}", attrs
