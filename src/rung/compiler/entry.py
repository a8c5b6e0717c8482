"""compile_items: from items that the store issued to a turn. Pure passes over a frozen plan."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

import msgspec

from rung.assembly.messages import ToolSchema
from rung.assembly.targets import target as target_of
from rung.compiler.admit import admit, refresh
from rung.compiler.candidates import CandidateCache, candidates
from rung.compiler.counting import Costs, costs_for
from rung.compiler.facts import is_talk
from rung.compiler.fit import COMPONENTS, fit
from rung.compiler.labels import label
from rung.compiler.manifest import Entry
from rung.compiler.past import Earlier, Past
from rung.compiler.pasts import PastCache
from rung.compiler.plan import Pass, Plan
from rung.compiler.prefix import prefix
from rung.compiler.report import report
from rung.compiler.settle import settle
from rung.compiler.summaries import carried, is_of_session, session_summary
from rung.compiler.turn import Turn
from rung.compiler.verify import verify
from rung.errors import InputError, kind, names
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach
from rung.policy.rules import HistoryRule, PolicySet, TurnIntent
from rung.records.canonical import canonical_json
from rung.records.item import ContextItem, ToolCall
from rung.records.labels import Sensitivity
from rung.tokens.framing import Framing
from rung.tokens.models import tokenizer_for
from rung.tokens.protocol import Tokenizer

_PASSES: tuple[Pass, ...] = (admit, refresh, settle, label)


class _Caches(NamedTuple):
    """What a store keeps between turns."""

    pasts: PastCache
    candidates: CandidateCache


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """How a turn is compiled.

    Attributes:
        budget: the most tokens of the request; None: the intent's, else the policy's.
        target: `openai-chat`, `openai-responses`, `anthropic` or `text`.
        reserve_output: tokens kept for the reply out of `window`.
        window: the model's context window; the request takes at most window - reserve_output.
        tokenizer: a counter, or the name of an encoding or model.
        framing: other constants than the target's own.
        tools: tool schemas that go along.
        response_schema: (name, JSON Schema) that the reply must fit.
        intent: which sources, what clearance and scopes.
        scores: item id to score.
        both: show an item and the one promoted from it.
        select: `greedy` takes what ranks highest and fits; `value` maximises the sum of scores within a priority.
        cache: mark the stable parts of the prompt for the provider's cache, where the provider wants marks.
        caps: the most tokens of a component: `system` (instructions and policies; more of them fail the turn),
            `knowledge` (evidence) and `memory`, for example `policy.budget.caps()`.
        history_tokens: the most that the history takes.
        history_rule: how the history is cut; None: the policy's.
        verify: `full` counts the finished request anew.
        invisible: what becomes of invisible characters in quoted data.
        history: where the conversation comes from: the items handed in, or the handle's session, which is read
            as far as it is new and whose last USER item is the request unless one is handed in.
        turn: of the session's turns the one in progress, where several run at once; None: the latest.
        previous: the turn before, for the manifest's report on the equal prefix.
        rows: manifest rows of sources that gave no items.
    """

    budget: int | None = None
    target: str = "openai-chat"
    reserve_output: int | None = None
    window: int | None = None
    tokenizer: Tokenizer | str = "o200k_base"
    framing: Framing | None = None
    tools: tuple[ToolSchema, ...] = ()
    response_schema: tuple[str, Any] | None = None
    intent: TurnIntent | None = None
    clearance: Sensitivity | None = None
    scopes: frozenset[str] | None = None
    scores: Mapping[str, float] = {}
    both: bool = False
    select: Literal["greedy", "value"] = "greedy"
    cache: bool = True
    caps: Mapping[str, int] = {}
    history_tokens: int | None = None
    history_rule: HistoryRule | None = None
    verify: Literal["fast", "full"] | None = None
    invisible: Literal["keep", "strip", "show"] = "strip"
    history: Literal["items", "session"] = "items"
    turn: str | None = None
    previous: Turn | None = None
    rows: tuple[Entry, ...] = ()
    policy: PolicySet | None = None


def compile_items(
    ledger: Ledger,
    reach: Reach,
    items: Iterable[ContextItem[Any]],
    options: Options | None = None,
    pasts: PastCache | None = None,
    known: CandidateCache | None = None,
) -> Turn:
    """The turn of these items, in the order handed in.

    The last USER item is the request; what came before it in the conversation is history, and calls and
    results after it belong to the turn in progress.

    Raises:
        InputError: no request, an unfilled template, or a wrong option.
        ForeignItemError: an item that the store did not issue, or that was altered.
        ScopeError: something required may not enter.
        BudgetError: what is required does not fit.
    """
    stored = ledger.issued(items, reach)
    options = options or Options()
    if options.scores:
        options = msgspec.structs.replace(options, scores={**options.scores})
    return _compile(ledger, reach, stored, options, _Caches(pasts or PastCache(), known or CandidateCache()))


def _compile(
    ledger: Ledger, reach: Reach, stored: Sequence[ContextItem[Any]], options: Options, caches: _Caches
) -> Turn:
    def again(**changes: Any) -> Turn:
        # Asked for anew: what was erased since is in no other form of the turn either.
        items = ledger.get([item.id for item in stored], reach)
        return _compile(ledger, reach, items, msgspec.structs.replace(options, **changes), caches)

    costs = _costs.of(options)
    if options.history == "items":
        return _passed(ledger, reach, stored, options, costs, caches, None, again)
    if reach.session is None:
        raise InputError("a history of the session needs a session (use store.scope(session=…))", field="history")
    key = (reach.tenant, reach.subject, reach.session, costs)
    lock, past = caches.pasts.of(key, partial(Past, costs))
    with lock:
        past.read(ledger, reach)
        current, earlier = past.at(options.turn)
        talk = () if current is None else current.items
        known = {item.id for item in talk}
        given = [
            item
            for item in stored
            if item.id not in known
            and not (item.session == reach.session and is_talk(item) and item.seq <= past.cursor)
            and not is_of_session(item, reach.session)
        ]
        summary = session_summary(ledger, reach, past)
        if summary is not None:
            given += [summary, *carried(ledger, reach, summary)]
        for item in given:
            if any(isinstance(part, ToolCall) and part.id in past.calls for part in item.parts):
                earlier = msgspec.structs.replace(earlier, alone=False)
        return _passed(ledger, reach, [*given, *talk], options, costs, caches, earlier, again)


def _passed(
    ledger: Ledger,
    reach: Reach,
    stored: Sequence[ContextItem[Any]],
    options: Options,
    costs: Costs,
    caches: _Caches,
    past: Earlier | None,
    again: Callable[..., Turn],
) -> Turn:
    policy = options.policy or ledger.policy
    # What is known under the store's own policy does not hold under another.
    known = caches.candidates if options.policy is None else CandidateCache()
    plan = _plan(ledger, reach, stored, options, policy, past, known)
    for step in _PASSES:
        plan = step(plan)
    fitted = fit(plan, costs)
    prompt, request, manifest = report(fitted, costs)
    mode = options.verify or os.environ.get("RUNG_VERIFY", "fast")
    if options.previous is not None:
        manifest = msgspec.structs.replace(manifest, prefix=prefix(options.previous, prompt, manifest, costs))
    verify(manifest, fitted.weighed.prompt, request, costs, policy, full=mode == "full")
    return Turn(request=request, manifest=manifest, _prompt=prompt, _again=again)


class _CostsCache:
    """The costs of the targets, tokenizers and framings that are in use.

    Two generations: what is used again moves to the new one; when that is full, the old one is dropped.
    """

    def __init__(self, limit: int = 64) -> None:
        self._limit = max(1, limit // 2)
        self._lock = threading.Lock()
        self._new: dict[tuple[object, ...], Costs] = {}
        self._old: dict[tuple[object, ...], Costs] = {}

    def of(self, options: Options) -> Costs:
        tokenizer, framing = options.tokenizer, options.framing
        # A tokenizer or framing of any kind is known by its identity; the costs hold them, so it is used by no other.
        key = (
            options.target,
            options.invisible,
            tokenizer if isinstance(tokenizer, str) else id(tokenizer),
            None if framing is None else id(framing),
        )
        return self._new.get(key) or self._kept(key, self._old.get(key) or _made_costs(options))

    def _kept(self, key: tuple[object, ...], costs: Costs) -> Costs:
        with self._lock:
            if len(self._new) >= self._limit:
                self._old, self._new = self._new, {}
            return self._new.setdefault(key, costs)


_costs = _CostsCache()


def _made_costs(options: Options) -> Costs:
    tokenizer = options.tokenizer
    counter = tokenizer_for(tokenizer) if isinstance(tokenizer, str) else tokenizer
    return costs_for(target_of(options.target, invisible=options.invisible), counter, options.framing)


def _plan(
    ledger: Ledger,
    reach: Reach,
    stored: Sequence[ContextItem[Any]],
    options: Options,
    policy: PolicySet,
    past: Earlier | None,
    cache: CandidateCache,
) -> Plan:
    intent = options.intent
    rules = policy.budget
    budget = options.budget
    if budget is None:
        budget = intent.budget if intent is not None and intent.budget is not None else rules.input
    if isinstance(budget, bool) or not isinstance(budget, int) or budget < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError(
            f"`budget` is of kind {kind(budget)} or below 0 (give tokens as a whole number)", field="budget"
        )
    reserve = rules.reserve_output if options.reserve_output is None else options.reserve_output
    window = rules.window if options.window is None else options.window
    available = budget if window is None else max(0, min(budget, window - reserve))
    found = candidates(stored, options.scores, cache, policy, partial(ledger.get, reach=reach))
    items = [one.item for one in found]
    schema = options.response_schema
    return Plan(
        candidates=found,
        policy=policy,
        now=ledger.now(),
        target=options.target,
        budget=budget,
        available=available,
        reserve_output=reserve,
        intent=intent,
        clearance=options.clearance
        if options.clearance is not None
        else (Sensitivity.RESTRICTED if intent is None else intent.clearance),
        scopes=options.scopes if options.scopes is not None else (None if intent is None else intent.scopes),
        tenant=reach.tenant,
        subject=reach.subject,
        session=reach.session,
        tools=tuple(sorted(options.tools, key=lambda tool: tool.name)) if options.tools else (),
        response_schema=None if schema is None else (schema[0], _schema_text(schema[1])),
        invalidated=ledger.invalidated(items, reach, read=past is None),
        revoked=ledger.revoked([item.id for item in items], reach),
        both=options.both,
        caps=_caps(options.caps),
        select=options.select,
        cache=options.cache,
        history_tokens=options.history_tokens,
        history_rule=options.history_rule or policy.history,
        past=past,
        rows=options.rows,
    )


def _caps(given: Mapping[str, int]) -> Mapping[str, int]:
    for name, tokens in given.items():
        if name not in COMPONENTS:
            raise InputError(f"`caps` names `{name}`, which is no component (one of {names(COMPONENTS)})", field="caps")
        if isinstance(tokens, bool) or not isinstance(tokens, int) or tokens < 0:  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"`caps` gives `{name}` a value of kind {kind(tokens)} or below 0 (give tokens as a whole number)",
                field="caps",
            )
    return given


def _schema_text(schema: object) -> str:
    return schema if isinstance(schema, str) else canonical_json(schema, "response_schema")
