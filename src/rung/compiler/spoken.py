"""An item of the conversation as a message: its role comes from its type, never from its text."""

from __future__ import annotations

from typing import Any, Literal

from rung.assembly.messages import Block, Message
from rung.records.item import ContextItem, Media, Opaque, ToolCall, body


def spoken_item(item: ContextItem[Any], place: Literal["history", "request"], text: str | None = None) -> Message:
    """The message of an item, with its own text or a shorter one."""
    text = body(item) if text is None else text
    block = Block(item_id=item.id, form="literal", type=item.type.name, source=item.source, text=text)
    if item.call_id is not None and item.type.name == "tool_output":
        return Message(role="tool", place=place, blocks=(block,), call_id=item.call_id, name=item.attr("tool"))
    role: Literal["assistant", "user"] = "assistant" if item.type.name == "assistant" else "user"
    parts = item.parts
    if not parts:
        return Message(role=role, place=place, blocks=(block,))
    return Message(
        role=role,
        place=place,
        blocks=(block,) if text else (Block(item_id=item.id, type=item.type.name, text=""),),
        calls=tuple([part for part in parts if isinstance(part, ToolCall)]),
        media=tuple([part for part in parts if isinstance(part, Media)]),
        opaque=tuple([part for part in parts if isinstance(part, Opaque)]),
    )
