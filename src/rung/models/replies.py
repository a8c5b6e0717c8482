"""What the adapters share: decoding a reply, ids of its calls, how its stop is read, and telling the caller."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, TypeVar

import msgspec

from rung.assembly.reply import OnEvent, Stop, StreamEvent
from rung.errors import ModelReplyError
from rung.records.item import ToolCall

T = TypeVar("T")


class Stopped(Exception):
    """Carries what the caller's own function raised past the place where providers' errors become ours."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error


def tell(stream: OnEvent, event: StreamEvent) -> None:
    """Hand an event to the caller.

    Raises:
        Stopped: the caller's function raised.
    """
    try:
        stream(event)
    except Exception as error:
        raise Stopped(error) from None


def broken(provider: str, fact: str) -> ModelReplyError:
    """A reply that breaks the provider's own protocol."""
    return ModelReplyError(f"`{provider}` sent a broken reply: {fact}", provider=provider)


def decoded(provider: str, raw: bytes | Mapping[str, Any], kind: type[T]) -> T:
    """A reply, or an event of a stream, as its type.

    Raises:
        ModelReplyError: it is not JSON, or lacks what its type needs; says where, without content.
    """
    try:
        if isinstance(raw, bytes):
            return msgspec.json.decode(raw, type=kind)
        return msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:  # says a path and types
        raise broken(provider, str(error)[:200]) from None
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise broken(provider, "it is not JSON") from None


def made_calls(provider: str, found: Iterable[tuple[str, str, str]]) -> tuple[ToolCall, ...]:
    """Calls of (id, name, arguments). A missing id is made from place and content, so it is the same each time.

    Raises:
        ModelReplyError: a call without a name, or two calls of one id: their results could not be told apart.
    """
    calls: list[ToolCall] = []
    seen: set[str] = set()
    for place, (given, name, arguments) in enumerate(found):
        if not name:
            raise broken(provider, f"tool call {place} has no name")
        own = given or _made_id(place, name, arguments)
        if own in seen:
            raise broken(provider, f"tool call {place} repeats the id of another")
        seen.add(own)
        calls.append(ToolCall(id=own, name=name, arguments=arguments or "{}"))
    return tuple(calls)


def _made_id(place: int, name: str, arguments: str) -> str:
    content = f"{place}\0{name}\0{arguments}".encode(errors="replace")
    return f"call_{sha256(content).hexdigest()[:20]}"


def settled(provider: str, stop: Stop, calls: tuple[ToolCall, ...], text: str) -> Stop:
    """The stop that fits what came: servers disagree about the word for a reply with calls.

    Raises:
        ModelReplyError: it says that tools are wanted, and has neither a call nor a text.
    """
    if calls and stop == "end":
        return "tool_calls"
    if stop == "tool_calls" and not calls:
        if not text:
            raise broken(provider, "it ends for tool calls and has none")
        return "end"
    return stop
