"""The prompt's beginning from turn to turn, and the report on it."""

from __future__ import annotations

import itertools
from datetime import UTC, datetime, timedelta

from rung import ContextStore, Evidence, Memory, PolicySet, SourcePolicy, ToolSchema, default_policy
from rung.policy.rules import Lifetime


def test_a_turn_that_only_grows_keeps_its_prefix() -> None:
    store = ContextStore()
    view = store.scope(session="s")
    rules = store.instruct("Answer.")
    view.user("one")
    first = view.compile([rules], history="session", verify="full")
    view.assistant("1")
    view.user("two")
    second = view.compile([rules], history="session", previous=first, verify="full")
    assert second.manifest.prefix is not None
    assert second.manifest.prefix.reason is None
    assert second.manifest.prefix.tokens == first.tokens


def test_a_change_of_instructions_is_named() -> None:
    store = ContextStore()
    old, new, question = store.instruct("Answer."), store.instruct("Answer briefly."), store.user("?")
    first = store.compile([old, question], verify="full")
    second = store.compile([new, question], previous=first, verify="full")
    assert second.manifest.prefix is not None
    assert (second.manifest.prefix.broken_by, second.manifest.prefix.reason) == (old.id, "gone")
    assert second.manifest.prefix.share < 0.5


def test_d_cache_prefix_01_a_clock_does_not_change_the_beginning() -> None:
    moments = itertools.count()
    store = ContextStore(clock=lambda: datetime(2026, 9, 9, 15, tzinfo=UTC) + timedelta(seconds=14 * next(moments)))
    rules, question = store.instruct("You are a helper."), store.user("?")
    first, second = (
        store.compile([rules, store.add(Evidence, f"it is {n} o'clock", source="clock"), question], verify="full")
        for n in (3, 4)
    )
    assert first.request["messages"][0] == second.request["messages"][0]
    assert first.request["messages"][1] != second.request["messages"][1]


def test_d_cache_prefix_03_the_same_memories_in_any_order_give_the_same_bytes() -> None:
    store = ContextStore()
    rules, question = store.instruct("Answer."), store.user("?")
    memories = [store.add(Memory, f"memory {name}", source="crm", key=name) for name in "abcd"]
    requests = {
        str(store.compile([rules, *order, question], verify="full").request)
        for order in itertools.permutations(memories)
    }
    assert len(requests) == 1


def test_d_cache_prefix_02_tools_in_any_order_give_the_same_bytes() -> None:
    store = ContextStore()
    items = [store.instruct("Answer."), store.user("?")]
    tools = [
        ToolSchema(name="b", parameters='{"type":"object","properties":{"z":{},"a":{}}}'),
        ToolSchema(name="a", parameters='{"properties":{"y":{}},"type":"object"}'),
    ]
    one = store.compile(items, tools=tuple(tools), verify="full")
    other = store.compile(items, tools=tuple(reversed(tools)), verify="full")
    assert str(one.request) == str(other.request)
    assert one.manifest.totals.tools > 0


def test_d_cache_prefix_04_the_history_is_cut_a_few_times_only() -> None:
    store = ContextStore()
    view = store.scope(session="s")
    rules = store.instruct("Answer.")
    cuts, previous = 0, None
    for turn in range(60):
        view.user(f"question {turn} " + "word " * 30)
        made = view.compile([rules], history="session", budget=1_500, previous=previous, verify="full")
        cuts += made.manifest.prefix is not None and made.manifest.prefix.reason is not None
        previous = made
        view.assistant("answer " + "word " * 30)
    assert 2 <= cuts <= 12


def test_stable_sources_stand_before_those_of_one_turn() -> None:
    base = default_policy()
    sources = {"z-catalogue": SourcePolicy(lifetime=Lifetime.DEPLOYMENT), "a-search": SourcePolicy()}
    store = ContextStore(
        PolicySet(types=base.types, transitions=base.transitions, freshness=base.freshness, sources=sources)
    )
    items = [store.add(Evidence, f"from {name}", source=name) for name in ("a-search", "z-catalogue")]
    text = store.compile([store.instruct("x"), *items, store.user("?")], verify="full").request["messages"][1][
        "content"
    ]
    assert text.index("z-catalogue") < text.index("a-search")
