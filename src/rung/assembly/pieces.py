"""What a request's texts are, piece by piece, so that each token can be put down to an item.

The counts of the pieces and the constants of the framing add up to `rung.tokens.count_request` of the whole:
a provider's counter sees each string alone, and within one string pieces meet only where counts add up.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal

import msgspec

from rung.assembly import plain
from rung.assembly.anthropic import anthropic_request, split_system, turns, wire_role
from rung.assembly.messages import Message, Prompt
from rung.assembly.openai import (
    OPAQUE,
    chat_messages,
    chat_part,
    chat_request,
    responses_items,
    responses_part,
    responses_request,
    wire_name,
)
from rung.assembly.render import Segment, Style, segments
from rung.tokens.blocks import safe_joint
from rung.tokens.framing import Framing
from rung.tokens.protocol import Tokenizer
from rung.tokens.request import canonical_json, count_message, response_schema

Component = Literal["messages", "tools", "response_schema"]


class Piece(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One text that is counted alone.

    Attributes:
        item_id: whose text it is; None for the request's own: roles, ids, schemas, tags.
        component: where it is counted.
        text: the text, or nothing where `part` stands for it.
        part: a media or opaque part as it is on the wire, whose cost is no text's.
    """

    item_id: str | None
    component: Component
    text: str = ""
    part: Any = None


class Account(msgspec.Struct, kw_only=True):
    """The pieces of a request in order, and how often each constant of the framing is paid."""

    pieces: list[Piece] = []
    messages: int = 0
    names: int = 0
    calls: int = 0
    results: int = 0
    tools: int = 0
    response_schema: bool = False

    def constants(self, framing: Framing) -> int:
        """The tokens that the framing adds to those of the pieces."""
        total = framing.per_request + self.messages * framing.per_message
        if self.names or self.calls or self.results:
            total += (
                self.names * framing.per_name
                + self.calls * framing.per_tool_call
                + self.results * framing.per_tool_result
            )
        if self.tools:
            total += self.tools * framing.per_tool + framing.tools
        if self.response_schema:
            total += framing.response_schema
        return total

    def total(self, framing: Framing, tokenizer: Tokenizer) -> int:
        """The tokens of the whole request."""
        return self.constants(framing) + sum(piece_tokens(piece, framing, tokenizer) for piece in self.pieces)

    def message(self, role: str) -> None:
        """One more message, and its role."""
        self.messages += 1
        self.pieces.append(Piece(item_id=None, component="messages", text=role))

    def own(self, text: str | None) -> None:
        """A text of the request's own."""
        if text:
            self.pieces.append(Piece(item_id=None, component="messages", text=text))

    def of(self, message: Message, *texts: str) -> None:
        """Texts that belong to a message's item."""
        item = owner(message)
        self.pieces += [Piece(item_id=item, component="messages", text=text) for text in texts if text]

    def parts(self, message: Message, parts: Iterable[Any]) -> None:
        """Parts whose cost is no text's."""
        item = owner(message)
        self.pieces += [Piece(item_id=item, component="messages", part=part) for part in parts]

    def content(self, found: Sequence[Segment]) -> None:
        """The text of a message's blocks, as one string on the wire."""
        for item, text in found if len(found) == 1 else additive(found):
            if text:
                self.pieces.append(Piece(item_id=item, component="messages", text=text))


def piece_tokens(piece: Piece, framing: Framing, tokenizer: Tokenizer) -> int:
    """The tokens of one piece.

    Raises:
        InputError: media whose kind has no cost under this framing.
    """
    if piece.part is None:
        return tokenizer.count(piece.text)
    return count_message(framing, tokenizer, piece.part) - framing.per_message


def account(prompt: Prompt, target: str, style: Style) -> Account:
    """The account of a healed prompt's request."""
    if target == "text":
        return _text(prompt, style)
    made = Account(tools=len(prompt.tools))
    if target == "anthropic":
        _anthropic(prompt, style, made)
    else:
        of_message = _MESSAGES[target]
        for message in prompt.messages:
            of_message(message, block_segments(message, style), made)
    if prompt.tools or prompt.response_schema is not None:
        bare = _REQUESTS[target](msgspec.structs.replace(prompt, messages=()), style)
        for tool in bare.get("tools", ()):
            made.pieces.append(Piece(item_id=None, component="tools", text=canonical_json(tool)))
        schema = response_schema(bare)
        if schema is not None:
            made.response_schema = True
            made.pieces.append(Piece(item_id=None, component="response_schema", text=canonical_json(schema)))
    return made


def line(message: Message, target: str, style: Style) -> tuple[Sequence[dict[str, Any]], Account]:
    """A healed message as a target that lists its messages sends it, and its account; its text is rendered once."""
    found = block_segments(message, style)
    text = found[0][1] if len(found) == 1 else "".join([text for _, text in found])
    made = Account()
    _MESSAGES[target](message, found, made)
    return _WIRE[target](message, text), made


_REQUESTS = {"anthropic": anthropic_request, "openai-chat": chat_request, "openai-responses": responses_request}
_WIRE = {"openai-chat": chat_messages, "openai-responses": responses_items}


def owner(message: Message) -> str | None:
    """The item that a message's calls, ids and media belong to."""
    for block in message.blocks:
        if block.item_id:
            return block.item_id
    return None


def block_segments(message: Message, style: Style) -> list[Segment]:
    """The texts of a message's blocks in order, each with its item."""
    blocks = message.blocks
    if len(blocks) == 1:
        return segments(blocks[0], style, multi=False)
    return [segment for block in blocks for segment in segments(block, style, multi=True)]


def additive(found: Iterable[Segment]) -> list[Segment]:
    """The same text in pieces whose counts add up: neighbours are joined where they would not."""
    out: list[Segment] = []
    for item, text in found:
        if not text:
            continue
        if out and not safe_joint(out[-1][1], text):
            before, earlier = out[-1]
            out[-1] = (before if before is not None else item, earlier + text)
        else:
            out.append((item, text))
    return out


def _chat(message: Message, found: Sequence[Segment], made: Account) -> None:
    made.message(message.role)
    if message.role == "tool":
        made.results += 1
        made.own(message.call_id)
        made.content(found)
        return
    name = wire_name(message)
    if name is not None:
        made.names += 1
        made.of(message, name)
    made.content(found)
    if message.role == "assistant":
        for call in message.calls:
            made.calls += 1
            made.of(message, call.id, "function", call.name, call.arguments)
    elif message.role == "user" and message.media:
        made.parts(message, [chat_part(part) for part in message.media])


def _responses(message: Message, found: Sequence[Segment], made: Account) -> None:
    if message.role == "tool":
        made.messages += 1
        made.results += 1
        made.own(message.call_id)
        made.content(found)
        return
    if message.opaque or message.media:
        bare = msgspec.structs.replace(message, blocks=(), calls=())
        for item in responses_items(bare, ""):
            if item.get("type") != "message":
                made.messages += 1
                made.parts(message, [item])
    media = message.media if message.role == "user" else ()
    opaque = any(block.provider in OPAQUE["openai-responses"] for block in message.opaque)
    if any(text for _, text in found) or media or not (message.calls or opaque):
        made.message(message.role)
        made.content(found)
        made.parts(message, [responses_part(part) for part in media])
    for call in message.calls:
        made.messages += 1
        made.calls += 1
        made.of(message, call.id, call.name, call.arguments)


_MESSAGES = {"openai-chat": _chat, "openai-responses": _responses}


def _anthropic(prompt: Prompt, style: Style, made: Account) -> None:
    system, rest = split_system(prompt.messages)
    if system:
        made.message("system")
        for message in system:
            made.content(block_segments(message, style))
    for turn in turns(rest):
        made.message(wire_role(turn[0]))
        for message in turn:
            found = block_segments(message, style)
            if message.role == "tool":
                made.results += 1
                made.own(message.call_id)
                made.content(found)
                continue
            if message.opaque or message.media:
                bare = msgspec.structs.replace(message, blocks=(), calls=(), cache=False)
                wire = anthropic_request(Prompt(messages=(bare,)), style)
                made.parts(message, wire["messages"][0]["content"])
            if not all(text.isspace() for _, text in found if text):
                made.content(found)
            for call in message.calls:
                made.calls += 1
                arguments = canonical_json(msgspec.json.decode(call.arguments))
                made.of(message, call.id, call.name, arguments)


def _text(prompt: Prompt, style: Style) -> Account:
    pieces: list[Piece] = []

    def add(component: Component, found: Iterable[Segment]) -> None:
        for item, text in found:
            if not text:
                continue
            if pieces and not safe_joint(pieces[-1].text, text):
                last = pieces[-1]
                pieces[-1] = msgspec.structs.replace(last, item_id=last.item_id or item, text=last.text + text)
            else:
                pieces.append(Piece(item_id=item, component=component, text=text))

    add("tools", [(None, text) for text in plain.tool_sections(prompt)])
    add("response_schema", [(None, plain.schema_section(prompt))])
    for message in prompt.messages:
        add("messages", [(None, plain.opening(message))])
        for block in message.blocks:
            add("messages", segments(block, style, multi=True))
        add("messages", [(owner(message), text) for text in plain.trailing(message)[:-1]])
        add("messages", [(None, plain.CLOSING)])
    if plain.wants_cue(prompt):
        add("messages", [(None, plain.CUE)])
    return Account(pieces=pieces)
