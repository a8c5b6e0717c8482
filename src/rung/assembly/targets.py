"""Targets: from neutral messages to the keyword arguments of a provider's client call.

    from rung.assembly.targets import target
    request = target("openai-chat").request(prompt)
    client.chat.completions.create(model=model, **request)

Healing comes first (`rung.assembly.repair`), so a request is one that the provider takes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from rung.assembly.anthropic import anthropic_request
from rung.assembly.invisible import Invisible
from rung.assembly.messages import Block, Message, Prompt
from rung.assembly.openai import chat_request, responses_request
from rung.assembly.pieces import Account, Piece, account, line
from rung.assembly.plain import text_request
from rung.assembly.render import Style, message_text, render_block
from rung.assembly.repair import Healed, heal
from rung.errors import ConfigError, names

_BUILDERS: dict[str, Callable[[Prompt, Style], dict[str, Any]]] = {
    "openai-chat": chat_request,
    "openai-responses": responses_request,
    "anthropic": anthropic_request,
    "text": text_request,
}

_LISTED = {"openai-chat": "messages", "openai-responses": "input"}


class Target(msgspec.Struct, frozen=True, kw_only=True):
    """One output format.

    Attributes:
        name: `openai-chat`, `openai-responses`, `anthropic` or `text`.
        invisible: what becomes of invisible characters in quoted data: `strip` (they have no use there and
            hide text from reviewers), `show`, or `keep`.
    """

    name: str
    invisible: Invisible = "strip"

    @property
    def framing(self) -> str:
        """The name of the framing rules in `rung.tokens` that this target's requests are counted by."""
        return self.name

    @property
    def listed(self) -> str | None:
        """The field of a request that lists its messages one by one, each as it would stand alone; None: they are
        joined or merged."""
        return _LISTED.get(self.name)

    @property
    def style(self) -> Style:
        return Style(invisible=self.invisible, chat=self.name == "text")

    def render_block(self, block: Block, *, multi: bool) -> str:
        """The exact text that this block adds to its message; `multi` where the message holds others too."""
        return render_block(block, self.style, multi=multi)

    def message_text(self, message: Message) -> str:
        """The text content of a message: what its blocks add, one after the other."""
        return message_text(message, self.style)

    def heal(self, prompt: Prompt) -> Healed:
        """The prompt as this target takes it, and each change that was needed.

        Raises:
            PairingError: a second result for one call, or a result without an id that fits several calls.
        """
        return heal(prompt, self.name)

    def request(self, prompt: Prompt, *, healed: bool = False) -> dict[str, Any]:
        """Keyword arguments of the provider's client call, the model (and Anthropic's `max_tokens`) apart.

        Args:
            prompt: neutral messages.
            healed: they come from `heal`, which need not be done again.

        Raises:
            PairingError: as `heal`.
            InputError: media that the provider has no place for, or a schema that is not a JSON object.
        """
        return _BUILDERS[self.name](prompt if healed else heal(prompt, self.name).prompt, self.style)

    def account(self, prompt: Prompt, *, healed: bool = False) -> Account:
        """The texts that a counter sums, each with its item, and how often each constant is paid.

        `account(prompt).total(framing, tokenizer)` equals the total of `count_request` on the request.

        Raises:
            PairingError, InputError: as `request`.
        """
        return account(prompt if healed else heal(prompt, self.name).prompt, self.name, self.style)

    def line(self, message: Message) -> tuple[Sequence[dict[str, Any]], Account]:
        """What is sent of one healed message where a target lists its messages (`listed`), and its account.

        Raises:
            InputError: as `request`.
        """
        return line(message, self.name, self.style)

    def pieces(self, prompt: Prompt) -> tuple[Piece, ...]:
        """The pieces of `account`, in the order in which they appear."""
        return tuple(self.account(prompt).pieces)


TARGETS: tuple[str, ...] = tuple(_BUILDERS)


def target(name: str, *, invisible: Invisible = "strip") -> Target:
    """The target of a name.

    Raises:
        ConfigError: no such target.
    """
    if name not in _BUILDERS:
        raise ConfigError(f"no target `{name}` (use one of {names(TARGETS)})", path="target")
    return Target(name=name, invisible=invisible)
