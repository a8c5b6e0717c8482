"""OpenAI's two request shapes: Chat Completions and Responses."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import msgspec

from rung.assembly.messages import Message, Prompt, ToolSchema
from rung.assembly.render import Style, message_text
from rung.assembly.schemas import closed, schema_object, sorted_tools
from rung.errors import InputError
from rung.records.item import Media

_NAME = re.compile(r"[^\s<|\\/>]{1,64}\Z")
_AUDIO = {"audio/wav": "wav", "audio/x-wav": "wav", "audio/mpeg": "mp3", "audio/mp3": "mp3"}
OPAQUE = {"openai-chat": frozenset[str](), "openai-responses": frozenset({"openai", "openai-responses"})}


def chat_request(prompt: Prompt, style: Style) -> dict[str, Any]:
    """Keyword arguments of `client.chat.completions.create`, the model apart."""
    messages: list[dict[str, Any]] = []
    for message in prompt.messages:
        messages += chat_messages(message, message_text(message, style))
    request: dict[str, Any] = {"messages": messages}
    if prompt.tools:
        request["tools"] = [{"type": "function", "function": _function(tool)} for tool in sorted_tools(prompt.tools)]
    if prompt.response_schema is not None:
        name, text = prompt.response_schema
        schema = schema_object(text)
        request["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": name, "schema": schema, "strict": closed(schema)},
        }
    return request


def _function(tool: ToolSchema) -> dict[str, Any]:
    function: dict[str, Any] = {"name": tool.name}
    if tool.description:
        function["description"] = tool.description
    function["parameters"] = schema_object(tool.parameters)
    if tool.strict:
        function["strict"] = True
    return function


def chat_messages(message: Message, text: str) -> Sequence[dict[str, Any]]:
    """A message as Chat Completions lists it, with its text as it is rendered."""
    if message.role == "tool":
        return ({"role": "tool", "tool_call_id": message.call_id, "content": text},)
    out: dict[str, Any] = {"role": message.role}
    name = wire_name(message)
    if name is not None:
        out["name"] = name
    if message.role == "assistant":
        out["content"] = text or None
        if message.calls:
            out["tool_calls"] = [
                {
                    "id": call.id,
                    "type": "function",
                    "function": {"name": call.name, "arguments": call.arguments},
                }
                for call in message.calls
            ]
    elif message.media and message.role == "user":
        parts: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
        out["content"] = parts + [chat_part(media) for media in message.media]
    else:
        out["content"] = text
    return (out,)


def wire_name(message: Message) -> str | None:
    """The participant's name, where the message may carry it and the provider takes it."""
    name = message.name
    return name if name is not None and message.role != "tool" and _NAME.match(name) else None


def chat_part(media: Media) -> dict[str, Any]:
    """A media reference as a content part of Chat Completions."""
    if media.mime.startswith("image/"):
        return {"type": "image_url", "image_url": {"url": media.url}}
    inline = media.url.startswith("data:")
    if inline and media.mime in _AUDIO:
        data = media.url.partition(",")[2]
        return {"type": "input_audio", "input_audio": {"data": data, "format": _AUDIO[media.mime]}}
    if inline:
        return {"type": "file", "file": {"file_data": media.url, "filename": _filename(media)}}
    if media.url.startswith("file-"):
        return {"type": "file", "file": {"file_id": media.url}}
    raise InputError(
        f"`openai-chat` takes no `{media.mime}` by its address (give a `data:` address or the id of an uploaded file)",
        field="media",
    )


def _filename(media: Media) -> str:
    ending = media.mime.rpartition("/")[2]
    return f"attachment.{ending if ending.isalnum() else 'bin'}"


def responses_request(prompt: Prompt, style: Style) -> dict[str, Any]:
    """Keyword arguments of `client.responses.create`, the model apart.

    Instructions are leading `system` messages of `input`, so that each keeps its own place in the prefix.
    """
    items: list[dict[str, Any]] = []
    for message in prompt.messages:
        items += responses_items(message, message_text(message, style))
    request: dict[str, Any] = {"input": items}
    if prompt.tools:
        # `strict` must be said: where it is left out, this endpoint turns it on.
        request["tools"] = [
            {"type": "function", **_function(tool), "strict": tool.strict} for tool in sorted_tools(prompt.tools)
        ]
    if prompt.response_schema is not None:
        name, text = prompt.response_schema
        schema = schema_object(text)
        request["text"] = {"format": {"type": "json_schema", "name": name, "schema": schema, "strict": closed(schema)}}
    return request


def responses_items(message: Message, text: str) -> Sequence[dict[str, Any]]:
    """A message as Responses lists it, with its text as it is rendered."""
    if message.role == "tool":
        return [{"type": "function_call_output", "call_id": message.call_id, "output": text}]
    out: list[dict[str, Any]] = [
        msgspec.json.decode(opaque.json) for opaque in message.opaque if opaque.provider in OPAQUE["openai-responses"]
    ]
    if message.media and message.role == "user":
        parts: list[dict[str, Any]] = [{"type": "input_text", "text": text}] if text else []
        content: Any = parts + [responses_part(media) for media in message.media]
        out.append({"type": "message", "role": message.role, "content": content})
    elif text or not (message.calls or out):
        out.append({"type": "message", "role": message.role, "content": text})
    out += [
        {"type": "function_call", "call_id": call.id, "name": call.name, "arguments": call.arguments}
        for call in message.calls
    ]
    return out


def responses_part(media: Media) -> dict[str, Any]:
    """A media reference as a content part of Responses."""
    if media.mime.startswith("image/"):
        return {"type": "input_image", "image_url": media.url, "detail": "auto"}
    if media.url.startswith("data:"):
        return {"type": "input_file", "file_data": media.url, "filename": _filename(media)}
    if media.url.startswith("file-"):
        return {"type": "input_file", "file_id": media.url}
    return {"type": "input_file", "file_url": media.url}
