"""Chat Completions on the wire: a reply and a stream as values. Pure; no package is needed.

Shapes: OpenAI, API reference, Chat Completions (the object, and the streaming chunk).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from rung.assembly.reply import NO_USAGE, CallDelta, Reply, Stop, StreamEvent, TextDelta, Usage
from rung.models.failures import event_failure
from rung.models.replies import broken, decoded, made_calls, settled

_STOPS: dict[str, Stop] = {
    "stop": "end",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "content_filter": "refusal",
}


class _Details(msgspec.Struct, gc=False):
    cached_tokens: int | None = None
    cache_write_tokens: int | None = None
    reasoning_tokens: int | None = None


class ChatUsage(msgspec.Struct, gc=False):
    prompt_tokens: int = 0
    completion_tokens: int = 0
    prompt_tokens_details: _Details | None = None
    completion_tokens_details: _Details | None = None

    def usage(self) -> Usage:
        inside, outside = self.prompt_tokens_details or _Details(), self.completion_tokens_details or _Details()
        return Usage(
            input=self.prompt_tokens,
            output=self.completion_tokens,
            cached_input=inside.cached_tokens or 0,
            cache_write=inside.cache_write_tokens or 0,
            reasoning=outside.reasoning_tokens or 0,
        )


class _Function(msgspec.Struct, gc=False):
    name: str | None = None
    arguments: str | dict[str, Any] | None = None

    def text(self) -> str:
        """Arguments as text; some compatible servers send an object."""
        given = self.arguments
        return msgspec.json.encode(given).decode() if isinstance(given, dict) else given or ""


class _Call(msgspec.Struct, gc=False):
    function: _Function
    id: str | None = None


class _Part(msgspec.Struct, gc=False):
    type: str = ""
    text: str | None = None
    refusal: str | None = None


class _Message(msgspec.Struct, gc=False):
    content: str | list[_Part] | None = None
    refusal: str | None = None
    tool_calls: list[_Call] | None = None

    def text(self) -> str:
        if isinstance(self.content, list):
            return "".join(part.text or "" for part in self.content)
        return self.content or ""


class _Choice(msgspec.Struct, gc=False):
    message: _Message
    finish_reason: str | None = None


class _Completion(msgspec.Struct, gc=False):
    choices: list[_Choice] = []
    error: Any = None
    id: str | None = None
    model: str | None = None
    usage: ChatUsage | None = None


def chat_reply(provider: str, raw: bytes | Mapping[str, Any]) -> Reply:
    """A chat completion as a reply.

    Raises:
        ModelReplyError: no choice, no message, a call without a name, or two calls of one id.
    """
    found = decoded(provider, raw, _Completion)
    if found.error is not None:  # some gateways say so under status 200
        raise event_failure(provider, *_error(found.error))
    if not found.choices:
        raise broken(provider, "it has no choice")
    choice = found.choices[0]
    message = choice.message
    calls = made_calls(
        provider,
        [(call.id or "", call.function.name or "", call.function.text()) for call in message.tool_calls or ()],
    )
    return _reply(
        provider,
        text=message.text(),
        refusal=message.refusal or "",
        calls=calls,
        raw_stop=choice.finish_reason or "",
        usage=found.usage,
        model=found.model,
        id=found.id,
    )


def _reply(
    provider: str,
    *,
    text: str,
    refusal: str,
    calls: Any,
    raw_stop: str,
    usage: ChatUsage | None,
    model: str | None,
    id: str | None,
) -> Reply:
    stop: Stop = "refusal" if refusal and not text else _STOPS.get(raw_stop, "other" if raw_stop else "end")
    said = text or refusal
    return Reply(
        text=said,
        calls=calls,
        usage=usage.usage() if usage is not None else NO_USAGE,
        stop=settled(provider, stop, calls, said),
        raw_stop=raw_stop,
        model=model or "",
        id=id or "",
    )


class _DeltaCall(msgspec.Struct, gc=False):
    index: int | None = None
    id: str | None = None
    function: _Function | None = None


class _Delta(msgspec.Struct, gc=False):
    content: str | None = None
    refusal: str | None = None
    tool_calls: list[_DeltaCall] | None = None


class _ChunkChoice(msgspec.Struct, gc=False):
    delta: _Delta | None = None
    finish_reason: str | None = None
    index: int = 0


class _Chunk(msgspec.Struct, gc=False):
    choices: list[_ChunkChoice] = []
    id: str | None = None
    model: str | None = None
    usage: ChatUsage | None = None
    error: Any = None


class _Growing:
    """A call of which pieces still come."""

    def __init__(self) -> None:
        self.id = self.name = ""
        self.arguments: list[str] = []


class ChatStream:
    """Puts a streamed chat completion together: `feed` each chunk, then ask for the `reply`."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._text: list[str] = []
        self._refusal: list[str] = []
        self._calls: list[_Growing] = []
        self._open: dict[int, int] = {}
        self._stop: str | None = None
        self._usage: ChatUsage | None = None
        self._model = self._id = ""

    def feed(self, raw: Mapping[str, Any]) -> list[StreamEvent]:
        """Take one chunk in; the events that it makes.

        Raises:
            ModelReplyError: it is no chunk.
            ModelError: it reports a failure.
        """
        chunk = decoded(self._provider, raw, _Chunk)
        if chunk.error is not None:
            raise event_failure(self._provider, *_error(chunk.error))
        self._usage = chunk.usage or self._usage
        self._model = chunk.model or self._model
        self._id = chunk.id or self._id
        events: list[StreamEvent] = []
        for choice in chunk.choices:
            if choice.index:
                continue
            delta = choice.delta or _Delta()
            for text, into in ((delta.content, self._text), (delta.refusal, self._refusal)):
                if text:
                    into.append(text)
                    events.append(TextDelta(text=text))
            events += [self._call(piece) for piece in delta.tool_calls or ()]
            self._stop = choice.finish_reason or self._stop
        return events

    def _call(self, piece: _DeltaCall) -> CallDelta:
        index = piece.index if piece.index is not None else max(0, len(self._calls) - (not piece.id))
        place = self._open.get(index)
        # Some compatible servers send every call under one index: another id is another call.
        if place is None or (piece.id and self._calls[place].id and piece.id != self._calls[place].id):
            place = self._open[index] = len(self._calls)
            self._calls.append(_Growing())
        call = self._calls[place]
        function = piece.function or _Function()
        call.id = call.id or piece.id or ""
        call.name = call.name or function.name or ""
        call.arguments.append(function.text())
        return CallDelta(index=place, id=call.id, name=call.name, arguments=function.text())

    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            ModelReplyError: the stream ended before the reply did, or its calls are broken.
        """
        if self._stop is None:
            raise broken(self._provider, "the stream ended before the reply did")
        calls = [(call.id, call.name, "".join(call.arguments)) for call in self._calls]
        return _reply(
            self._provider,
            text="".join(self._text),
            refusal="".join(self._refusal),
            calls=made_calls(self._provider, calls),
            raw_stop=self._stop,
            usage=self._usage,
            model=self._model,
            id=self._id,
        )


def _error(error: Any) -> tuple[str, str]:
    """Code and words of a failure inside a stream."""
    if not isinstance(error, dict):
        return "", str(error)
    found: dict[str, Any] = error  # pyright: ignore[reportUnknownVariableType]
    return str(found.get("code") or found.get("type") or ""), str(found.get("message") or "")
