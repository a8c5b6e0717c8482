"""Replies as providers write them: one body, or the events of a stream. Pure, and the same each time.

Shapes: OpenAI, API reference (Chat Completions, Responses and their streaming events); Anthropic, API reference
(Messages, Streaming messages).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from rung.assembly.reply import Reply

Event = tuple[str | None, Any]
"""The name of a server-sent event, where the format names them, and its data."""

_CHAT_STOPS = {"end": "stop", "tool_calls": "tool_calls", "length": "length", "refusal": "content_filter"}
_MESSAGE_STOPS = {"end": "end_turn", "tool_calls": "tool_use", "length": "max_tokens", "refusal": "refusal"}


def words(text: str) -> list[str]:
    """A text in pieces, as a stream brings it."""
    return re.findall(r"\s*\S+|\s+", text)


def halves(text: str) -> tuple[str, str]:
    """Arguments in two pieces, cut where it hurts: in the middle."""
    half = len(text) // 2
    return text[:half], text[half:]


def loaded(arguments: str) -> Any:
    """Arguments as Anthropic writes them: a value. A text that is not JSON stays a text."""
    try:
        return json.loads(arguments)
    except ValueError:
        return arguments


# OpenAI: Chat Completions


def chat_body(reply: Reply, number: int) -> dict[str, Any]:
    """A chat completion."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text or None, "refusal": None}
    if reply.stop == "refusal" and not reply.raw_stop:
        message |= {"content": None, "refusal": reply.text}
    if reply.calls:
        message["tool_calls"] = [
            {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
            for one in reply.calls
        ]
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _chat_stop(reply)}
    return {**_chat_head(reply, number, "chat.completion"), "choices": [choice], "usage": chat_usage(reply)}


def _chat_stop(reply: Reply) -> str:
    return reply.raw_stop or _CHAT_STOPS.get(reply.stop, "stop")


def _chat_head(reply: Reply, number: int, kind: str) -> dict[str, Any]:
    return {"id": reply.id or f"chatcmpl-{number}", "object": kind, "created": 0, "model": reply.model}


def chat_usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "prompt_tokens": usage.input,
        "completion_tokens": usage.output,
        "total_tokens": usage.total,
        "prompt_tokens_details": {"cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_write},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning},
    }


def chat_events(reply: Reply, number: int, *, usage: bool) -> list[Event]:
    """The chunks of a streamed chat completion; figures come last, if they were asked for."""
    head = _chat_head(reply, number, "chat.completion.chunk")

    def chunk(delta: Mapping[str, Any], stop: str | None = None) -> Event:
        return None, {**head, "choices": [{"index": 0, "delta": dict(delta), "finish_reason": stop}]}

    where = "refusal" if reply.stop == "refusal" and not reply.raw_stop else "content"
    events = [chunk({"role": "assistant", "content": ""})]
    events += [chunk({where: word}) for word in words(reply.text)]
    for index, one in enumerate(reply.calls):
        first = {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": ""}}
        events.append(chunk({"tool_calls": [{"index": index, **first}]}))
        events += [
            chunk({"tool_calls": [{"index": index, "function": {"arguments": piece}}]})
            for piece in halves(one.arguments)
        ]
    events.append(chunk({}, _chat_stop(reply)))
    if usage:
        events.append((None, {**head, "choices": [], "usage": chat_usage(reply)}))
    return events


# OpenAI: Responses


def responses_body(reply: Reply, number: int) -> dict[str, Any]:
    """A response."""
    output: list[dict[str, Any]] = [msgspec.json.decode(one.json) for one in reply.opaque]
    if reply.text or not (reply.calls or output):
        refused = reply.stop == "refusal"
        part = {"type": "refusal", "refusal": reply.text} if refused else _output_text(reply.text)
        output.append(
            {
                "type": "message",
                "id": f"msg_{number}",
                "status": "completed",
                "role": "assistant",
                "content": [part],
            }
        )
    output += [
        {
            "type": "function_call",
            "id": f"fc_{number}_{index}",
            "call_id": one.id,
            "name": one.name,
            "arguments": one.arguments,
            "status": "completed",
        }
        for index, one in enumerate(reply.calls)
    ]
    cut = reply.stop == "length"
    return {
        "id": reply.id or f"resp_{number}",
        "object": "response",
        "created_at": 0,
        "model": reply.model,
        "status": "incomplete" if cut else "completed",
        "error": None,
        "incomplete_details": {"reason": "max_output_tokens"} if cut else None,
        "output": output,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "usage": responses_usage(reply),
    }


def _output_text(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": []}


def responses_usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "input_tokens": usage.input,
        "input_tokens_details": {"cached_tokens": usage.cached_input, "cache_write_tokens": usage.cache_write},
        "output_tokens": usage.output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.total,
    }


def responses_events(reply: Reply, number: int) -> list[Event]:
    """The events of a streamed response."""
    body = responses_body(reply, number)
    begun: dict[str, Any] = {**body, "status": "in_progress", "output": [], "usage": None}
    found: list[dict[str, Any]] = [{"type": "response.created", "response": begun}]
    for index, item in enumerate(body["output"]):
        place = {"output_index": index, "item_id": item.get("id", "")}
        found.append({"type": "response.output_item.added", "output_index": index, "item": _opened(item)})
        if item["type"] == "message":
            found += _message_events(item["content"][0], {**place, "content_index": 0})
        elif item["type"] == "function_call":
            found += [
                {"type": "response.function_call_arguments.delta", **place, "delta": piece}
                for piece in halves(item["arguments"])
            ]
            done = {"type": "response.function_call_arguments.done", **place, "name": item["name"]}
            found.append({**done, "arguments": item["arguments"]})
        found.append({"type": "response.output_item.done", "output_index": index, "item": item})
    found.append({"type": f"response.{body['status']}", "response": body})
    return [(event["type"], {**event, "sequence_number": i}) for i, event in enumerate(found)]


def _opened(item: Mapping[str, Any]) -> dict[str, Any]:
    if item["type"] == "message":
        return {**item, "status": "in_progress", "content": []}
    if item["type"] == "function_call":
        return {**item, "status": "in_progress", "arguments": ""}
    return dict(item)


def _message_events(part: Mapping[str, Any], place: Mapping[str, Any]) -> Iterable[dict[str, Any]]:
    refused = part["type"] == "refusal"
    kind, text = ("refusal", part["refusal"]) if refused else ("output_text", part["text"])
    empty = {"type": "refusal", "refusal": ""} if refused else _output_text("")
    yield {"type": "response.content_part.added", **place, "part": empty}
    for word in words(text):
        logs: dict[str, Any] = {} if refused else {"logprobs": []}
        yield {"type": f"response.{kind}.delta", **place, "delta": word, **logs}
    done: dict[str, Any] = {"refusal": text} if refused else {"text": text, "logprobs": []}
    yield {"type": f"response.{kind}.done", **place, **done}
    yield {"type": "response.content_part.done", **place, "part": dict(part)}


# Anthropic: Messages


def messages_blocks(reply: Reply) -> list[dict[str, Any]]:
    blocks: list[dict[str, Any]] = [msgspec.json.decode(one.json) for one in reply.opaque]
    if reply.text:
        blocks.append({"type": "text", "text": reply.text})
    blocks += [
        {"type": "tool_use", "id": one.id, "name": one.name, "input": loaded(one.arguments)} for one in reply.calls
    ]
    return blocks


def messages_usage(reply: Reply) -> dict[str, Any]:
    usage = reply.usage
    return {
        "input_tokens": usage.input - usage.cached_input - usage.cache_write,
        "cache_creation_input_tokens": usage.cache_write,
        "cache_read_input_tokens": usage.cached_input,
        "output_tokens": usage.output,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
    }


def messages_body(reply: Reply, number: int) -> dict[str, Any]:
    """A message."""
    return {
        "id": reply.id or f"msg_{number}",
        "type": "message",
        "role": "assistant",
        "model": reply.model,
        "content": messages_blocks(reply),
        "stop_reason": reply.raw_stop or _MESSAGE_STOPS.get(reply.stop, "end_turn"),
        "stop_sequence": None,
        "usage": messages_usage(reply),
    }


def messages_events(reply: Reply, number: int) -> list[Event]:
    """The events of a streamed message."""
    body = messages_body(reply, number)
    begun: dict[str, Any] = {**body, "content": [], "stop_reason": None, "usage": {**body["usage"], "output_tokens": 1}}
    found: list[dict[str, Any]] = [{"type": "message_start", "message": begun}, {"type": "ping"}]
    texts = iter(reply.calls)
    for index, block in enumerate(body["content"]):
        arguments = next(texts).arguments if block["type"] == "tool_use" else ""
        found += _block_events(index, block, arguments)
    end = {"stop_reason": body["stop_reason"], "stop_sequence": None}
    found.append({"type": "message_delta", "delta": end, "usage": {"output_tokens": reply.usage.output}})
    found.append({"type": "message_stop"})
    return [(event["type"], event) for event in found]


def _block_events(index: int, block: Mapping[str, Any], arguments: str) -> Iterable[dict[str, Any]]:
    kind = block["type"]
    deltas: list[dict[str, Any]] = []
    opened = dict(block)
    if kind == "text":
        opened["text"] = ""
        deltas = [{"type": "text_delta", "text": word} for word in words(block["text"])]
    elif kind == "tool_use":
        opened["input"] = {}
        deltas = [{"type": "input_json_delta", "partial_json": piece} for piece in ("", *halves(arguments))]
    elif kind == "thinking":
        opened |= {"thinking": "", "signature": ""}
        deltas = [{"type": "thinking_delta", "thinking": word} for word in words(block["thinking"])]
        deltas.append({"type": "signature_delta", "signature": block["signature"]})
    yield {"type": "content_block_start", "index": index, "content_block": opened}
    for delta in deltas:
        yield {"type": "content_block_delta", "index": index, "delta": delta}
    yield {"type": "content_block_stop", "index": index}


# Errors


def openai_error(message: str, *, status: int, code: str) -> dict[str, Any]:
    """An error as OpenAI writes it."""
    kind = "invalid_request_error" if 400 <= status < 500 and status != 429 else "server_error"
    return {"error": {"message": message, "type": kind, "param": None, "code": code or None}}


_ANTHROPIC_KINDS = {
    400: "invalid_request_error",
    401: "authentication_error",
    402: "billing_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    504: "timeout_error",
    529: "overloaded_error",
}


def anthropic_error(message: str, *, status: int, code: str) -> dict[str, Any]:
    """An error as Anthropic writes it."""
    kind = code or _ANTHROPIC_KINDS.get(status, "api_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_0"}
