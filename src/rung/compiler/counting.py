"""What things cost under one target, tokenizer and framing: remembered, so that a turn counts only what is new."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rung.assembly.messages import Block, Message, Prompt
from rung.assembly.pieces import piece_tokens
from rung.assembly.targets import Target
from rung.tokens.blocks import BlockCounter
from rung.tokens.framing import Framing, framing_for
from rung.tokens.protocol import Tokenizer


class Costs(msgspec.Struct, frozen=True, kw_only=True):
    """The token costs of blocks, messages and whole prompts."""

    target: Target
    tokenizer: Tokenizer
    framing: Framing

    def block(self, block: Block) -> int:
        """What a quoted block adds to the context message."""
        return self.tokenizer.count(self.target.render_block(block, multi=True))

    def prompt(self, prompt: Prompt) -> int:
        """The tokens of the whole request."""
        return self.target.account(prompt).total(self.framing, self.tokenizer)

    def messages(self, messages: Sequence[Message]) -> int:
        """What these messages add to a request; where the target merges messages, a little more than they add."""
        found = self.target.account(Prompt(messages=tuple(messages)))
        return found.total(self.framing, self.tokenizer) - self.framing.per_request

    def by_item(self, prompt: Prompt) -> tuple[dict[str | None, int], dict[str, int], int]:
        """Tokens by item (None: the request's own texts), by component, and of the framing's constants."""
        found = self.target.account(prompt)
        items: dict[str | None, int] = {}
        components: dict[str, int] = {}
        for piece in found.pieces:
            tokens = piece_tokens(piece, self.framing, self.tokenizer)
            components[piece.component] = components.get(piece.component, 0) + tokens
            if piece.component == "messages":
                items[piece.item_id] = items.get(piece.item_id, 0) + tokens
        return items, components, found.constants(self.framing)


def costs_for(target: Target, tokenizer: Tokenizer, framing: Framing | None = None) -> Costs:
    """The costs of a target under a tokenizer, with a cache of its own where it has none."""
    counter = tokenizer if isinstance(tokenizer, BlockCounter) else BlockCounter(tokenizer)
    return Costs(target=target, tokenizer=counter, framing=framing or framing_for(target.framing))
