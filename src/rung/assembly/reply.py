"""What a model answers, and what the engine asks of a model: provider-neutral values and one small protocol.

    reply = await model.complete(turn.request, max_tokens=500)
    reply.text, reply.calls, reply.usage.total

Adapters for providers are in `rung.models`; a scripted fake is `rung.testing.model.ScriptedModel`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

import msgspec

from rung.records.item import Opaque, ToolCall

Stop = Literal["end", "tool_calls", "length", "refusal", "other"]
"""Why a reply ended: said all, wants tools, ran out of tokens, declined, or anything else."""


class Usage(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tokens as the provider counted them, in one meaning for all providers.

    Attributes:
        input: all tokens of the request, those read from and written to a cache included.
        output: all tokens of the reply, reasoning included.
        cached_input: the part of `input` that was read from a cache.
        cache_write: the part of `input` that was written to a cache.
        reasoning: the part of `output` that was spent on reasoning, where the provider says.
        cost: what it cost, in the currency of the prices given to the adapter; None without prices.
        reported: whether the provider sent figures at all; if not, all are zero.
    """

    input: int = 0
    output: int = 0
    cached_input: int = 0
    cache_write: int = 0
    reasoning: int = 0
    cost: float | None = None
    reported: bool = True

    @property
    def total(self) -> int:
        """The tokens of the request and the reply."""
        return self.input + self.output

    def __add__(self, other: Usage) -> Usage:
        """The sum of two calls. `cost` is None as soon as one of them is unknown."""
        known = self.cost is not None and other.cost is not None
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cached_input=self.cached_input + other.cached_input,
            cache_write=self.cache_write + other.cache_write,
            reasoning=self.reasoning + other.reasoning,
            cost=(self.cost or 0.0) + (other.cost or 0.0) if known else None,
            reported=self.reported and other.reported,
        )


NO_USAGE = Usage(reported=False)
"""The usage of a reply that came without figures."""


class Reply(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """One answer of a model.

    Attributes:
        text: what it said; a refusal's words when it declined.
        calls: the tools it wants called, in its order, ids unique. Arguments are the model's own text, and
            need not be JSON: whoever runs the call checks them.
        opaque: the provider's own blocks (signed reasoning), to be sent back as they are.
        usage: tokens and cost.
        stop: why it ended, in one meaning for all providers.
        raw_stop: the same in the provider's words.
        model: the model's name as the provider reports it.
        id: the provider's id of the reply, for its support and its logs.
    """

    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    opaque: tuple[Opaque, ...] = ()
    usage: Usage = NO_USAGE
    stop: Stop = "end"
    raw_stop: str = ""
    model: str = ""
    id: str = ""


class TextDelta(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="text"):
    """The next piece of the text."""

    text: str


class CallDelta(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="call"):
    """The next piece of a tool call's arguments. `index` says of which call; `id` and `name` once known."""

    index: int
    id: str = ""
    name: str = ""
    arguments: str = ""


class ReplyDone(msgspec.Struct, frozen=True, kw_only=True, gc=False, tag="done"):
    """The whole reply; the last event of a stream."""

    reply: Reply


StreamEvent = TextDelta | CallDelta | ReplyDone
OnEvent = Callable[[StreamEvent], object]
"""Takes events as they come; what it returns is ignored, what it raises ends the call."""


class Model(Protocol):
    """What the engine asks of a model."""

    @property
    def name(self) -> str:
        """The model's name, as manifests and logs show it: no key, no address."""
        ...

    @property
    def target(self) -> str:
        """The request format it takes: `openai-chat`, `openai-responses`, `anthropic` or `text`."""
        ...

    async def complete(
        self,
        request: Mapping[str, Any],
        *,
        max_tokens: int | None = None,
        stream: OnEvent | None = None,
    ) -> Reply:
        """Send one request and return the whole reply.

        Args:
            request: a turn's request: keyword arguments of the provider's client call, the model apart.
            max_tokens: the most tokens of the reply; None leaves it to the adapter or the provider.
            stream: called with each piece as it comes and with `ReplyDone` last; None asks for the reply in one.

        Raises:
            ModelError: or one of its subclasses, whichever provider it is.
        """
        ...


async def close(model: Model) -> None:
    """Close a model's connections, where it has any: it may be used again.

    Call it before an event loop ends that has used the model.
    """
    aclose = getattr(model, "aclose", None)
    if aclose is not None:
        await aclose()
