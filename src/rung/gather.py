"""`compile_context`: fetch what the intent allows, take it in, and compile the turn."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Iterable, Sequence
from typing import Any, cast

import msgspec

from rung.compiler.entry import Options, compile_items
from rung.compiler.manifest import Entry
from rung.compiler.turn import Turn
from rung.errors import ConfigError, InputError, RungError, SourceError, kind
from rung.policy.rules import PolicySet, SourcePolicy, TurnIntent
from rung.records.draft import Draft
from rung.records.item import ContextItem, body
from rung.records.labels import Sensitivity
from rung.records.template import FilledTemplate
from rung.sources.protocol import ContextSource, Fetch, Fetched, Scored
from rung.store import ContextStore, caches, core


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
    ledger, reach = core(store)
    wanted = _unique(sources)
    outcomes = await asyncio.gather(*(_ask(store, source, intent, request) for source in wanted))
    found = [item for outcome in outcomes for item in outcome.items]
    scores = {item_id: score for outcome in outcomes for item_id, score in outcome.scores.items()}
    rows = tuple(outcome.row for outcome in outcomes if outcome.row is not None)
    made = Options(
        budget=budget,
        target=target,
        intent=intent,
        scores={**scores, **options.pop("scores", {})},
        rows=rows,
        **options,
    )
    last = max(number for number, item in enumerate(given) if item.type.name == "user")
    return compile_items(ledger, reach, [*given[:last], *found, *given[last:]], made, *caches(store))


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
    ledger, reach = core(store)
    policy = ledger.policy
    rules = policy.source(source.name)
    barred = _barred(policy, source.name, rules, intent)
    if barred is not None:
        return _Outcome(row=Entry(source=source.name, state="not_fetched", reason=barred))
    want = Fetch(
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
    try:
        fetched = await asyncio.wait_for(_fetch(source, want), rules.timeout)
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


async def _fetch(source: ContextSource, want: Fetch) -> Fetched:
    if inspect.iscoroutinefunction(source.fetch):
        return cast("Fetched", await source.fetch(want))
    found = await asyncio.to_thread(source.fetch, want)
    if inspect.isawaitable(found):
        return await found
    return found


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
