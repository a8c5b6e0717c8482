"""Tool and reply schemas in one order and one spelling, so that equal sets give equal bytes."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, cast

import msgspec

from rung.assembly.messages import ToolSchema
from rung.errors import InputError
from rung.records.canonical import canonical_json


@lru_cache(maxsize=1024)
def canonical_schema(text: str) -> str:
    """The canonical JSON text of a schema's JSON text.

    Raises:
        InputError: the text is not a JSON object.
    """
    try:
        value = msgspec.json.decode(text)
    except msgspec.DecodeError as problem:
        raise InputError(f"a schema is not JSON: {problem} (give its JSON text)", field="parameters") from problem
    if not isinstance(value, dict):
        raise InputError("a schema is not a JSON object (give a JSON Schema of type object)", field="parameters")
    return canonical_json(cast("dict[str, Any]", value), "parameters")


def schema_object(text: str) -> dict[str, Any]:
    """The schema as a fresh object, its keys in canonical order."""
    return cast("dict[str, Any]", msgspec.json.decode(canonical_schema(text)))


def sorted_tools(tools: tuple[ToolSchema, ...]) -> tuple[ToolSchema, ...]:
    """The tools by name, so that the order of registration does not show."""
    return tuple(sorted(tools, key=lambda tool: (tool.name, tool.description, tool.parameters)))


def closed(schema: object) -> bool:
    """Whether every object in a schema is closed and requires all its properties, as strict mode asks.

    Source: OpenAI, Structured Outputs guide, supported schemas.
    """
    if isinstance(schema, list):
        return all(closed(inner) for inner in cast("list[object]", schema))
    if not isinstance(schema, dict):
        return True
    fields = cast("dict[str, object]", schema)
    properties = fields.get("properties")
    if isinstance(properties, dict) or fields.get("type") == "object":
        names = set(cast("dict[str, object]", properties)) if isinstance(properties, dict) else set[str]()
        required = fields.get("required")
        listed = set(cast("list[str]", required)) if isinstance(required, list) else set[str]()
        if fields.get("additionalProperties") is not False or names != listed:
            return False
    return all(closed(inner) for inner in fields.values())
