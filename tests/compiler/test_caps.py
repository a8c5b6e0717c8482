"""Caps of components: system, knowledge and memory take no more than theirs, and the manifest says so."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.compiler.test_turns import policy

from rung import ContextStore, Evidence, Memory, SourcePolicy, ToolOutput, Turn
from rung.compiler.manifest import REASONS
from rung.errors import BudgetError, InputError
from rung.observe.questions import why
from rung.policy.rules import Budget


def tokens_of(turn: Turn, kind: str) -> int:
    return sum(row.tokens for row in turn.manifest.entries if row.type == kind)


def filled(store: ContextStore, **counts: int) -> list[Any]:
    kinds = {"evidence": Evidence, "memory": Memory, "tool_output": ToolOutput}
    return [
        store.add(kinds[kind], f"{kind} {number} " + "word " * 20, source=f"{kind}s", key=f"{kind}-{number}")
        for kind, count in counts.items()
        for number in range(count)
    ]


def test_knowledge_and_memory_take_no_more_than_their_caps() -> None:
    store = ContextStore()
    items = filled(store, evidence=20, memory=20, tool_output=20)
    given_items = [store.instruct("Answer."), *items, store.user("?")]
    best = {"evidence": 0.9, "memory": 0.8, "tool_output": 0.1}
    options: dict[str, Any] = {
        "budget": 1_500,
        "verify": "full",
        "scores": {one.id: best[one.type.name] for one in items},
    }
    open_turn = store.compile(given_items, **options)
    turn = store.compile(given_items, caps={"knowledge": 200, "memory": 100}, **options)
    assert tokens_of(open_turn, "evidence") > 200
    assert 150 < tokens_of(turn, "evidence") <= 200
    assert 50 < tokens_of(turn, "memory") <= 100
    assert tokens_of(turn, "tool_output") > tokens_of(open_turn, "tool_output")
    row = next(row for row in turn.manifest.entries if row.reason == "component_cap" and row.type == "memory")
    assert row.params["component"] == "memory"
    assert row.size > row.params["left"] >= 0
    assert row.reason in REASONS
    assert why(turn.manifest, item=row.item).stage == "budget"
    assert "raise budget.knowledge or budget.memory" in turn.manifest.table()


def test_what_is_required_counts_towards_the_cap_and_stays() -> None:
    store = ContextStore(policy(evidences=SourcePolicy(always_include=True)))
    items = filled(store, evidence=5)
    others = [store.add(Evidence, f"other {i} " + "word " * 20, source="kb", key=f"o{i}") for i in range(5)]
    turn = store.compile(
        [store.instruct("Answer."), *items, *others, store.user("?")],
        budget=1_500,
        caps={"knowledge": 100},
        verify="full",
    )
    states = {row.item: (row.state, row.reason) for row in turn.manifest.entries}
    assert {states[item.id] for item in items} == {("included", "required")}
    assert {states[item.id] for item in others} == {("excluded", "component_cap")}


def test_a_passage_is_cut_to_what_is_left_of_the_cap() -> None:
    store = ContextStore(policy(kb=SourcePolicy(truncation="head")))
    passage = store.add(Evidence, "A sentence of the passage. " * 60, source="kb")
    turn = store.compile(
        [store.instruct("Answer."), passage, store.user("?")], budget=1_500, caps={"knowledge": 120}, verify="full"
    )
    row = turn.manifest.of(passage.id)
    assert row is not None
    assert row.state == "truncated"
    assert 60 < row.tokens <= 120


def test_instructions_above_their_cap_fail_the_turn() -> None:
    store = ContextStore()
    rules = store.instruct("Answer from the documents in front of you, and say so where they do not say.")
    given_items = [rules, store.user("?")]
    with pytest.raises(BudgetError, match=r"the instructions need \d+ tokens, their cap is 5: .*raise budget\.system"):
        store.compile(given_items, budget=500, caps={"system": 5})
    assert store.compile(given_items, budget=500, caps={"system": 50}).manifest.totals.instructions <= 50


@pytest.mark.parametrize("caps", [{"history": 5}, {"knowledge": -1}, {"memory": True}, {"system": "many"}])
def test_a_cap_is_a_whole_number_of_a_known_component(caps: Any) -> None:
    store = ContextStore()
    with pytest.raises(InputError, match="`caps`"):
        store.compile([store.instruct("Answer."), store.user("?")], budget=500, caps=caps)


def test_the_caps_of_a_policy() -> None:
    assert Budget().caps() == {"system": 2_000, "knowledge": 3_000, "memory": 1_000}
    assert Budget(knowledge=7).caps()["knowledge"] == 7


@settings(max_examples=60, deadline=None)
@given(
    evidence=st.integers(0, 12),
    memory=st.integers(0, 12),
    results=st.integers(0, 6),
    budget=st.integers(120, 900),
    caps=st.fixed_dictionaries({}, optional={"knowledge": st.integers(0, 300), "memory": st.integers(0, 300)}),
    select=st.sampled_from(["greedy", "value"]),
)
def test_whatever_is_given_caps_and_budget_hold(
    evidence: int, memory: int, results: int, budget: int, caps: dict[str, int], select: Any
) -> None:
    store = ContextStore()
    items = filled(store, evidence=evidence, memory=memory, tool_output=results)
    scores = {item.id: 1 / (place + 1) for place, item in enumerate(items)}
    turn = store.compile(
        [store.instruct("Answer."), *items, store.user("?")],
        budget=budget,
        caps=caps,
        scores=scores,
        select=select,
        verify="full",
    )
    assert turn.manifest.totals.total <= budget
    assert tokens_of(turn, "evidence") <= caps.get("knowledge", budget)
    assert tokens_of(turn, "memory") <= caps.get("memory", budget)
    for row in turn.manifest.entries:
        if row.reason == "component_cap":
            assert row.params["component"] in caps
