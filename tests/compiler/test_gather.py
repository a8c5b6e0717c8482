"""Sources, intents and freshness: what is fetched, within what time, and what happens when it fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from rung import (
    ConfigError,
    ContextItem,
    ContextStore,
    Draft,
    Evidence,
    Fetch,
    Memory,
    PolicySet,
    Sensitivity,
    SourceError,
    SourcePolicy,
    ToolOutput,
    Turn,
    TurnIntent,
    compile_context,
    default_policy,
)
from rung.sources.simple import CallableSource, FixedSource

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def store_with(**sources: SourcePolicy) -> ContextStore:
    base = default_policy()
    policy = PolicySet(types=base.types, transitions=base.transitions, freshness=base.freshness, sources=sources)
    return ContextStore(policy, clock=lambda: NOW)


def compiled(store: ContextStore, sources: list[Any], intent: TurnIntent | None = None, **options: Any) -> Turn:
    items = [store.instruct("Answer."), *options.pop("items", ()), store.user("Where is order 7?")]
    return asyncio.run(compile_context(store, sources, intent, items=items, verify="full", **options))


class Untouchable:
    """Fails the test when it is asked."""

    def __init__(self, name: str) -> None:
        self.name = name

    def fetch(self, want: Fetch) -> Any:
        raise AssertionError(f"{self.name} was touched")


def row(turn: Turn, source: str) -> tuple[str, str]:
    entry = next(entry for entry in turn.manifest.entries if entry.source == source)
    return entry.state, entry.reason


def test_what_the_intent_forbids_is_not_fetched() -> None:
    store = store_with(
        hr=SourcePolicy(sensitivity=Sensitivity.RESTRICTED), billing=SourcePolicy(scopes=frozenset({"billing:read"}))
    )
    intent = TurnIntent("order", frozenset({"kb", "hr", "billing"}), Sensitivity.INTERNAL)
    kb = FixedSource("kb", [Draft(type=Evidence, content="Order 7 is packed.")])
    turn = compiled(store, [kb, Untouchable("hr"), Untouchable("billing"), Untouchable("web")], intent)
    assert row(turn, "kb") == ("included", "selected")
    assert row(turn, "hr") == ("not_fetched", "above_clearance")
    assert row(turn, "billing") == ("not_fetched", "missing_scope")
    assert row(turn, "web") == ("not_fetched", "not_in_intent")


async def _hangs(_: Fetch) -> Any:
    await asyncio.sleep(30)


def _raises(_: Fetch) -> Any:
    raise RuntimeError("no connection")


def _wrong(_: Fetch) -> Any:
    return [Draft(type=Evidence, content="x", source="somebody else")]


FAULTS: dict[str, tuple[Callable[[Fetch], Any], str]] = {
    "hangs": (_hangs, "timeout"),
    "raises": (_raises, "fetch_failed"),
    "speaks for another": (_wrong, "fetch_failed"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_failing_source_is_a_line_in_the_manifest(name: str) -> None:
    call, reason = FAULTS[name]
    store = store_with(bad=SourcePolicy(timeout=0.05))
    good = FixedSource("kb", [Draft(type=Evidence, content="Order 7 is packed.")])
    turn = compiled(store, [CallableSource("bad", call), good])
    assert row(turn, "bad") == ("failed", reason)
    assert row(turn, "kb") == ("included", "selected")


@pytest.mark.parametrize("rule", [SourcePolicy(on_failure="fail"), SourcePolicy(always_include=True)])
def test_a_source_that_must_not_fail_fails_the_turn(rule: SourcePolicy) -> None:
    store = store_with(bad=rule)
    with pytest.raises(SourceError, match="source `bad` failed"):
        compiled(store, [CallableSource("bad", _raises)])


def test_sources_are_fetched_side_by_side() -> None:
    running = 0
    most = 0

    async def slow(_: Fetch) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.05)
        running -= 1
        return "x"

    compiled(store_with(), [CallableSource(f"s{n}", slow) for n in range(5)])
    assert most == 5


def test_two_sources_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="two sources are named `kb`"):
        compiled(store_with(), [FixedSource("kb", []), FixedSource("kb", [])])


def test_another_tenants_item_does_not_enter() -> None:
    store = store_with()
    theirs = store.scope(tenant="other").add(Memory, "theirs", source="kb")
    turn_store = store.scope(tenant="acme")
    turn = compiled(turn_store, [FixedSource("kb", [])])
    assert turn.manifest.entries
    turn = compiled(turn_store, [FixedSource("kb", [theirs])])
    row = next(row for row in turn.manifest.entries if row.source == "kb")
    assert (row.state, row.reason, row.params) == ("failed", "fetch_failed", {"error": "ForeignItemError"})
    assert "theirs" not in str(turn.request)


class Orders:
    """A source that can renew."""

    name = "tool:orders"

    def __init__(self, renewed: Draft | Exception | None) -> None:
        self.renewed = renewed
        self.asked: list[str] = []

    def fetch(self, want: Fetch) -> Any:
        return []

    def refresh(self, item: ContextItem[Any], want: Fetch) -> Draft | None:
        self.asked.append(item.id)
        if isinstance(self.renewed, Exception):
            raise self.renewed
        return self.renewed


def old_order(store: ContextStore) -> ContextItem[ToolOutput]:
    return store.add(
        ToolOutput, "Order 7: packed", source="tool:orders", key="order:7", observed_at=NOW - timedelta(minutes=6)
    )


def test_a_stale_item_is_renewed_once() -> None:
    store = store_with()
    old = old_order(store)
    source = Orders(Draft(type=ToolOutput, content="Order 7: shipped", key="order:7", observed_at=NOW))
    turn = compiled(store, [source], items=[old])
    assert source.asked == [old.id]
    assert "Order 7: shipped" in str(turn.request)
    assert "Order 7: packed" not in str(turn.request)


@pytest.mark.parametrize("outcome", [None, RuntimeError("down")])
def test_what_cannot_be_renewed_is_left_out_with_its_age(outcome: Any) -> None:
    store = store_with()
    old = old_order(store)
    turn = compiled(store, [Orders(outcome)], items=[old])
    entry = turn.manifest.of(old.id)
    assert entry is not None
    assert (entry.state, entry.reason) == ("stale", "stale")
    assert entry.params == {"age": 360.0, "limit": 300.0}


@pytest.mark.parametrize(
    ("age", "state"), [(299, "included"), (300, "included"), (301, "stale")], ids=["younger", "at the limit", "older"]
)
def test_the_class_of_live_values_is_five_minutes(age: int, state: str) -> None:
    store = store_with()
    item = store.add(ToolOutput, "v", source="tool:x", observed_at=NOW - timedelta(seconds=age))
    assert compiled(store, [], items=[item]).manifest.of(item.id).state == state  # type: ignore[union-attr]


def test_an_expired_item_is_never_asserted() -> None:
    store = store_with()
    item = store.add(Evidence, "v", source="kb", expires_at=NOW)
    assert row(compiled(store, [], items=[item]), "kb") == ("stale", "expired")
