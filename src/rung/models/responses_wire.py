"""Responses on the wire: a reply and a stream as values. Pure; no package is needed.

Shapes: OpenAI, API reference, Responses (the object, and the streaming events).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rung.assembly.reply import NO_USAGE, CallDelta, Reply, Stop, StreamEvent, TextDelta, Usage
from rung.models.failures import event_failure
from rung.models.replies import broken, decoded, made_calls, settled
from rung.records.item import Opaque

PROVIDER = "openai-responses"
"""Whose opaque blocks these are."""


class _InputDetails(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None


class _OutputDetails(msgspec.Struct, gc=False):
    reasoning_tokens: int | None = None


class _Usage(msgspec.Struct, gc=False):
    input_tokens: int = 0
    output_tokens: int = 0
    input_tokens_details: _InputDetails | None = None
    output_tokens_details: _OutputDetails | None = None

    def usage(self) -> Usage:
        inside, outside = self.input_tokens_details, self.output_tokens_details
        return Usage(
            input=self.input_tokens,
            output=self.output_tokens,
            cached_input=(inside.cached_tokens or 0) if inside else 0,
            cache_write=(inside.cache_write_tokens or 0) if inside else 0,
            reasoning=(outside.reasoning_tokens or 0) if outside else 0,
        )


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Item(msgspec.Struct, gc=False):
    type: str
    content: Any = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class _Failure(msgspec.Struct, gc=False):
    code: str | None = None
    message: str | None = None


class _Incomplete(msgspec.Struct, gc=False):
    reason: str | None = None


class _Response(msgspec.Struct, gc=False):
    output: list[msgspec.Raw]
    status: str | None = None
    id: str | None = None
    model: str | None = None
    usage: _Usage | None = None
    error: _Failure | None = None
    incomplete_details: _Incomplete | None = None


def responses_reply(provider: str, raw: bytes | Mapping[str, Any]) -> Reply:
    """A response as a reply.

    Raises:
        ModelReplyError: no output, an item without a type, a call without a name, or two calls of one id.
        ModelError: the response says that it failed.
    """
    found = decoded(provider, raw if isinstance(raw, bytes) else msgspec.json.encode(raw), _Response)
    if found.status == "failed" or (found.error is not None and (found.error.code or found.error.message)):
        error = found.error or _Failure()
        raise event_failure(provider, error.code or "", error.message or "")
    said: list[str] = []
    refused: list[str] = []
    calls: list[tuple[str, str, str]] = []
    opaque: list[Opaque] = []
    for piece in found.output:
        item = decoded(provider, bytes(piece), _Item)
        if item.type == "message":
            for part in decoded(provider, {"parts": item.content or []}, _Parts).parts:
                said.append(part.text or "")
                refused.append(part.refusal or "")
        elif item.type == "function_call":
            calls.append((item.call_id or "", item.name or "", item.arguments or ""))
        else:
            opaque.append(Opaque(provider=PROVIDER, json=bytes(piece).decode()))
    text, refusal = "".join(said), "".join(refused)
    made = made_calls(provider, calls)
    stop, raw_stop = _stop(provider, found, refusal and not text)
    return Reply(
        text=text or refusal,
        calls=made,
        opaque=tuple(opaque),
        usage=found.usage.usage() if found.usage is not None else NO_USAGE,
        stop=settled(provider, stop, made, text or refusal),
        raw_stop=raw_stop,
        model=found.model or "",
        id=found.id or "",
    )


class _Parts(msgspec.Struct, gc=False):
    parts: list[_Part]


def _stop(provider: str, found: _Response, refused: object) -> tuple[Stop, str]:
    status = found.status or "completed"
    if status == "completed":
        return ("refusal" if refused else "end"), status
    if status == "incomplete":
        reason = (found.incomplete_details.reason if found.incomplete_details else None) or status
        if reason == "max_output_tokens":
            return "length", reason
        return ("refusal" if reason == "content_filter" else "other"), reason
    raise broken(provider, f"its status is `{status[:40]}`, which is no end")


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    delta: Any = None
    output_index: int = 0
    item: dict[str, Any] | None = None
    response: dict[str, Any] | None = None
    code: str | None = None
    message: str | None = None


class ResponsesStream:
    """Puts a streamed response together: `feed` each event, then ask for the `reply`."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._calls: dict[int, tuple[int, str, str]] = {}
        self._items: dict[int, Any] = {}
        self._response: dict[str, Any] | None = None

    def feed(self, raw: Mapping[str, Any]) -> list[StreamEvent]:
        """Take one event in; the events that it makes.

        Raises:
            ModelReplyError: it is no event.
            ModelError: it reports a failure.
        """
        event = decoded(self._provider, raw, _Event)
        kind = event.type
        if kind == "error":
            raise event_failure(self._provider, event.code or "", event.message or "")
        if kind in ("response.output_text.delta", "response.refusal.delta"):
            return [TextDelta(text=str(event.delta))] if event.delta else []
        if kind == "response.output_item.added":
            item = decoded(self._provider, event.item or {}, _Item)
            if item.type == "function_call":
                place = (len(self._calls), item.call_id or "", item.name or "")
                self._calls[event.output_index] = place
                return [CallDelta(index=place[0], id=place[1], name=place[2])]
        elif kind == "response.function_call_arguments.delta" and event.output_index in self._calls:
            index, call_id, name = self._calls[event.output_index]
            return [CallDelta(index=index, id=call_id, name=name, arguments=str(event.delta or ""))]
        elif kind == "response.output_item.done":
            self._items[event.output_index] = event.item
        elif kind in ("response.completed", "response.incomplete", "response.failed"):
            self._response = event.response
        return []

    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            ModelReplyError: the stream ended before the reply did, or the reply is broken.
            ModelError: the response says that it failed.
        """
        if self._response is None:
            raise broken(self._provider, "the stream ended before the reply did")
        # Some compatible servers leave the output of the last event empty.
        output = self._response.get("output") or [self._items[place] for place in sorted(self._items)]
        return responses_reply(self._provider, {**self._response, "output": output})
