"""Anthropic's Messages on the wire: a reply and a stream as values. Pure; no package is needed.

Shapes: Anthropic, API reference, Messages, and Streaming messages.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rung.assembly.reply import NO_USAGE, CallDelta, Reply, Stop, StreamEvent, TextDelta, Usage
from rung.models.failures import event_failure
from rung.models.replies import broken, decoded, made_calls, settled
from rung.records.item import Opaque

PROVIDER = "anthropic"
"""Whose opaque blocks these are."""

_STOPS: dict[str, Stop] = {
    "end_turn": "end",
    "stop_sequence": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}


class _Details(msgspec.Struct, gc=False):
    thinking_tokens: int | None = None


class MessagesUsage(msgspec.Struct, gc=False):
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    output_tokens_details: _Details | None = None

    def usage(self) -> Usage:
        """In our meaning: Anthropic's `input_tokens` leaves out what a cache gave or took."""
        read, written = self.cache_read_input_tokens or 0, self.cache_creation_input_tokens or 0
        details = self.output_tokens_details
        return Usage(
            input=(self.input_tokens or 0) + read + written,
            output=self.output_tokens or 0,
            cached_input=read,
            cache_write=written,
            reasoning=(details.thinking_tokens or 0) if details is not None else 0,
        )

    def then(self, later: MessagesUsage) -> MessagesUsage:
        """Figures of a stream are cumulative: what comes later holds, where it says anything."""
        found = {
            name: getattr(later, name) if getattr(later, name) is not None else getattr(self, name)
            for name in self.__struct_fields__
        }
        return MessagesUsage(**found)


class _Block(msgspec.Struct, gc=False):
    type: str
    text: str = ""
    id: str = ""
    name: str = ""
    input: msgspec.Raw = msgspec.Raw(b"{}")


class _Error(msgspec.Struct, gc=False):
    type: str = ""
    message: str = ""


class _Message(msgspec.Struct, gc=False):
    content: list[msgspec.Raw] = []
    type: str = ""
    stop_reason: str | None = None
    usage: MessagesUsage | None = None
    id: str = ""
    model: str = ""
    error: _Error | None = None


def messages_reply(provider: str, raw: bytes | Mapping[str, Any]) -> Reply:
    """A message as a reply. Blocks that are neither text nor a tool call are opaque, as they came.

    Raises:
        ModelReplyError: no message, a block without a type, a call without a name, or two calls of one id.
        ModelError: it reports a failure.
    """
    found = decoded(provider, raw if isinstance(raw, bytes) else msgspec.json.encode(raw), _Message)
    if found.error is not None:
        raise event_failure(provider, found.error.type, found.error.message)
    if found.type != "message":
        raise broken(provider, "it is no message")
    return _reply(
        provider,
        blocks=[bytes(block) for block in found.content],
        raw_stop=found.stop_reason or "",
        usage=found.usage,
        model=found.model,
        id=found.id,
    )


def _reply(
    provider: str, *, blocks: Sequence[bytes], raw_stop: str, usage: MessagesUsage | None, model: str, id: str
) -> Reply:
    text: list[str] = []
    calls: list[tuple[str, str, str]] = []
    opaque: list[Opaque] = []
    for raw in blocks:
        block = decoded(provider, raw, _Block)
        if block.type == "text":
            text.append(block.text)
        elif block.type == "tool_use":
            calls.append((block.id, block.name, _arguments(bytes(block.input))))
        else:
            opaque.append(Opaque(provider=PROVIDER, json=raw.decode()))
    made = made_calls(provider, calls)
    said = "".join(text)
    return Reply(
        text=said,
        calls=made,
        opaque=tuple(opaque),
        usage=usage.usage() if usage is not None else NO_USAGE,
        stop=settled(provider, _STOPS.get(raw_stop, "other" if raw_stop else "end"), made, said),
        raw_stop=raw_stop,
        model=model,
        id=id,
    )


def _arguments(raw: bytes) -> str:
    """Arguments as text. A stream brings them as a text of its own, which need not be JSON."""
    if raw.startswith(b'"'):
        return msgspec.json.decode(raw, type=str)
    return raw.decode()


class _Delta(msgspec.Struct, gc=False):
    type: str = ""
    text: str = ""
    partial_json: str = ""
    thinking: str = ""
    signature: str = ""
    citation: Any = None
    stop_reason: str | None = None


class _Event(msgspec.Struct, gc=False):
    type: str = ""
    index: int = 0
    message: _Message | None = None
    content_block: dict[str, Any] | None = None
    delta: _Delta | None = None
    usage: MessagesUsage | None = None
    error: _Error | None = None


class MessagesStream:
    """Puts a streamed message together: `feed` each event, then ask for the `reply`."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._blocks: dict[int, dict[str, Any]] = {}
        self._inputs: dict[int, list[str]] = {}
        self._calls: dict[int, int] = {}
        self._usage = MessagesUsage()
        self._counted = False
        self._stop: str | None = None
        self._model = self._id = ""

    def feed(self, raw: Mapping[str, Any]) -> list[StreamEvent]:
        """Take one event in; the events that it makes.

        Raises:
            ModelReplyError: it is no event, or a piece of a block that was not begun.
            ModelError: it reports a failure.
        """
        event = decoded(self._provider, raw, _Event)
        if event.error is not None:
            raise event_failure(self._provider, event.error.type, event.error.message)
        self._count(event.usage)
        if event.type == "message_start" and event.message is not None:
            self._model, self._id = event.message.model, event.message.id
            self._count(event.message.usage)
        elif event.type == "content_block_start" and event.content_block is not None:
            return self._begin(event.index, event.content_block)
        elif event.type == "content_block_delta" and event.delta is not None:
            return self._grow(event.index, event.delta)
        elif event.type == "message_delta" and event.delta is not None:
            self._stop = event.delta.stop_reason or self._stop
        return []

    def _count(self, usage: MessagesUsage | None) -> None:
        if usage is not None:
            self._usage, self._counted = self._usage.then(usage), True

    def _begin(self, index: int, block: dict[str, Any]) -> list[StreamEvent]:
        self._blocks[index] = dict(block)
        if block.get("type") == "tool_use":
            self._calls[index] = len(self._calls)
            return [
                CallDelta(index=self._calls[index], id=str(block.get("id") or ""), name=str(block.get("name") or ""))
            ]
        text = block.get("text")
        return [TextDelta(text=text)] if isinstance(text, str) and text else []

    def _grow(self, index: int, delta: _Delta) -> list[StreamEvent]:
        block = self._blocks.get(index)
        if block is None:
            raise broken(self._provider, f"a piece of block {index}, which was not begun")
        if delta.type == "text_delta":
            block["text"] = block.get("text", "") + delta.text
            return [TextDelta(text=delta.text)] if delta.text else []
        if delta.type == "input_json_delta":
            self._inputs.setdefault(index, []).append(delta.partial_json)
            if index in self._calls:
                return [
                    CallDelta(
                        index=self._calls[index],
                        id=str(block.get("id") or ""),
                        name=str(block.get("name") or ""),
                        arguments=delta.partial_json,
                    )
                ]
        elif delta.type == "thinking_delta":
            block["thinking"] = block.get("thinking", "") + delta.thinking
        elif delta.type == "signature_delta":
            block["signature"] = block.get("signature", "") + delta.signature
        elif delta.type == "citations_delta":
            block["citations"] = [*(block.get("citations") or []), delta.citation]
        return []

    def reply(self) -> Reply:
        """The whole reply.

        Raises:
            ModelReplyError: the stream ended before the reply did, or its blocks are broken.
        """
        if self._stop is None:
            raise broken(self._provider, "the stream ended before the reply did")
        return _reply(
            self._provider,
            blocks=[msgspec.json.encode(self._whole(index)) for index in sorted(self._blocks)],
            raw_stop=self._stop,
            usage=self._usage if self._counted else None,
            model=self._model,
            id=self._id,
        )

    def _whole(self, index: int) -> dict[str, Any]:
        block, text = self._blocks[index], "".join(self._inputs.get(index, ()))
        if not text:
            return block
        if index in self._calls:
            return {**block, "input": text}
        try:
            return {**block, "input": msgspec.json.decode(text)}
        except msgspec.DecodeError:
            raise broken(self._provider, f"the input of block {index} is not JSON") from None
