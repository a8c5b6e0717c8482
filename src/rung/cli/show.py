"""What a person reads: a request as messages, and progress where somebody looks on."""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, cast


def readable(request: Mapping[str, Any]) -> str:
    """A provider's request with its texts as they stand, line breaks and all; every other field as JSON."""
    parts: list[str] = []
    rest: dict[str, Any] = {}
    for name, value in request.items():
        if name in ("messages", "input") and isinstance(value, list | tuple):
            parts += [_message(entry) for entry in cast("Sequence[Any]", value)]
        elif name in ("system", "instructions"):
            parts.insert(0, _headed("system", _content(value)))
        else:
            rest[name] = value
    if rest:
        parts.append(_headed("request", _json(rest)))
    return "\n\n".join(parts)


def _message(entry: Any) -> str:
    if not isinstance(entry, Mapping):
        return _json(entry)
    message = cast("Mapping[str, Any]", entry)
    role = message.get("role") or message.get("type") or "message"
    answers = message.get("tool_call_id")
    head = str(role) if answers is None else f"{role} answers {answers}"
    lines = [_content(message["content"])] if message.get("content") else []
    rest = {name: value for name, value in message.items() if name not in ("role", "content", "tool_call_id")}
    if rest:
        lines.append(_json(rest))
    return _headed(head, "\n".join(lines))


def _headed(head: str, text: str) -> str:
    return f"--- {head} ---\n{text.rstrip()}"


def _content(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, list | tuple):
        return "\n".join(_part(part) for part in cast("Sequence[Any]", value))
    return _json(value)


def _part(part: Any) -> str:
    if isinstance(part, Mapping):
        fields = cast("Mapping[str, Any]", part)
        if set(fields) == {"type", "text"}:
            return str(fields["text"])
    return _json(part)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=dict)


def printable(text: str, *, lines: bool = False) -> str:
    """Text that cannot move a terminal's cursor or hide: control and format characters as numbers.

    With `lines`, its line breaks and tabs stay.
    """
    return "".join(
        one
        if (lines and one in "\n\t") or unicodedata.category(one) not in ("Cc", "Cf", "Zl", "Zp", "Cs")
        else f"\\u{ord(one):04x}"
        for one in text
    )


@contextmanager
def waiting(what: str) -> Generator[None]:
    """A spinner on a terminal; nothing where the output is a file or a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield


@contextmanager
def counting(what: str) -> Generator[Callable[[int, int, str], None] | None]:
    """A bar on a terminal, told (done, of how many, the present one); None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=None)

        def tell(done: int, total: int, name: str) -> None:
            bar.update(task, completed=done, total=total, description=f"{what}: {name[-40:]}")

        yield tell
