"""The plan: candidates of a turn and what has been decided of each. Passes map a frozen plan to a frozen plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from rung.assembly.messages import ToolSchema
from rung.compiler.facts import Facts
from rung.compiler.manifest import Conflict, Entry, State
from rung.compiler.past import Earlier, Window
from rung.policy.rules import HistoryRule, PolicySet, SourcePolicy, TurnIntent
from rung.records.item import ContextItem
from rung.records.labels import Sensitivity

Place = Literal["instructions", "summary", "history", "context", "request", "after"]
"""Where an item stands. `after` is what followed the request: the calls and results of the turn in progress."""


class Candidate(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item that may come in, and what was decided of it.

    Attributes:
        item: the store's own copy.
        place: where it stands.
        facts: what is known of it whatever the turn.
        score: how well it fits the turn, higher is better; None: not scored.
        required: without it the turn fails.
        order: its place in what was handed in: 0 is first.
        rank: what goes first into the room that is left: priority, score, age, order; the least first.
        state, reason, params: None while it is still in.
        text: its text after truncation; None: whole.
        label: the short id that a reply can cite.
        attrs: what its frame says beside that.
        owners: items whose slots show it.
    """

    item: ContextItem[Any]
    place: Place
    facts: Facts
    score: float | None = None
    required: bool = False
    order: int = 0
    rank: tuple[float, ...] = ()
    state: State | None = None
    reason: str = "selected"
    params: dict[str, Any] = {}
    text: str | None = None
    label: str
    attrs: tuple[tuple[str, str], ...] = ()
    owners: tuple[str, ...] = ()

    @property
    def rules(self) -> SourcePolicy:
        """The policy of its source."""
        return self.facts.rules

    @property
    def alive(self) -> bool:
        """Whether it is still in."""
        return self.state is None or self.state == "truncated"

    def out(self, state: State, reason: str, **params: Any) -> Candidate:
        """The same candidate, left out."""
        return msgspec.structs.replace(self, state=state, reason=reason, params=params)


class Left(msgspec.Struct, frozen=True, kw_only=True):
    """What the fit left out, by the order of the candidates.

    Attributes:
        looked: of those that it looked at the reason and its parameters.
        rest: the tokens of those that it did not look at, because not even the smallest had room any more.
        room: the tokens that were left then.
    """

    looked: Mapping[int, tuple[str, dict[str, Any]]]
    rest: Mapping[int, int]
    room: int


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that a turn is decided from.

    Attributes:
        budget: tokens asked for; `available` is what the request may take after the reserve.
        both: show an item and the one promoted from it.
        caps: the most tokens of a component: `system`, `knowledge`, `memory`.
        past: the session's earlier exchanges, where the history is read from the session.
        window: the part of them that is sent, where it is taken as it was rendered.
        left: what the fit left out.
        rows: manifest rows of what never became a candidate: sources not fetched, failed.
    """

    candidates: tuple[Candidate, ...]
    policy: PolicySet
    now: datetime
    target: str
    budget: int
    available: int
    reserve_output: int
    intent: TurnIntent | None = None
    clearance: Sensitivity = Sensitivity.RESTRICTED
    scopes: frozenset[str] | None = None
    tenant: str | None = None
    subject: str | None = None
    session: str | None = None
    tools: tuple[ToolSchema, ...] = ()
    response_schema: tuple[str, str] | None = None
    invalidated: Mapping[str, str] = {}
    revoked: Mapping[str, str] = {}
    both: bool = False
    caps: Mapping[str, int] = {}
    select: Literal["greedy", "value"] = "greedy"
    cache: bool = True
    history_tokens: int | None = None
    history_rule: HistoryRule = HistoryRule()
    past: Earlier | None = None
    window: Window | None = None
    conflicts: tuple[Conflict, ...] = ()
    rows: tuple[Entry, ...] = ()
    notes: tuple[str, ...] = ()
    left: Left | None = None

    def alive(self) -> list[Candidate]:
        """The candidates that are still in, in their order."""
        found = [one for one in self.candidates if one.state is None or one.state == "truncated"]
        if self.left is None:
            return found
        looked, rest = self.left.looked, self.left.rest
        return [one for one in found if one.order not in rest and one.order not in looked]

    def with_(self, candidates: tuple[Candidate, ...], **more: Any) -> Plan:
        """The plan with other candidates."""
        return msgspec.structs.replace(self, candidates=candidates, **more)


Pass = Callable[[Plan], Plan]
