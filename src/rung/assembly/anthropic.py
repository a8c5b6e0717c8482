"""Anthropic's Messages API: system blocks apart, roles in turn, tool results first, few cache markers."""

from __future__ import annotations

from typing import Any, Literal, cast

import msgspec

from rung.assembly.messages import Message, Prompt
from rung.assembly.render import Style, message_text
from rung.assembly.schemas import schema_object, sorted_tools
from rung.errors import InputError
from rung.records.item import Media

OPAQUE = frozenset({"anthropic"})
MARKERS = 4
"""Cache markers that one request may carry (Anthropic, Prompt caching)."""

_MARK = {"type": "ephemeral"}
_DOCUMENTS = frozenset({"application/pdf"})


def wire_role(message: Message) -> Literal["user", "assistant"]:
    """The role on the wire: everything that is not the model's own comes from the user's side."""
    return "assistant" if message.role == "assistant" else "user"


def split_system(messages: tuple[Message, ...]) -> tuple[tuple[Message, ...], tuple[Message, ...]]:
    """The leading system messages, and the rest."""
    n = 0
    while n < len(messages) and messages[n].role == "system":
        n += 1
    return messages[:n], messages[n:]


def turns(messages: tuple[Message, ...]) -> list[list[Message]]:
    """The messages as turns: neighbours of one wire role together, in order."""
    out: list[list[Message]] = []
    for message in messages:
        if out and wire_role(out[-1][0]) == wire_role(message):
            out[-1].append(message)
        else:
            out.append([message])
    return out


def anthropic_request(prompt: Prompt, style: Style) -> dict[str, Any]:
    """Keyword arguments of `client.messages.create`, `model` and `max_tokens` apart."""
    system, rest = split_system(prompt.messages)
    wanted: list[tuple[str, dict[str, Any]]] = []
    request: dict[str, Any] = {}
    system_blocks: list[dict[str, Any]] = []
    for message in system:
        block = {"type": "text", "text": message_text(message, style)}
        system_blocks.append(block)
        if message.cache:
            wanted.append(("system", block))
    if system_blocks:
        request["system"] = system_blocks
    wire: list[dict[str, Any]] = []
    for turn in turns(rest):
        content: list[dict[str, Any]] = []
        for message in turn:
            content += _content(message, style)
            if message.cache and content and content[-1]["type"] not in ("thinking", "redacted_thinking"):
                wanted.append(("messages", content[-1]))
        wire.append({"role": wire_role(turn[0]), "content": content})
    request["messages"] = wire
    if prompt.tools:
        tools = [
            _tool(tool.name, tool.description, tool.parameters, tool.strict) for tool in sorted_tools(prompt.tools)
        ]
        request["tools"] = tools
        if wanted:
            wanted.append(("tools", tools[-1]))
    if prompt.response_schema is not None:
        schema = schema_object(prompt.response_schema[1])
        request["output_config"] = {"format": {"type": "json_schema", "schema": schema}}
    _mark(wanted, _markers(request))
    return request


def _tool(name: str, description: str, parameters: str, strict: bool) -> dict[str, Any]:
    tool: dict[str, Any] = {"name": name}
    if description:
        tool["description"] = description
    tool["input_schema"] = schema_object(parameters)
    if strict:
        tool["strict"] = True
    return tool


def _content(message: Message, style: Style) -> list[dict[str, Any]]:
    text = message_text(message, style)
    if message.role == "tool":
        return [{"type": "tool_result", "tool_use_id": message.call_id, "content": text}]
    # A signed reasoning block stands before what it led to, as the model sent it.
    out: list[dict[str, Any]] = [
        msgspec.json.decode(opaque.json) for opaque in message.opaque if opaque.provider in OPAQUE
    ]
    if message.role == "user":
        out += [_media(media) for media in message.media]
    if text and not text.isspace():
        out.append({"type": "text", "text": text})
    out += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": msgspec.json.decode(call.arguments)}
        for call in message.calls
    ]
    return out


def _media(media: Media) -> dict[str, Any]:
    image = media.mime.startswith("image/")
    if not image and media.mime not in _DOCUMENTS:
        raise InputError(
            f"`anthropic` takes images and PDF documents, not `{media.mime}` (give its text instead)",
            field="media",
        )
    if media.url.startswith("data:"):
        data = media.url.partition(",")[2]
        source = {"type": "base64", "media_type": media.mime, "data": data}
    else:
        source = {"type": "url", "url": media.url}
    return {"type": "image" if image else "document", "source": source}


def _markers(value: object) -> int:
    """How many cache markers a request carries already, in blocks that pass through as they are."""
    if isinstance(value, list):
        return sum(_markers(inner) for inner in cast("list[object]", value))
    if isinstance(value, dict):
        fields = cast("dict[str, object]", value)
        if fields.get("type") in ("text", "tool_use"):
            return int(fields.get("cache_control") is not None)
        return int(fields.get("cache_control") is not None) + sum(
            _markers(inner) for key, inner in fields.items() if key in ("messages", "content")
        )
    return 0


def _mark(wanted: list[tuple[str, dict[str, Any]]], present: int) -> None:
    """Place what fits: the last system block, the two newest messages, the tools, then the others."""
    system = [block for where, block in wanted if where == "system"]
    messages = [block for where, block in wanted if where == "messages"]
    tools = [block for where, block in wanted if where == "tools"]
    order = system[-1:] + messages[:-3:-1] + tools + messages[-3::-1] + system[-2::-1]
    room = MARKERS - present
    for block in order:
        if room <= 0:
            return
        if "cache_control" not in block:
            block["cache_control"] = dict(_MARK)
            room -= 1
