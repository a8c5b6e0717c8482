"""What things cost under one target, tokenizer and framing: remembered, so that a turn counts only what is new."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from rung.assembly.messages import Block, Message, Prompt
from rung.assembly.pieces import Account, piece_tokens
from rung.assembly.repair import Repair
from rung.assembly.targets import Target
from rung.compiler.manifest import Counter
from rung.compiler.repeats import refer
from rung.tokens.blocks import BlockCounter
from rung.tokens.framing import Framing, framing_for
from rung.tokens.protocol import Tokenizer
from rung.tokens.request import count_request

_KEPT = 8
_NOTHING: Mapping[str, str] = {}
_LINES = 8_192
_LINE_CHARACTERS = 16_000_000


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as its target takes it, with its tokens.

    Attributes:
        given: the prompt before healing.
        prompt: after it, repeated results in it referring to earlier ones.
        repairs: what healing changed.
        repeats: of each result that only refers, the call that gave the same before.
        results: the longer results that are sent, by their text, with their call.
        items: tokens by item; None stands for the request's own texts.
        tools, response_schema: tokens of those.
        constants: what the framing adds.
        total: the tokens of the whole request.
        wire: of each message what is sent of it, where the target lists them one by one.
        beside: what is sent beside them there. Both are shared between turns.
    """

    given: Prompt
    prompt: Prompt
    repairs: tuple[Repair, ...]
    repeats: Mapping[str, str]
    results: Mapping[str, str]
    items: Mapping[str | None, int]
    tools: int
    response_schema: int
    constants: int
    total: int
    wire: Sequence[Sequence[Any]] = ()
    beside: Mapping[str, Any] = {}


class _Part(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """What a part of a request costs, where the costs of its parts add up; and how it is sent.

    `own` is what the texts of the request's own in it cost: roles, ids.
    """

    items: Sequence[tuple[str, int]]
    own: int
    tools: int = 0
    response_schema: int = 0
    constants: int
    message: Message | None = None
    wire: Sequence[Any] = ()
    request: Mapping[str, Any] = {}


class Costs:
    """The token costs of blocks, messages and whole prompts. Safe for threads."""

    def __init__(self, target: Target, tokenizer: Tokenizer, framing: Framing) -> None:
        self.target = target
        self.tokenizer = tokenizer
        self.framing = framing
        self.counter = Counter(
            tokenizer=tokenizer.name, exact=tokenizer.exact, framing=f"{framing.name}/{framing.version}"
        )
        self._listed = target.listed
        self.mark = object()
        """By which a size that was counted here is known again."""
        # The same few prompts are asked for again within a turn, and the stable part in every turn: where messages
        # stand alone, each is remembered, else the whole.
        self._recent: deque[Weighed] = deque(maxlen=_KEPT)
        self._lines: dict[str | None, _Part] = {}
        self._characters = 0
        self._beside: tuple[Prompt, _Part] | None = None
        self._held: dict[str, tuple[object, int]] = {}

    def block(self, block: Block) -> int:
        """What a quoted block adds to the context message."""
        return self.tokenizer.count(self.target.render_block(block, multi=True))

    def prompt(self, prompt: Prompt) -> int:
        """The tokens of the whole request."""
        return self.weigh(prompt).total

    def once(self, name: str, about: object, tokens: Callable[[], int]) -> int:
        """Tokens that are the same in most turns; counted anew when what they are `about` has changed."""
        held = self._held.get(name)
        if held is None or held[0] != about:
            held = self._held[name] = (about, tokens())
        return held[1]

    def messages(self, messages: Sequence[Message]) -> int:
        """What these messages add to a request; where the target merges messages, a little more than they add."""
        return self._weigh(Prompt(messages=tuple(messages))).total - self.framing.per_request

    def weigh(self, prompt: Prompt, before: Mapping[str, str] = _NOTHING) -> Weighed:
        """The prompt with its tokens, by item and part; `before`: results that are sent before it, with their calls."""
        if self._listed is not None:
            return self._weigh(prompt, before)
        for known in self._recent.copy():
            if known.given == prompt:
                return known
        made = self._weigh(prompt)
        self._recent.append(made)
        return made

    def _weigh(self, prompt: Prompt, before: Mapping[str, str] = _NOTHING) -> Weighed:
        healed = self.target.heal(prompt)
        final = healed.prompt
        messages, repeats, results = refer(final.messages, self.tokenizer.count, before)
        if repeats:
            final = msgspec.structs.replace(final, messages=messages)
        wire: list[Sequence[Any]] = []
        items: dict[str | None, int] = {}
        if self._listed is None:
            first = self._part(self.target.account(final, healed=True))
            constants, own = first.constants, first.own
            items.update(first.items)
        else:
            first = self._rest(final)
            constants, own = first.constants, first.own
            lines = self._lines
            for message in messages:
                blocks = message.blocks
                line = lines.get(blocks[0].item_id if blocks else None)
                if line is None or (line.message is not message and not _same(line.message, message)):
                    line = self._line(message)
                constants += line.constants
                own += line.own
                for item, tokens in line.items:
                    items[item] = items.get(item, 0) + tokens
                wire.append(line.wire)
        if own:
            items[None] = own
        total = first.tools + first.response_schema + constants + sum(items.values())
        if not self.tokenizer.additive_newline:
            total = self._whole(final, items, total)
        return Weighed(
            given=prompt,
            prompt=final,
            repairs=healed.repairs,
            repeats=repeats,
            results=results,
            items=items,
            tools=first.tools,
            response_schema=first.response_schema,
            constants=constants,
            total=total,
            wire=wire,
            beside=first.request,
        )

    def _part(self, account: Account, *, per_request: int = 0, **more: Any) -> _Part:
        """What was rendered, counted; `per_request` comes off the constants where it is a part of a request."""
        framing, tokenizer = self.framing, self.tokenizer
        items: dict[str, int] = {}
        own = tools = schema = 0
        for piece in account.pieces:
            tokens = tokenizer.count(piece.text) if piece.part is None else piece_tokens(piece, framing, tokenizer)
            if piece.component == "messages":
                item = piece.item_id
                if item is None:
                    own += tokens
                else:
                    items[item] = items.get(item, 0) + tokens
            elif piece.component == "tools":
                tools += tokens
            else:
                schema += tokens
        constants = account.constants(framing) - per_request
        found = tuple(items.items())
        return _Part(items=found, own=own, tools=tools, response_schema=schema, constants=constants, **more)

    def _rest(self, prompt: Prompt) -> _Part:
        """What stands beside the messages: tools and the response schema. They are the same in most turns."""
        held = self._beside
        if held is None or held[0].tools != prompt.tools or held[0].response_schema != prompt.response_schema:
            bare = msgspec.structs.replace(prompt, messages=())
            account, request = self.target.account(bare, healed=True), self.target.request(bare, healed=True)
            held = self._beside = (bare, self._part(account, request=request))
        return held[1]

    def _line(self, message: Message) -> _Part:
        """A message of a target that lists them one by one, counted and rendered; kept while it is in use."""
        blocks = message.blocks
        wire, account = self.target.line(message)
        made = self._part(account, per_request=self.framing.per_request, message=message, wire=wire)
        self._characters += sum([len(block.text) for block in blocks])
        if len(self._lines) >= _LINES or self._characters > _LINE_CHARACTERS:
            self._lines, self._characters = {}, 0
        self._lines[blocks[0].item_id if blocks else None] = made
        return made

    def _whole(self, prompt: Prompt, items: dict[str | None, int], total: int) -> int:
        """The count of the whole request by a tokenizer whose parts do not add up; the difference goes to the
        request's own texts, or comes off the largest item."""
        request: dict[str, Any] = self.target.request(prompt, healed=True)
        counted = count_request(self.framing, self.tokenizer, request).total
        owner = None if counted >= total or not items else max(items, key=lambda item: items[item])
        items[owner] = items.get(owner, 0) + counted - total
        return counted


def _same(held: Message | None, message: Message) -> bool:
    """Whether a message is sent as another is. What was the request is history in the next turn."""
    if held is None or held.blocks != message.blocks:
        return False
    return held == msgspec.structs.replace(message, place=held.place, cache=held.cache)


def costs_for(target: Target, tokenizer: Tokenizer, framing: Framing | None = None) -> Costs:
    """The costs of a target under a tokenizer, with a cache of its own where it has none."""
    counter = tokenizer if isinstance(tokenizer, BlockCounter) else BlockCounter(tokenizer)
    return Costs(target, counter, framing or framing_for(target.framing))
