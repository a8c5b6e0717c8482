"""The rules, as frozen data. `PolicySet` is what a store is opened with."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, Literal

import msgspec

from rung.records.labels import Sensitivity

Mode = Literal["enforce", "warn", "observe"]
"""What a broken rule does: refuse, let pass with a warning, or let pass and only record it."""

Tokens = Annotated[int, msgspec.Meta(ge=0)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Name = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

USER_INTEGRITY = 80
"""Below this, a type is untrusted: what it says may inform, never steer."""

RULES: Mapping[str, str] = {
    "origin": "content first seen under an untrusted type enters a protected type only by a transform",
    "laundering": "a protected text shares no run of N normalised characters with untrusted items",
    "labels": "text that still carries its labels does not enter a protected type",
    "channel": "a tool's name, or a source not declared for it, does not bring in a protected type",
    "produces": "only a listed source registers a tool's text directly as evidence or memory",
    "seal": "after the seal only declared channels and registered items bring in instructions",
    "transition": "a type changes only along a listed transition",
    "validators": "a transition's validators accept the item",
    "size": "an item is no larger than the limit",
    "detection": "an item holds no secret or personal data where its source's policy refuses them",
    "clearance": "an item above the turn's clearance, or that needs scopes it lacks, stays out",
    "freshness": "an item older than its freshness class, expired or invalidated is not asserted",
}
"""The rules whose mode a policy can set. Tenants, digests and budgets are guarantees and have no mode."""


class Lifetime(enum.StrEnum):
    """How long what a source says stays the same."""

    DEPLOYMENT = "deployment"
    USER = "user"
    SESSION = "session"
    TURN = "turn"
    ON_DEMAND = "on_demand"


class TypePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How far a type may steer.

    Attributes:
        integrity: 0 to 100; at `USER_INTEGRITY` and above it is trusted.
        protected: only a transform with a guard, or a declared channel, brings text into it.
        text: what happens to lone surrogates and NUL: `refuse`, or `replace` by U+FFFD.
        freshness: its freshness class where neither item nor source names one.
    """

    integrity: Annotated[int, msgspec.Meta(ge=0, le=100)] = 20
    protected: bool = False
    text: Literal["refuse", "replace"] = "replace"
    freshness: str | None = None


class Transition(
    msgspec.Struct,
    frozen=True,
    kw_only=True,
    forbid_unknown_fields=True,
    rename={"source": "from", "target": "to"},
):
    """A change of type that is allowed, through validators that all must accept."""

    source: Name
    target: Name
    validators: tuple[str, ...] = ()
    mode: Mode = "enforce"


class Envelope(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a structured result says that it failed.

    Attributes:
        field: the top-level field that tells.
        ok: its values that mean success; any other is a failure.
        failed: its values that mean failure; any other is success. Give `ok` or `failed`.
        required: top-level fields without which it is a failure.
    """

    field: str | None = None
    ok: tuple[str | int | bool | None, ...] | None = None
    failed: tuple[str | int | bool | None, ...] | None = None
    required: tuple[str, ...] = ()


class SourcePolicy(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a source may bring in and how it is treated in a turn.

    Attributes:
        lifetime: how long its items stay the same; stable ones stand first in the prompt.
        max_age: seconds after which its items are stale; None: its freshness class decides.
        freshness: the name of a freshness class.
        sensitivity: what its items carry where the call says nothing.
        scopes: scopes that a reader of its items needs.
        max_tokens: the most that its items may take of a turn; None: no cap of its own.
        min_tokens: a share kept for it while others are filled.
        always_include: its items are required: a turn that cannot hold them fails.
        priority: higher is chosen first.
        truncation: how one of its items is shortened: `none`, `head`, `tail`, `middle`, `section`,
            `rows`, `json` or `log`.
        min_score: candidates scored lower stay out.
        limit: the most candidates taken from one fetch.
        timeout: seconds that a fetch may take.
        on_failure: `exclude` it with a line in the manifest, or `fail` the turn.
        produces: types that it may register directly, also of text that a tool brought in first.
        envelope: how its structured results report failure; None: the common signs.
        schema: the JSON Schema that the validator `schema` holds its results against.
        reports_failure: whether its prose may report a failure of its own (then markers are looked for).
        detect: what becomes of secrets and personal data in its items; see `rung.ledger.detection`.
        mark: interleave a marker into its texts (spotlighting).
        conflict: what to do when two of its items, or it and another source, state one key differently.
    """

    lifetime: Lifetime = Lifetime.TURN
    max_age: Seconds | None = None
    freshness: str | None = None
    sensitivity: Sensitivity | None = None
    scopes: frozenset[str] = frozenset()
    max_tokens: Tokens | None = None
    min_tokens: Tokens = 0
    always_include: bool = False
    priority: int = 0
    truncation: Literal["none", "head", "tail", "middle", "section", "rows", "json", "log"] = "none"
    min_score: float | None = None
    limit: Annotated[int, msgspec.Meta(ge=1)] | None = None
    timeout: Annotated[float, msgspec.Meta(gt=0)] = 10.0
    on_failure: Literal["exclude", "fail"] = "exclude"
    produces: tuple[str, ...] = ()
    envelope: Envelope | None = None
    schema: Mapping[str, object] | None = None
    reports_failure: bool = True
    detect: Literal["off", "label", "redact", "refuse"] = "off"
    mark: str | None = None
    conflict: Literal["prefer_fresher", "prefer_newer_version", "present", "ask"] | None = None


class TurnIntent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one turn may use: source names, clearance, scopes and budget (tokens)."""

    name: Name
    sources: frozenset[str] = frozenset()
    clearance: Sensitivity = Sensitivity.INTERNAL
    scopes: frozenset[str] = frozenset()
    budget: Tokens | None = None


class Budget(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Tokens of a turn.

    Attributes:
        input: the most that the whole request may take, framing and tools included.
        window: the model's context window; with it, input is at most window - reserve_output.
        reserve_output: kept for the reply.
        system, knowledge, memory, history, tools: the most that each component takes where an engine or `rung compile`
            compiles; `ContextStore.compile` takes them as `caps` and `history_tokens`.
    """

    input: Tokens = 6_000
    window: Tokens | None = None
    reserve_output: Tokens = 0
    system: Tokens = 2_000
    knowledge: Tokens = 3_000
    memory: Tokens = 1_000
    history: Tokens = 8_000
    tools: Tokens = 4_000

    def caps(self) -> dict[str, int]:
        """The caps of the components that are items, as `ContextStore.compile` takes them."""
        return {"system": self.system, "knowledge": self.knowledge, "memory": self.memory}

    def available(self) -> int:
        """The tokens that the request may take: the smaller of `input` and window - reserve_output."""
        if self.window is None:
            return self.input
        return max(0, min(self.input, self.window - self.reserve_output))


class HistoryRule(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a history that is too long is cut, in shares of the tokens that it may take.

    A larger block and a larger head keep more of the prompt's beginning from turn to turn (the provider's
    cache), and leave less for the latest exchanges.

    Attributes:
        block: how much is dropped at once.
        head: how much of what stood before the latest exchanges stays in front of them; 0: a plain window.
        epoch: after how many blocks the head moves up.
    """

    block: Annotated[float, msgspec.Meta(gt=0, le=0.9)] = 0.385
    head: Annotated[float, msgspec.Meta(ge=0, le=0.8)] = 0.305
    epoch: Annotated[int, msgspec.Meta(ge=1)] = 8


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Bounds of the guarantee and of an item.

    Attributes:
        item_bytes: the largest item, in bytes of UTF-8.
        shared_run: N: any shared run of at least so many normalised characters is found.
        short_text: texts of at least so many normalised characters are found whole, on word boundaries.
        first_party: hosts and e-mail domains (with `*.`) whose literals are the deployment's own.
        boilerplate: texts that the deployment's prompts and documents share; their runs are no hits.
        general_boilerplate: whether the texts that everybody's share (licences, import lines, scaffolds of schemas) are
            no hits either; see `rung.policy.boilerplate`.
        clock_skew: seconds that an observation may lie in the future before it is flagged.
    """

    item_bytes: Annotated[int, msgspec.Meta(ge=1)] = 16 * 1024 * 1024
    shared_run: Annotated[int, msgspec.Meta(ge=16, le=512)] = 44
    short_text: Annotated[int, msgspec.Meta(ge=4, le=64)] = 12
    first_party: tuple[str, ...] = ()
    boilerplate: tuple[str, ...] = ()
    general_boilerplate: bool = True
    clock_skew: Seconds = 60.0


class PolicySet(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """All the rules of a deployment: frozen, validated by `load`, `from_toml` or `validated`."""

    types: Mapping[str, TypePolicy]
    transitions: tuple[Transition, ...]
    sources: Mapping[str, SourcePolicy] = msgspec.field(default_factory=dict[str, SourcePolicy])
    freshness: Mapping[str, float] = msgspec.field(default_factory=dict[str, float])
    intents: Mapping[str, TurnIntent] = msgspec.field(default_factory=dict[str, TurnIntent])
    rules: Mapping[str, Mode] = msgspec.field(default_factory=dict[str, Mode])
    guards: tuple[str, ...] = ("approval",)
    budget: Budget = Budget()
    limits: Limits = Limits()
    history: HistoryRule = HistoryRule()
    conflicts: Mapping[str, str] = msgspec.field(default_factory=dict[str, str])

    def mode(self, rule: str) -> Mode:
        """The mode of a rule: `enforce` unless the policy says otherwise."""
        return self.rules.get(rule, "enforce")

    def source(self, name: str) -> SourcePolicy:
        """The policy of a source: by its exact name, else the longest `prefix*` that fits, else defaults."""
        found = self.sources.get(name)
        if found is not None:
            return found
        for prefix, policy in self._prefixes:
            if name.startswith(prefix):
                return policy
        return _DEFAULT_SOURCE

    @cached_property
    def _prefixes(self) -> tuple[tuple[str, SourcePolicy], ...]:
        """The policies of `prefix*`, the longest first."""
        found = [(name[:-1], policy) for name, policy in self.sources.items() if name.endswith("*")]
        return tuple(sorted(found, key=lambda one: len(one[0]), reverse=True))

    def integrity(self, type_name: str) -> int:
        """How far a type may steer; -1 for a type that the policy does not know."""
        policy = self.types.get(type_name)
        return -1 if policy is None else policy.integrity

    def trusted(self, type_name: str) -> bool:
        """Whether a type stands at USER or above."""
        return self.integrity(type_name) >= USER_INTEGRITY

    def protected(self, type_name: str) -> bool:
        """Whether a type is protected; an unknown one is, so that nothing enters it."""
        policy = self.types.get(type_name)
        return policy is None or policy.protected

    def transition(self, source: str, target: str) -> Transition | None:
        """The allowed change from one type to another, or None."""
        return next((t for t in self.transitions if t.source == source and t.target == target), None)


_DEFAULT_SOURCE = SourcePolicy()
