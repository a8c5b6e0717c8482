"""Counting a whole provider request, part by part, so that the whole is the sum of its parts.

Every text that the model may read is counted alone: content, roles, names, ids, serialised arguments,
schemas as canonical JSON. What the provider adds between them is `Framing`. Counting texts alone is what the
providers' own published rule does, and it lets each part be counted once and remembered.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Set
from typing import Any, cast

import msgspec

from rung.errors import InputError, kind
from rung.tokens.framing import Framing, framing_for
from rung.tokens.protocol import Tokenizer


class RequestCount(msgspec.Struct, frozen=True, kw_only=True):
    """The tokens of a request by component; `total` is their sum.

    `messages`, `tools` and `response_schema` are texts and media, `framing` is every constant. `by_message`
    is the cost of each message, or input item, with its own constants, in order; a separate system text comes
    first.
    """

    messages: int
    tools: int
    response_schema: int
    framing: int
    by_message: tuple[int, ...]
    tokenizer: str
    exact: bool
    framing_version: str

    @property
    def total(self) -> int:
        return self.messages + self.tools + self.response_schema + self.framing


# Fields that steer the client or the cache and are not shown to the model.
_SILENT = frozenset({"annotations", "cache_control", "detail", "index", "logprobs", "object", "status", "type"})
# Where a media part keeps its data or the address of it.
_MEDIA_DATA = frozenset(
    {
        "audio",
        "file",
        "file_data",
        "file_id",
        "file_url",
        "image_url",
        "input_audio",
        "source",
        "video",
        "video_url",
    }
)
_MEDIA = {
    "image_url": "image",
    "input_image": "image",
    "image": "image",
    "computer_screenshot": "image",
    "document": "document",
    "file": "file",
    "input_file": "file",
    "container_upload": "file",
    "input_audio": "audio",
    "audio": "audio",
    "video": "video",
    "video_url": "video",
}
# Endings of the types of calls and results, among them those of the providers' own tools.
_RESULTS = ("tool_result", "_call_output")
_CALLS = ("tool_use", "_call")


class _Parts:
    """What one message consists of: tokens of texts and media, and constants."""

    __slots__ = ("constant", "content", "framing", "tokenizer")

    def __init__(self, framing: Framing, tokenizer: Tokenizer) -> None:
        self.framing = framing
        self.tokenizer = tokenizer
        self.content = 0
        self.constant = 0

    def text(self, text: str) -> None:
        self.content += self.tokenizer.count(text)

    def json(self, value: Any) -> None:
        self.text(value if isinstance(value, str) else canonical_json(value))

    def media(self, part: Mapping[str, Any], what: str) -> None:
        source = part.get("source")
        if what == "document" and isinstance(source, Mapping):
            source = cast("Mapping[str, Any]", source)
            if source.get("type") == "text":
                self.text(str(source.get("data", "")))
                self.rest(part, {"source"})
                return
            if source.get("type") == "content":
                self.any(source.get("content"))
                self.rest(part, {"source"})
                return
        tokens = self.framing.media_tokens(what, _detail(part))
        if tokens is None:
            raise InputError(
                f"media of kind `{what}` has no token cost under `{self.framing.name}` (set one: "
                f"framing.with_media({what}=…))",
                field="content",
                media=what,
            )
        self.content += tokens
        self.rest(part, _MEDIA_DATA)

    def any(self, value: Any) -> None:
        """Content of any shape: a text, a part, or a list of them."""
        if value is None or value == "":
            return
        if isinstance(value, str):
            self.text(value)
        elif isinstance(value, Mapping):
            self.part(cast("Mapping[str, Any]", value))
        elif isinstance(value, list | tuple):
            for item in cast("list[Any]", value):
                self.any(item)
        else:
            self.json(value)

    def part(self, part: Mapping[str, Any]) -> None:
        what = part.get("type")
        if isinstance(what, str):
            if what in _MEDIA:
                self.media(part, _MEDIA[what])
                return
            if what.endswith(_CALLS):
                self.constant += self.framing.per_tool_call
            elif what.endswith(_RESULTS):
                self.constant += self.framing.per_tool_result
        self.rest(part, frozenset())

    def call(self, call: Mapping[str, Any]) -> None:
        """An entry of `tool_calls`."""
        self.constant += self.framing.per_tool_call
        for value in call.values():
            if isinstance(value, Mapping):
                value = cast("Mapping[str, Any]", value)
                if "name" in value or "arguments" in value:  # the nested `function`
                    for inner in value.values():
                        self.json(inner)
                    continue
            self.json(value)

    def rest(self, part: Mapping[str, Any], seen: Set[str]) -> None:
        """Every field not handled yet, so that nothing goes uncounted."""
        for name, value in part.items():
            if name in seen or name in _SILENT or value is None:
                continue
            if name in ("encrypted_content", "signature") or (
                name == "data" and part.get("type") == "redacted_thinking"
            ):
                self.content += math.ceil(len(str(value)) / self.framing.opaque_chars)
            elif name == "tool_calls" and isinstance(value, list | tuple):
                for call in cast("list[Mapping[str, Any]]", value):
                    self.call(call)
            elif name == "function_call" and isinstance(value, Mapping):
                self.call(cast("Mapping[str, Any]", value))
            elif name == "audio" and isinstance(value, Mapping):
                self.media(cast("Mapping[str, Any]", value), "audio")
            elif name in ("content", "output", "summary", "text", "refusal"):
                self.any(value)
            elif name in ("input", "arguments"):
                self.json(value)
            elif isinstance(value, str):
                self.text(value)
            elif isinstance(value, list | dict) and not value:
                continue
            elif value is not False:
                self.json(value)

    def message(self, message: Mapping[str, Any]) -> None:
        self.constant += self.framing.per_message
        if message.get("role") == "tool":
            self.constant += self.framing.per_tool_result
        if message.get("name") is not None and "role" in message:
            self.constant += self.framing.per_name
        self.part(message)

    @property
    def total(self) -> int:
        return self.content + self.constant


def canonical_json(value: Any) -> str:
    """The JSON that schemas and arguments are counted as: sorted keys, no blanks, characters unescaped.

    Raises `InputError` for what JSON cannot say.
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(f"`{kind(value)}` is not JSON: {kind(error)}", field="request") from error


def count_message(framing: str | Framing, tokenizer: Tokenizer, message: Mapping[str, Any]) -> int:
    """The tokens of one message or input item, with its own constants.

    Raises `InputError` for media without a configured cost.
    """
    parts = _Parts(framing_for(framing), tokenizer)
    parts.message(message)
    return parts.total


def count_tool(framing: str | Framing, tokenizer: Tokenizer, tool: Mapping[str, Any]) -> int:
    """The tokens of one tool: its canonical JSON and the constant per tool."""
    return tokenizer.count(canonical_json(_shown(tool))) + framing_for(framing).per_tool


def count_response_schema(framing: str | Framing, tokenizer: Tokenizer, schema: Any) -> int:
    """The tokens of a response schema: its canonical JSON and the constant of one."""
    return tokenizer.count(canonical_json(schema)) + framing_for(framing).response_schema


def count_request(framing: str | Framing, tokenizer: Tokenizer, request: Mapping[str, Any]) -> RequestCount:
    """The tokens of a whole request: the keyword arguments of the provider's client call.

    Reads `messages`, `input`, `system`, `instructions`, `prompt`, `text` (a string), `tools`, `functions`,
    `response_format`, `text.format`, `output_config.format` and `output_format`. Each part is counted alone,
    so `total` equals the sum of `count_message`, `count_tool`, `count_response_schema` and the constants of
    the request.

    Raises `InputError` for media without a configured cost and for what is not JSON.
    """
    rules = framing_for(framing)
    content = constant = 0
    by_message: list[int] = []
    for message in _messages(request):
        parts = _Parts(rules, tokenizer)
        if isinstance(message, str):  # the bare text of target `text`
            parts.text(message)
        else:
            parts.message(message)
        content += parts.content
        constant += parts.constant
        by_message.append(parts.total)
    tools = [tool for key in ("tools", "functions") for tool in request.get(key) or ()]
    tool_tokens = sum(count_tool(rules, tokenizer, tool) for tool in tools) - len(tools) * rules.per_tool
    constant += rules.per_request + len(tools) * rules.per_tool + (rules.tools if tools else 0)
    schema = response_schema(request)
    schema_tokens = 0
    if schema is not None:
        schema_tokens = tokenizer.count(canonical_json(schema))
        constant += rules.response_schema
    return RequestCount(
        messages=content,
        tools=tool_tokens,
        response_schema=schema_tokens,
        framing=constant,
        by_message=tuple(by_message),
        tokenizer=tokenizer.name,
        exact=tokenizer.exact,
        framing_version=f"{rules.name}/{rules.version}",
    )


def response_schema(request: Mapping[str, Any]) -> Any:
    """The response format of a request that names a schema or an object, or None for plain text."""
    for path in (
        ("response_format",),
        ("text", "format"),
        ("output_config", "format"),
        ("output_format",),
    ):
        value: Any = request
        for key in path:
            value = cast("Mapping[str, Any]", value).get(key) if isinstance(value, Mapping) else None
        if isinstance(value, Mapping):
            value = cast("Mapping[str, Any]", value)
            if value.get("type") != "text":
                return dict(value)
    return None


def _messages(request: Mapping[str, Any]) -> Iterator[Mapping[str, Any] | str]:
    """Messages in order; system texts that stand beside them count as a message of their own."""
    for key in ("system", "instructions"):
        if request.get(key):
            yield {"role": "system", "content": request[key]}
    for key in ("prompt", "text"):
        if isinstance(request.get(key), str) and request[key]:
            yield request[key]
    for key in ("messages", "input"):
        value = request.get(key)
        if isinstance(value, str):
            yield {"role": "user", "content": value}
        else:
            yield from value or ()


def _shown(tool: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in tool.items() if name != "cache_control"}


def _detail(part: Mapping[str, Any]) -> str:
    nested = part.get("image_url")
    inner = cast("Mapping[str, Any]", nested) if isinstance(nested, Mapping) else part
    return str(inner.get("detail", part.get("detail", "auto")))
