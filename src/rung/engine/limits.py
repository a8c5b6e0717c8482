"""What a run may spend: one budget of rounds, calls, tokens, seconds and money, shared with sub-agents."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Literal

import msgspec

from rung.assembly.reply import Usage
from rung.errors import ConfigError

Limit = Literal["rounds", "calls", "tokens", "seconds", "cost", "cost_unknown"]


class RunLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The most of everything; None: no limit.

    Attributes:
        rounds: rounds of tools: a reply that asks for calls, and their results.
        calls: tool calls.
        calls_per_round: calls of one reply that are made; further ones are refused.
        tokens: of all requests and replies, as the provider counts them.
        seconds: from the start of the run.
        cost: money, in the currency of the model's prices. A model without prices ends the run at once.
        repeated: the how-manieth identical call, with nothing new in its results, ends the run.
        on_limit: `answer`: one more call of the model, without tools, to answer from what is known; `partial`: say
            what is missing, without the model; `escalate`: the same, for a person to take over.

    Raises:
        ConfigError: a limit below its least value.
    """

    rounds: int = 10
    calls: int | None = 100
    calls_per_round: int = 16
    tokens: int | None = None
    seconds: float | None = None
    cost: float | None = None
    repeated: int = 3
    on_limit: Literal["answer", "partial", "escalate"] = "answer"

    def __post_init__(self) -> None:
        least = {"rounds": 0, "calls": 0, "calls_per_round": 1, "tokens": 1, "seconds": 0, "cost": 0, "repeated": 2}
        for name, bound in least.items():
            value = getattr(self, name)
            if value is not None and value < bound:
                raise ConfigError(f"`limits.{name}` is {value} (give {bound} or more)", path=f"limits.{name}")


class RunBudget:
    """What is left of the limits. A sub-agent spends from its own budget and from all those above it.

    Args:
        limits: the most of everything.
        above: the budget of the run that handed this one over.
        monotonic: seconds of a clock that never goes back.
    """

    def __init__(
        self,
        limits: RunLimits,
        *,
        above: RunBudget | None = None,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.limits = limits
        self.rounds = 0
        self.calls = 0
        self.usage: Usage | None = None
        self._above = above
        self._monotonic: Callable[[], float] = monotonic if above is None else above._monotonic
        self._start = self._monotonic()
        self._tokens = 0
        self._cost: float | None = 0.0

    def child(self, limits: RunLimits) -> RunBudget:
        """A budget for handed-over work: never more than what is left here."""
        return RunBudget(limits, above=self)

    @property
    def tokens(self) -> int:
        """Tokens spent, those of sub-agents included; where a provider sent no figures, our own count."""
        return self._tokens

    @property
    def cost(self) -> float | None:
        """Money spent, those of sub-agents included; None as soon as one call's cost is unknown."""
        return self._cost

    def charge(self, usage: Usage, counted: int) -> None:
        """One call of the model; `counted` are its tokens by our own count."""
        self.usage = usage if self.usage is None else self.usage + usage
        self._spend(usage.total if usage.reported else counted, usage.cost)

    def _spend(self, tokens: int, cost: float | None) -> None:
        self._tokens += tokens
        self._cost = None if self._cost is None or cost is None else self._cost + cost
        if self._above is not None:
            self._above._spend(tokens, cost)

    def round(self) -> None:
        """One round of tools begins."""
        self.rounds += 1
        if self._above is not None:
            self._above.round()

    def call(self) -> None:
        """One tool is called."""
        self.calls += 1
        if self._above is not None:
            self._above.call()

    def seconds_left(self) -> float | None:
        """Seconds until the nearest end, at least 0; None: no limit."""
        own = self.limits.seconds
        left = None if own is None else max(0.0, own - (self._monotonic() - self._start))
        above = None if self._above is None else self._above.seconds_left()
        known = [value for value in (left, above) if value is not None]
        return min(known) if known else None

    def calls_left(self) -> int | None:
        """Tool calls that may still be made; None: no limit."""
        left = None if self.limits.calls is None else max(0, self.limits.calls - self.calls)
        above = None if self._above is None else self._above.calls_left()
        known = [value for value in (left, above) if value is not None]
        return min(known) if known else None

    def tokens_left(self) -> int | None:
        """Tokens that may still be spent; None: no limit."""
        left = None if self.limits.tokens is None else max(0, self.limits.tokens - self._tokens)
        above = None if self._above is None else self._above.tokens_left()
        known = [value for value in (left, above) if value is not None]
        return min(known) if known else None

    def reached(self, tokens: int = 0) -> Limit | None:
        """The limit that forbids another call of the model with a request of so many tokens."""
        limits = self.limits
        if limits.tokens is not None and self._tokens + tokens >= limits.tokens:
            return "tokens"
        if limits.seconds is not None and self._monotonic() - self._start >= limits.seconds:
            return "seconds"
        if limits.cost is not None:
            if self._cost is None:
                return "cost_unknown"
            if self._cost >= limits.cost:
                return "cost"
        return None if self._above is None else self._above.reached(tokens)

    def no_more_rounds(self) -> Limit | None:
        """The limit that forbids another round of tools."""
        if self.rounds >= self.limits.rounds:
            return "rounds"
        if self.limits.calls is not None and self.calls >= self.limits.calls:
            return "calls"
        return None if self._above is None else self._above.no_more_rounds()
