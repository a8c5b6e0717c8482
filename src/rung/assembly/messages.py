"""Neutral messages: what the compiler hands over, before any provider's shape.

A block keeps the plain text of one item and what is said about it; how it is framed and escaped is the
target's business. Roles are decided by type, so no text can choose one.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from rung.records.item import Media, Opaque, ToolCall

Role = Literal["system", "user", "assistant", "tool"]


class Block(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The text of one item in a message.

    Attributes:
        item_id: whose text it is; None for text of the compiler's own.
        form: `literal` stands as it is (instructions, the request, history); `quoted` is framed as data
            that names its type, id and source, and is escaped so that it cannot leave its frame.
        type: the type's name: the frame's tag.
        source: who brought it.
        text: the plain text, after truncation.
        label: the short stable id that a reply can cite.
        attrs: what the frame says beside that, in order: title, section, observed_at, version, state …
        slots: for an instruction with slots, the name and the block that stands in each place.
        mark: interleave a marker into the text (spotlighting), or None.
    """

    item_id: str | None = None
    form: Literal["literal", "quoted"] = "literal"
    type: str = ""
    source: str = ""
    text: str = ""
    label: str = ""
    attrs: tuple[tuple[str, str], ...] = ()
    slots: tuple[tuple[str, Block], ...] = ()
    mark: str | None = None


class Message(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One message. A `tool` message answers `call_id`; an `assistant` message may hold calls.

    Attributes:
        place: which part of the ladder it belongs to.
        cache: a cache marker after this message is wanted, where the provider has them.
    """

    role: Role
    place: Literal["instructions", "summary", "history", "context", "request"]
    blocks: tuple[Block, ...] = ()
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    name: str | None = None
    media: tuple[Media, ...] = ()
    opaque: tuple[Opaque, ...] = ()
    cache: bool = False


class ToolSchema(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A tool as the model sees it. `parameters` is the canonical JSON text of its JSON Schema."""

    name: str
    description: str = ""
    parameters: str = '{"properties":{},"type":"object"}'
    strict: bool = False


class Prompt(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A whole turn, before any provider's shape.

    `response_schema` is a name and the canonical JSON text of a JSON Schema, or None.
    """

    messages: tuple[Message, ...]
    tools: tuple[ToolSchema, ...] = ()
    response_schema: tuple[str, str] | None = None
