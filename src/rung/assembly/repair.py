"""Healing: what a provider would refuse in a sequence of messages is put right, and each change is noted.

Works on neutral messages and is pure; healing what is healed changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from hashlib import sha256
from typing import Literal

import msgspec

from rung.assembly import anthropic, openai
from rung.assembly.escape import shield
from rung.assembly.messages import Block, Message, Prompt
from rung.assembly.render import Style, message_text
from rung.errors import PairingError
from rung.records.canonical import canonical_json
from rung.records.item import Opaque, ToolCall

NO_OUTPUT = "(no output)"
NO_RESULT = "(no result was recorded for this call)"
NO_TEXT = "(no text)"
OMITTED = "(earlier messages are left out)"

RepairCode = Literal[
    "arguments_wrapped",
    "call_id_rewritten",
    "empty_message_dropped",
    "empty_request_filled",
    "empty_result_filled",
    "first_user_added",
    "missing_result_added",
    "opaque_dropped",
    "orphan_result_dropped",
    "prefill_trimmed",
    "result_matched",
    "result_moved",
    "system_as_notice",
    "turns_merged",
]


class Repair(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One change: a stable code, the index of the message that was given, and its item where known."""

    code: RepairCode
    place: int
    item_id: str | None = None


class Healed(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Messages that the target takes, and what was changed to get there."""

    prompt: Prompt
    repairs: tuple[Repair, ...]


def heal(prompt: Prompt, target: str) -> Healed:
    """The prompt as this target takes it.

    Args:
        prompt: neutral messages in their order.
        target: the target's name.

    Raises:
        PairingError: a second result for one call, or a result without an id that fits several calls.
    """
    allowed = _CALL_ID.get(target)
    if target != "anthropic" and allowed is not None and _in_order(prompt.messages, allowed):
        return Healed(prompt=prompt, repairs=())
    repairs: list[Repair] = []
    entries = _without_empty(prompt.messages, target, repairs)
    for _, message in entries:
        if message.calls or message.role == "tool":
            entries = _paired(entries, repairs)
            entries = _ids(entries, target, repairs)
            break
    if target == "anthropic":
        entries = _for_anthropic(entries, repairs)
    if not repairs:
        return Healed(prompt=prompt, repairs=())
    messages = tuple(message for _, message in entries)
    return Healed(prompt=msgspec.structs.replace(prompt, messages=messages), repairs=tuple(repairs))


def _in_order(messages: Sequence[Message], allowed: re.Pattern[str]) -> bool:
    """Whether there is nothing to heal, as nearly always: each message has text, and each call is directly followed
    by its result, under an id that the target takes."""
    seen: set[str] = set()
    due: set[str] = set()
    for message in messages:
        blocks = message.blocks
        silent = not (blocks and (text := blocks[0].text) and not text[0].isspace())
        if message.opaque or (silent and (not message.calls or message.role != "assistant")):
            return False
        if message.role == "tool":
            if message.call_id is None or message.call_id not in due or message.calls:
                return False
            due.remove(message.call_id)
        elif due:
            return False
        elif message.calls:
            if message.role != "assistant":
                return False
            for call in message.calls:
                if call.id in seen or not allowed.match(call.id):
                    return False
                seen.add(call.id)
                due.add(call.id)
    return not due


Entry = tuple[int, Message]


def _note(repairs: list[Repair], code: RepairCode, place: int, message: Message) -> None:
    repairs.append(Repair(code=code, place=place, item_id=_item(message)))


def _item(message: Message) -> str | None:
    return next((block.item_id for block in message.blocks if block.item_id), None)


def _said(text: str) -> tuple[Block, ...]:
    return (Block(text=text),)


def _blank(message: Message) -> bool:
    for block in message.blocks:  # noqa: SIM110 (asked of every message of every turn)
        if block.form != "literal" or (block.text and not block.text.isspace()):
            return False
    return True


class _Kind(msgspec.Struct):
    type: str = ""


def _reasoning(opaque: Opaque) -> bool:
    """Whether an opaque block is reasoning, which no provider takes without what it led to."""
    kind = msgspec.json.decode(opaque.json, type=_Kind).type
    return kind in ("thinking", "redacted_thinking", "reasoning")


def _kept_opaque(target: str) -> frozenset[str]:
    return anthropic.OPAQUE if target == "anthropic" else openai.OPAQUE.get(target, frozenset())


def _without_empty(messages: Sequence[Message], target: str, repairs: list[Repair]) -> list[Entry]:
    out: list[Entry] = []
    for place, message in enumerate(messages):
        if message.opaque:
            takes = _kept_opaque(target)
            kept = tuple(opaque for opaque in message.opaque if opaque.provider in takes)
            if len(kept) < len(message.opaque):
                _note(repairs, "opaque_dropped", place, message)
                message = msgspec.structs.replace(message, opaque=kept)
        if _blank(message):
            if message.role == "tool":
                _note(repairs, "empty_result_filled", place, message)
                item = _item(message)
                message = msgspec.structs.replace(message, blocks=(Block(item_id=item, text=NO_OUTPUT),))
            elif message.calls or message.media or not all(map(_reasoning, message.opaque)):
                pass
            elif message.place == "request" and message.role == "user":
                _note(repairs, "empty_request_filled", place, message)
                message = msgspec.structs.replace(message, blocks=(Block(item_id=_item(message), text=NO_TEXT),))
            else:
                _note(repairs, "empty_message_dropped", place, message)
                continue
        out.append((place, message))
    return out


def _paired(entries: list[Entry], repairs: list[Repair]) -> list[Entry]:
    """Every call directly followed by its results: moved there, added, or, without a call, dropped."""
    open_calls: dict[str, int] = {}  # call id → index of the newest entry that makes it
    answers: dict[int, list[Entry]] = {}
    answered: dict[int, set[str]] = {}
    owner: dict[int, int] = {}
    for index, (place, message) in enumerate(entries):
        if message.role == "assistant" and message.calls:
            for call in message.calls:
                open_calls[call.id] = index
            answers[index], answered[index] = [], set()
        elif message.role == "tool":
            if message.call_id is None:
                message = _matched(entries, answered, index, place, message, repairs)
                entries[index] = (place, message)
            call_id = message.call_id
            maker = open_calls.get(call_id) if call_id is not None else None
            if maker is None:
                _note(repairs, "orphan_result_dropped", place, message)
                owner[index] = -1
                continue
            assert call_id is not None
            if call_id in answered[maker]:
                raise PairingError(
                    f"call `{call_id}` has a second result (keep one result for each call)",
                    field="call_id",
                    call_id=call_id,
                    item_id=_item(message),
                )
            answered[maker].add(call_id)
            answers[maker].append((place, message))
            owner[index] = maker
    if not answers and not owner:
        return entries
    out: list[Entry] = []
    for index, (place, message) in enumerate(entries):
        if message.role == "tool":
            continue
        out.append((place, message))
        if index not in answers:
            continue
        for offset, entry in enumerate(answers[index]):
            if owner.get(index + 1 + offset) != index:
                _note(repairs, "result_moved", entry[0], entry[1])
            out.append(entry)
        for call in message.calls:
            if call.id not in answered[index]:
                _note(repairs, "missing_result_added", place, message)
                answer = Message(role="tool", place=message.place, blocks=_said(NO_RESULT), call_id=call.id)
                out.append((place, answer))
    return out


def _matched(
    entries: list[Entry],
    answered: dict[int, set[str]],
    index: int,
    place: int,
    message: Message,
    repairs: list[Repair],
) -> Message:
    """A result without an id, given the id of the one open call that it can answer."""
    maker = max((i for i in answered if i < index), default=None)
    if maker is None:
        return message
    fits = [
        call for call in entries[maker][1].calls if call.id not in answered[maker] and message.name in (None, call.name)
    ]
    if len(fits) > 1:
        raise PairingError(
            f"a tool result without an id fits {len(fits)} open calls (give it its call's id)",
            field="call_id",
            item_id=_item(message),
        )
    if not fits:
        return message
    _note(repairs, "result_matched", place, message)
    return msgspec.structs.replace(message, call_id=fits[0].id)


_CALL_ID = {
    "anthropic": re.compile(r"[A-Za-z0-9_-]{1,64}\Z"),
    "openai-chat": re.compile(r"[\s\S]{1,40}\Z"),
    "openai-responses": re.compile(r"[\s\S]{1,64}\Z"),
    "text": re.compile(r"[\s\S]*\Z"),
}


def _ids(entries: list[Entry], target: str, repairs: list[Repair]) -> list[Entry]:
    """Call ids that the target takes, each used by one call; arguments an object where one is due."""
    allowed = _CALL_ID[target]
    seen: set[str] = set()
    current: dict[str, str] = {}
    out: list[Entry] = []
    for place, message in entries:
        if message.calls:
            current = {}
            calls: list[ToolCall] = []
            for call in message.calls:
                new = call.id
                if not allowed.match(new) or new in seen:
                    new = _new_id(call.id, seen)
                    _note(repairs, "call_id_rewritten", place, message)
                seen.add(new)
                current[call.id] = new
                arguments = call.arguments
                if target == "anthropic":
                    arguments = _object(arguments)
                    if arguments != call.arguments:
                        _note(repairs, "arguments_wrapped", place, message)
                if new != call.id or arguments != call.arguments:
                    call = ToolCall(id=new, name=call.name, arguments=arguments)
                calls.append(call)
            if tuple(calls) != message.calls:
                message = msgspec.structs.replace(message, calls=tuple(calls))
        elif message.role == "tool" and message.call_id is not None:
            new = current.get(message.call_id, message.call_id)
            if new != message.call_id:
                message = msgspec.structs.replace(message, call_id=new)
        out.append((place, message))
    return out


def _new_id(call_id: str, seen: set[str]) -> str:
    """An id that any target takes: of the old one and of how many calls had it before, not of the place."""
    number = 0
    while True:
        digest = sha256(f"{number}:{call_id}".encode("utf-8", "replace")).hexdigest()
        new = f"call_{digest[:24]}"
        if new not in seen:
            return new
        number += 1


def _object(arguments: str) -> str:
    """Arguments as the JSON text of an object: as they are, or wrapped where they are none."""
    try:
        value = msgspec.json.decode(arguments)
    except (msgspec.DecodeError, RecursionError):
        value = None
    if isinstance(value, dict):
        return arguments
    if not arguments.strip():
        return "{}"
    return canonical_json({"arguments": arguments})


def _for_anthropic(entries: list[Entry], repairs: list[Repair]) -> list[Entry]:
    start = 0
    while start < len(entries) and entries[start][1].role == "system":
        start += 1
    out = entries[:start]
    for place, message in entries[start:]:
        if message.role == "system":
            _note(repairs, "system_as_notice", place, message)
            message = _notice(message)
        if len(out) == start and message.role != "user":
            _note(repairs, "first_user_added", place, message)
            out.append((place, Message(role="user", place="history", blocks=_said(OMITTED))))
        out.append((place, message))
    if len(out) == start:
        repairs.append(Repair(code="first_user_added", place=len(entries)))
        out.append((len(entries), Message(role="user", place="request", blocks=_said(NO_TEXT))))
    if out[-1][1].role == "assistant":
        out[-1] = _trimmed(out[-1], repairs)
    for (_, before), (place, message) in zip(out[start:], out[start + 1 :], strict=False):
        both = anthropic.wire_role(before) == anthropic.wire_role(message)
        if both and not (before.role == "tool" or message.role == "tool"):
            _note(repairs, "turns_merged", place, message)
    return out


def _notice(message: Message) -> Message:
    """An operator's message in mid-conversation: in the user's place, in a frame no other text can spell."""
    text = shield(message_text(message, Style()))
    framed = f"<operator-notice>\n{text}\n</operator-notice>\n"
    block = Block(item_id=_item(message), type="instruction", text=framed)
    return msgspec.structs.replace(message, role="user", blocks=(block,))


def _trimmed(entry: Entry, repairs: list[Repair]) -> Entry:
    """The beginning of a reply, without the white space at its end that Anthropic refuses."""
    place, message = entry
    if message.calls or not message.blocks:
        return entry
    text = message_text(message, Style())
    if text == text.rstrip():
        return entry
    _note(repairs, "prefill_trimmed", place, message)
    block = Block(item_id=_item(message), type=message.blocks[0].type, text=text.rstrip())
    return place, msgspec.structs.replace(message, blocks=(block,))
