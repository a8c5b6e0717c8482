"""What things cost under one target, tokenizer and framing: remembered, so that a turn counts only what is new."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from rung.assembly.messages import Block, Message, Prompt
from rung.assembly.pieces import piece_tokens
from rung.assembly.repair import Repair
from rung.assembly.targets import Target
from rung.tokens.blocks import BlockCounter
from rung.tokens.framing import Framing, framing_for
from rung.tokens.protocol import Tokenizer
from rung.tokens.request import count_request

_KEPT = 8


class Weighed(msgspec.Struct, frozen=True, kw_only=True):
    """A prompt as its target takes it, with its tokens.

    Attributes:
        given: the prompt before healing.
        prompt: after it.
        repairs: what healing changed.
        items: tokens by item; None stands for the request's own texts.
        tools, response_schema: tokens of those.
        constants: what the framing adds.
        total: the tokens of the whole request.
    """

    given: Prompt
    prompt: Prompt
    repairs: tuple[Repair, ...]
    items: Mapping[str | None, int]
    tools: int
    response_schema: int
    constants: int
    total: int


class Costs:
    """The token costs of blocks, messages and whole prompts. Safe for threads."""

    def __init__(self, target: Target, tokenizer: Tokenizer, framing: Framing) -> None:
        self.target = target
        self.tokenizer = tokenizer
        self.framing = framing
        # The same few prompts are asked for again within a turn, and the stable part in every turn.
        self._recent: deque[Weighed] = deque(maxlen=_KEPT)

    def block(self, block: Block) -> int:
        """What a quoted block adds to the context message."""
        return self.tokenizer.count(self.target.render_block(block, multi=True))

    def prompt(self, prompt: Prompt) -> int:
        """The tokens of the whole request."""
        return self.weigh(prompt).total

    def messages(self, messages: Sequence[Message]) -> int:
        """What these messages add to a request; where the target merges messages, a little more than they add."""
        return self._weigh(Prompt(messages=tuple(messages))).total - self.framing.per_request

    def weigh(self, prompt: Prompt) -> Weighed:
        """The prompt with its tokens, by item and part."""
        for known in tuple(self._recent):
            if known.given == prompt:
                return known
        made = self._weigh(prompt)
        self._recent.append(made)
        return made

    def _weigh(self, prompt: Prompt) -> Weighed:
        healed = self.target.heal(prompt)
        account = self.target.account(healed.prompt, healed=True)
        items: dict[str | None, int] = {}
        parts = {"tools": 0, "response_schema": 0}
        for piece in account.pieces:
            tokens = piece_tokens(piece, self.framing, self.tokenizer)
            if piece.component == "messages":
                items[piece.item_id] = items.get(piece.item_id, 0) + tokens
            else:
                parts[piece.component] += tokens
        constants = account.constants(self.framing)
        total = sum(items.values()) + sum(parts.values()) + constants
        if not self.tokenizer.additive_newline:
            total = self._whole(healed.prompt, items, total)
        return Weighed(
            given=prompt,
            prompt=healed.prompt,
            repairs=healed.repairs,
            items=items,
            tools=parts["tools"],
            response_schema=parts["response_schema"],
            constants=constants,
            total=total,
        )

    def _whole(self, prompt: Prompt, items: dict[str | None, int], total: int) -> int:
        """The count of the whole request by a tokenizer whose parts do not add up; the difference goes to the
        request's own texts, or comes off the largest item."""
        request: dict[str, Any] = self.target.request(prompt, healed=True)
        counted = count_request(self.framing, self.tokenizer, request).total
        owner = None if counted >= total or not items else max(items, key=lambda item: items[item])
        items[owner] = items.get(owner, 0) + counted - total
        return counted


def costs_for(target: Target, tokenizer: Tokenizer, framing: Framing | None = None) -> Costs:
    """The costs of a target under a tokenizer, with a cache of its own where it has none."""
    counter = tokenizer if isinstance(tokenizer, BlockCounter) else BlockCounter(tokenizer)
    return Costs(target, counter, framing or framing_for(target.framing))
