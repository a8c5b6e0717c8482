"""What a request's texts are, piece by piece, so that each token can be put down to an item.

The counts of the pieces and the constants of the framing add up to `rung.tokens.count_request` of the whole:
a provider's counter sees each string alone, and within one string pieces meet only where counts add up.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import msgspec

from rung.assembly import plain
from rung.assembly.anthropic import anthropic_request, split_system, turns, wire_role
from rung.assembly.messages import Message, Prompt
from rung.assembly.openai import (
    OPAQUE,
    chat_part,
    chat_request,
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


class Account(msgspec.Struct, frozen=True, kw_only=True):
    """The pieces of a request in order, and how often each constant of the framing is paid."""

    pieces: tuple[Piece, ...]
    messages: int = 0
    names: int = 0
    calls: int = 0
    results: int = 0
    tools: int = 0
    response_schema: bool = False

    def constants(self, framing: Framing) -> int:
        """The tokens that the framing adds to those of the pieces."""
        return (
            framing.per_request
            + self.messages * framing.per_message
            + self.names * framing.per_name
            + self.calls * framing.per_tool_call
            + self.results * framing.per_tool_result
            + self.tools * framing.per_tool
            + (framing.tools if self.tools else 0)
            + (framing.response_schema if self.response_schema else 0)
        )

    def total(self, framing: Framing, tokenizer: Tokenizer) -> int:
        """The tokens of the whole request."""
        return self.constants(framing) + sum(piece_tokens(piece, framing, tokenizer) for piece in self.pieces)


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
    tally = _Tally(style)
    if target == "anthropic":
        _anthropic(prompt, tally)
    elif target == "openai-chat":
        for message in prompt.messages:
            _chat(message, tally)
    else:
        for message in prompt.messages:
            _responses(message, tally)
    schema = None
    if prompt.tools or prompt.response_schema is not None:
        bare = _REQUESTS[target](msgspec.structs.replace(prompt, messages=()), style)
        for tool in bare.get("tools", ()):
            tally.pieces.append(Piece(item_id=None, component="tools", text=canonical_json(tool)))
        schema = response_schema(bare)
        if schema is not None:
            tally.pieces.append(Piece(item_id=None, component="response_schema", text=canonical_json(schema)))
    return Account(
        pieces=tuple(tally.pieces),
        messages=tally.messages,
        names=tally.names,
        calls=tally.calls,
        results=tally.results,
        tools=len(prompt.tools),
        response_schema=schema is not None,
    )


_REQUESTS = {"anthropic": anthropic_request, "openai-chat": chat_request, "openai-responses": responses_request}


class _Tally:
    """Pieces and constants as they come up."""

    def __init__(self, style: Style) -> None:
        self.style = style
        self.pieces: list[Piece] = []
        self.messages = self.names = self.calls = self.results = 0

    def own(self, text: str | None) -> None:
        """A text of the request's own."""
        if text:
            self.pieces.append(Piece(item_id=None, component="messages", text=text))

    def of(self, message: Message, *texts: str) -> None:
        """Texts that belong to a message's item."""
        item = owner(message)
        self.pieces += [Piece(item_id=item, component="messages", text=text) for text in texts if text]

    def parts(self, message: Message, parts: Iterable[Any]) -> None:
        item = owner(message)
        self.pieces += [Piece(item_id=item, component="messages", part=part) for part in parts]

    def content(self, message: Message, *, blank: bool = True) -> None:
        """The text of the blocks, as one string on the wire; nothing for white space without `blank`."""
        found = block_segments(message, self.style)
        if not blank and all(not text or text.isspace() for _, text in found):
            return
        for item, text in found if len(found) == 1 else additive(found):
            if text:
                self.pieces.append(Piece(item_id=item, component="messages", text=text))

    def message(self, role: str) -> None:
        self.messages += 1
        self.pieces.append(Piece(item_id=None, component="messages", text=role))


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


def _chat(message: Message, tally: _Tally) -> None:
    tally.message(message.role)
    if message.role == "tool":
        tally.results += 1
        tally.own(message.call_id)
        tally.content(message)
        return
    name = wire_name(message)
    if name is not None:
        tally.names += 1
        tally.of(message, name)
    tally.content(message)
    if message.role == "assistant":
        for call in message.calls:
            tally.calls += 1
            tally.of(message, call.id, "function", call.name, call.arguments)
    elif message.role == "user":
        tally.parts(message, [chat_part(part) for part in message.media])


def _responses(message: Message, tally: _Tally) -> None:
    if message.role == "tool":
        tally.messages += 1
        tally.results += 1
        tally.own(message.call_id)
        tally.content(message)
        return
    if message.opaque or message.media:
        bare = msgspec.structs.replace(message, blocks=(), calls=())
        for item in responses_request(Prompt(messages=(bare,)), tally.style)["input"]:
            if item.get("type") != "message":
                tally.messages += 1
                tally.parts(message, [item])
    before = len(tally.pieces)
    tally.content(message)
    texts = tally.pieces[before:]
    del tally.pieces[before:]
    media = message.media if message.role == "user" else ()
    opaque = any(block.provider in OPAQUE["openai-responses"] for block in message.opaque)
    if texts or media or not (message.calls or opaque):
        tally.message(message.role)
        tally.pieces += texts
        tally.parts(message, [responses_part(part) for part in media])
    for call in message.calls:
        tally.messages += 1
        tally.calls += 1
        tally.of(message, call.id, call.name, call.arguments)


def _anthropic(prompt: Prompt, tally: _Tally) -> None:
    system, rest = split_system(prompt.messages)
    if system:
        tally.message("system")
        for message in system:
            tally.content(message)
    for turn in turns(rest):
        tally.message(wire_role(turn[0]))
        for message in turn:
            if message.role == "tool":
                tally.results += 1
                tally.own(message.call_id)
                tally.content(message)
                continue
            if message.opaque or message.media:
                bare = msgspec.structs.replace(message, blocks=(), calls=(), cache=False)
                wire = anthropic_request(Prompt(messages=(bare,)), tally.style)
                tally.parts(message, wire["messages"][0]["content"])
            tally.content(message, blank=False)
            for call in message.calls:
                tally.calls += 1
                arguments = canonical_json(msgspec.json.decode(call.arguments))
                tally.of(message, call.id, call.name, arguments)


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
    return Account(pieces=tuple(pieces))
