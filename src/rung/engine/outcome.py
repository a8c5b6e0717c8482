"""What a run gives: its outcome, and the events on the way."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from rung.assembly.reply import NO_USAGE, TextDelta, Usage
from rung.compiler.manifest import Manifest
from rung.errors import ModelError
from rung.records.item import ContextItem

Status = Literal["done", "limit_reached", "escalated", "stopped", "failed"]
"""How a run ended: with an answer; at a limit; handed to a person; stopped for another reason; by the model's fault."""

REASONS = {
    "rounds": "the limit of tool rounds",
    "calls": "the limit of tool calls",
    "tokens": "the limit of tokens",
    "seconds": "the limit of time",
    "cost": "the limit of cost",
    "cost_unknown": "a limit of cost, and the model reports none",
    "context_full": "the context is full",
    "escalate": "a tool handed over to a person",
    "length": "the reply reached its longest length",
    "repeated_call": "the same call was repeated and gave nothing new",
    "refusal": "the model declined",
    "empty_reply": "the model said nothing",
    "model_timeout": "the model did not answer, or its connection broke",
    "model_rate_limit": "the provider asks to slow down",
    "model_reply": "the reply cannot be read",
    "model_failed": "the provider failed",
}
"""Stable reason codes of an outcome that is not `done`."""


class Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended.

    Attributes:
        text: the answer, or what can be said where a limit ended the run.
        status, reason: see `Status` and `REASONS`; the reason is empty when done.
        missing: what a partial answer lacks: calls that were not made, with why.
        usage: tokens and cost of this run's own calls of the model, as the provider counts them.
        tokens, cost: spent in all, sub-agents included.
        rounds, calls: rounds of tools, and tool calls.
        manifests: one for each request sent.
        items: what the run added to the session, in order.
        session, turn: where it ran.
        error: the model's error, where one ended the run.
        notes: what went wrong without ending the run, by name and kind.
    """

    text: str
    status: Status = "done"
    reason: str = ""
    missing: tuple[str, ...] = ()
    usage: Usage = NO_USAGE
    tokens: int = 0
    cost: float | None = None
    rounds: int = 0
    calls: int = 0
    manifests: tuple[Manifest, ...] = ()
    items: tuple[ContextItem[Any], ...] = ()
    session: str = ""
    turn: str = ""
    error: ModelError | None = None
    notes: tuple[str, ...] = ()

    @property
    def done(self) -> bool:
        """Whether the model gave its whole answer."""
        return self.status == "done"

    def __repr__(self) -> str:
        why = f" {self.reason}" if self.reason else ""
        return f"<Outcome {self.status}{why} chars={len(self.text)} rounds={self.rounds} tokens={self.tokens}>"


class ManifestMade(msgspec.Struct, frozen=True, kw_only=True, tag="manifest"):
    """A request was compiled and is about to be sent."""

    manifest: Manifest


class CallStarted(msgspec.Struct, frozen=True, kw_only=True, tag="call"):
    """The model asks for a call. `arguments` is its own text."""

    id: str
    name: str
    arguments: str


class Decision(msgspec.Struct, frozen=True, kw_only=True, tag="decision"):
    """What the gate decided on a call: made or not, and the reason codes."""

    id: str
    name: str
    outcome: Literal["allow", "ask", "deny"]
    reasons: tuple[str, ...] = ()
    made: bool = False


class CallEnded(msgspec.Struct, frozen=True, kw_only=True, tag="result"):
    """A result entered the session under this item id; `code` says how it failed, empty where it did not."""

    id: str
    name: str
    item: str
    code: str = ""


class Done(msgspec.Struct, frozen=True, kw_only=True, tag="done"):
    """The run is over. The last event."""

    outcome: Outcome


Event = TextDelta | ManifestMade | CallStarted | Decision | CallEnded | Done
