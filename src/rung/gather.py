"""`compile_context`: fetch what the intent allows, take it in, and compile the turn."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, cast

import msgspec

from rung.compiler.facts import is_talk
from rung.compiler.manifest import Entry
from rung.compiler.turn import Turn
from rung.errors import ConfigError, InputError, RungError, SourceError, kind
from rung.policy.freshness import age
from rung.policy.rules import PolicySet, SourcePolicy, TurnIntent
from rung.records.draft import Draft
from rung.records.item import ContextItem, body
from rung.records.labels import Sensitivity
from rung.records.template import FilledTemplate
from rung.sources.protocol import ContextSource, Fetch, RefreshingSource, Scored
from rung.store import ContextStore, core


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    """What one source gave: items with their scores, or a manifest row that says why not."""

    items: tuple[ContextItem[Any], ...] = ()
    scores: dict[str, float] = {}
    row: Entry | None = None


async def compile_context(
    store: ContextStore,
    sources: Iterable[ContextSource],
    intent: TurnIntent | None = None,
    *,
    items: Iterable[ContextItem[Any] | FilledTemplate] | None = None,
    budget: int | None = None,
    target: str = "openai-chat",
    **options: Any,
) -> Turn:
    """The turn of a request: its own items and what the sources bring, fetched concurrently.

    Args:
        store: the handle whose tenant, subject and session the turn is for.
        sources: where candidates come from. One that the intent, its sensitivity or its scopes exclude is
            not touched.
        intent: what the turn may use; None: every source given.
        items: instructions, history and the request; None: the session's items in their order.
        budget: the most tokens of the request; None: the intent's, else the policy's.
        target: see `ContextStore.compile`.
        options: further fields of `rung.compiler.entry.Options`.

    Raises:
        SourceError: a source that must not fail did.
        BudgetError, ScopeError, InputError: as `ContextStore.compile`.
    """
    given = [
        item if isinstance(item, ContextItem) else store.instruct(item)
        for item in (store.items() if items is None else items)
    ]
    request = next((item for item in reversed(given) if item.type.name == "user"), None)
    if request is None:
        raise InputError("the turn has no request (add one: store.user(question))", field="items")
    found = await gather_context(store, sources, intent, request, given)
    given = [*found.given]
    last = max(number for number, item in enumerate(given) if item.type.name == "user")
    return store.compile(
        [*given[:last], *found.items, *given[last:]],
        budget=budget,
        target=target,
        intent=intent,
        scores={**found.scores, **options.pop("scores", {})},
        rows=(*found.rows, *options.pop("rows", ())),
        **options,
    )


class Gathered(msgspec.Struct, frozen=True, kw_only=True):
    """What the sources of a turn gave.

    Attributes:
        items: taken in, in the order of the sources; stale ones renewed where their source can.
        given: the items handed in, renewed likewise.
        scores: item id to score.
        rows: manifest rows of sources that were not fetched or failed.
    """

    items: tuple[ContextItem[Any], ...] = ()
    given: tuple[ContextItem[Any], ...] = ()
    scores: Mapping[str, float] = {}
    rows: tuple[Entry, ...] = ()


async def gather_context(
    store: ContextStore,
    sources: Iterable[ContextSource],
    intent: TurnIntent | None,
    request: ContextItem[Any],
    given: Iterable[ContextItem[Any]] = (),
) -> Gathered:
    """Fetch what the intent allows, concurrently, and take it in; renew what is stale of it and of `given`.

    Raises:
        SourceError: a source that must not fail did.
    """
    wanted = _unique(sources)
    outcomes = await asyncio.gather(*(_ask(store, source, intent, request) for source in wanted))
    found = Gathered(
        items=tuple(item for outcome in outcomes for item in outcome.items),
        given=tuple(given),
        scores={item_id: score for outcome in outcomes for item_id, score in outcome.scores.items()},
        rows=tuple(outcome.row for outcome in outcomes if outcome.row is not None),
    )
    return await _renewed(store, wanted, intent, request, found)


async def _renewed(
    store: ContextStore,
    sources: Sequence[ContextSource],
    intent: TurnIntent | None,
    request: ContextItem[Any],
    found: Gathered,
) -> Gathered:
    """Stale items of sources that can renew them, each renewed once; what cannot be stays stale and is left out."""
    ledger, reach = core(store)
    policy, now = ledger.policy, ledger.now()
    able = {source.name: source for source in sources if isinstance(source, RefreshingSource)}
    if not able:
        return found
    everything = [*found.given, *found.items]
    invalidated = ledger.invalidated(everything, reach)
    stale = [
        item
        for item in everything
        if item.source in able
        and is_asserted(item)
        and _barred(policy, item.source, policy.source(item.source), intent) is None
        and age(policy, item, now, item.id in invalidated).state != "fresh"
    ]
    outcomes = await asyncio.gather(*(_renew(store, able[item.source], item, intent, request) for item in stale))
    new: dict[str, ContextItem[Any]] = {}
    rows: list[Entry] = []
    scores = dict(found.scores)
    for item, outcome in zip(stale, outcomes, strict=True):
        if isinstance(outcome, Entry):
            rows.append(outcome)
        elif outcome is not None:
            new[item.id] = outcome
            if item.id in scores:
                scores[outcome.id] = scores[item.id]
    return Gathered(
        items=tuple(new.get(one.id, one) for one in found.items),
        given=tuple(new.get(one.id, one) for one in found.given),
        scores=scores,
        rows=(*found.rows, *rows),
    )


async def _renew(
    store: ContextStore,
    source: RefreshingSource,
    item: ContextItem[Any],
    intent: TurnIntent | None,
    request: ContextItem[Any],
) -> ContextItem[Any] | Entry | None:
    rules = core(store)[0].policy.source(source.name)
    want = _want(store, source.name, intent, request)
    try:
        draft = await asyncio.wait_for(_called(source.refresh, item, want), rules.timeout)
        if draft is None:
            return None
        renewed, _ = await asyncio.to_thread(_taken_in, store, source.name, [cast("Draft", draft)])
    except Exception as problem:
        reason = "timeout" if isinstance(problem, TimeoutError) else "fetch_failed"
        return Entry(
            source=source.name, state="failed", reason=reason, params={"refresh": item.id, "error": kind(problem)}
        )
    return renewed[0]


def is_asserted(item: ContextItem[Any]) -> bool:
    """Whether an item says how things are now, so that its age matters: history and instructions do not."""
    return not is_talk(item) and item.type.name not in ("instruction", "policy", "summary")


def _unique(sources: Iterable[ContextSource]) -> list[ContextSource]:
    wanted = list(sources)
    seen: set[str] = set()
    for source in wanted:
        if source.name in seen:
            raise ConfigError(f"two sources are named `{source.name}` (rename one)", path=source.name)
        seen.add(source.name)
    return wanted


async def _ask(
    store: ContextStore, source: ContextSource, intent: TurnIntent | None, request: ContextItem[Any]
) -> _Outcome:
    policy = core(store)[0].policy
    rules = policy.source(source.name)
    barred = _barred(policy, source.name, rules, intent)
    if barred is not None:
        return _Outcome(row=Entry(source=source.name, state="not_fetched", reason=barred))
    want = _want(store, source.name, intent, request)
    try:
        fetched = await asyncio.wait_for(_called(source.fetch, want), rules.timeout)
        items, scores = await asyncio.to_thread(_taken_in, store, source.name, list(fetched))
    except TimeoutError:
        return _failed(source.name, rules, "timeout", {"seconds": rules.timeout}, None)
    except RungError as problem:
        return _failed(source.name, rules, "fetch_failed", {"error": kind(problem)}, problem)
    except Exception as problem:
        return _failed(source.name, rules, "fetch_failed", {"error": kind(problem)}, problem)
    return _Outcome(items=tuple(items), scores=scores)


def _barred(policy: PolicySet, name: str, rules: SourcePolicy, intent: TurnIntent | None) -> str | None:
    if intent is None:
        return None
    if name not in intent.sources:
        return "not_in_intent"
    if rules.sensitivity is not None and rules.sensitivity > intent.clearance and policy.mode("clearance") == "enforce":
        return "above_clearance"
    if not rules.scopes <= intent.scopes and policy.mode("clearance") == "enforce":
        return "missing_scope"
    return None


def _want(store: ContextStore, name: str, intent: TurnIntent | None, request: ContextItem[Any]) -> Fetch:
    ledger, reach = core(store)
    rules = ledger.policy.source(name)
    return Fetch(
        query=body(request),
        now=ledger.now(),
        tenant=reach.tenant,
        subject=reach.subject,
        session=reach.session,
        clearance=Sensitivity.RESTRICTED if intent is None else intent.clearance,
        scopes=frozenset() if intent is None else intent.scopes,
        limit=rules.limit,
        tokens=rules.max_tokens,
    )


async def _called(function: Callable[..., Any], *arguments: Any) -> Any:
    """What a function gives, sync (in a thread) or async."""
    if inspect.iscoroutinefunction(function):
        return await function(*arguments)
    found = await asyncio.to_thread(function, *arguments)
    return await found if inspect.isawaitable(found) else found


def _taken_in(
    store: ContextStore, name: str, fetched: Sequence[Draft | ContextItem[Any] | Scored]
) -> tuple[list[ContextItem[Any]], dict[str, float]]:
    drafts = [
        msgspec.structs.replace(entry, source=entry.source or name) for entry in fetched if isinstance(entry, Draft)
    ]
    for draft in drafts:
        if draft.source != name:
            raise SourceError(
                f"source `{name}` gave a draft that says it is from `{draft.source}` (leave its source empty)",
                source=name,
            )
    stored = [
        entry if isinstance(entry, ContextItem) else entry.item for entry in fetched if not isinstance(entry, Draft)
    ]
    if stored:
        # What this handle may not read is the source's failure, not the turn's.
        ledger, reach = core(store)
        ledger.issued(stored, reach)
    added = iter(store.add_many(drafts)) if drafts else iter(())
    items: list[ContextItem[Any]] = []
    scores: dict[str, float] = {}
    for entry in fetched:
        if isinstance(entry, ContextItem):
            items.append(entry)
            continue
        item = next(added) if isinstance(entry, Draft) else entry.item
        items.append(item)
        if entry.score is not None:
            scores[item.id] = max(entry.score, scores.get(item.id, entry.score))
    return items, scores


def _failed(name: str, rules: SourcePolicy, reason: str, params: dict[str, Any], problem: Exception | None) -> _Outcome:
    if rules.on_failure == "fail" or rules.always_include:
        why = "did not answer in time" if problem is None else f"failed: {problem}"
        raise SourceError(
            f"source `{name}` {why} (mend it, or set sources.{name}.on_failure)", source=name, reason=reason
        ) from problem
    return _Outcome(row=Entry(source=name, state="failed", reason=reason, params=params))
