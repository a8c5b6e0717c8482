"""What a store keeps between turns changes no turn: each is as it would be if it were the first."""

from __future__ import annotations

import copy
import itertools
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rung import (
    Assistant,
    ContextItem,
    ContextStore,
    Evidence,
    Memory,
    PolicySet,
    SourcePolicy,
    ToolCall,
    ToolOutput,
    Turn,
    User,
    default_policy,
)
from rung.compiler import fit
from rung.compiler.entry import Options, compile_items
from rung.compiler.past import Exchange
from rung.store import core
from rung.tokens.blocks import BlockCounter
from rung.tokens.encodings import TiktokenTokenizer

NOW = datetime(2026, 11, 30, tzinfo=UTC)


def opened() -> ContextStore:
    base = default_policy()
    sources = {
        "a": SourcePolicy(priority=70, limit=3),
        "b": SourcePolicy(max_tokens=60),
        "c": SourcePolicy(min_tokens=30, min_score=0.2),
        "d": SourcePolicy(always_include=True),
    }
    policy = PolicySet(types=base.types, transitions=base.transitions, freshness=base.freshness, sources=sources)
    return ContextStore(policy, clock=lambda: NOW)


def first(store: ContextStore, items: list[ContextItem[Any]], **options: Any) -> Turn:
    """The turn, compiled with nothing kept from the turns before, and each count made anew."""
    counter = BlockCounter(TiktokenTokenizer("o200k_base"))
    return compile_items(*core(store), items, Options(tokenizer=counter, **options))


def assert_same(one: Turn, other: Turn) -> None:
    assert one.manifest.json() == other.manifest.json()
    assert one.request == other.request


turns = st.lists(
    st.tuples(
        st.permutations(range(9)),
        st.integers(1, 9),
        st.lists(st.none() | st.sampled_from((0.1, 0.5, 0.9)), min_size=9, max_size=9),
        st.integers(250, 600),
        st.sampled_from(("openai-chat", "anthropic", "text")),
    ),
    min_size=2,
    max_size=4,
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(turns=turns)
def test_orders_scores_and_budgets_change_from_turn_to_turn(turns: list[Any]) -> None:
    store = opened()
    rules = store.instruct("Answer briefly.")
    items: list[ContextItem[Any]] = [
        store.add(
            Memory if number == 4 else Evidence, f"Passage {number % 7}: " + "words " * 12, source="abcd"[number % 4]
        )
        for number in range(9)
    ]
    for number, (order, count, scores, budget, target) in enumerate(turns):
        given_items = [rules, *(items[place] for place in order[:count]), store.user(f"Question {number}?")]
        known = {item.id: score for item, score in zip(items, scores, strict=True) if score is not None}
        options: dict[str, Any] = {"budget": budget, "target": target, "scores": known}
        assert_same(store.compile(given_items, **options), first(store, given_items, **options))


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(
    lengths=st.lists(st.tuples(st.integers(1, 30), st.none() | st.sampled_from((0.1, 0.9))), min_size=1, max_size=24),
    budget=st.integers(60, 700),
)
def test_many_candidates_are_chosen_as_few_are(lengths: list[tuple[int, float | None]], budget: int) -> None:
    store = ContextStore(clock=lambda: NOW)
    items: list[ContextItem[Any]] = [
        store.add(Evidence, f"Passage {number}: " + "word " * length, source="ab"[number % 2])
        for number, (length, _) in enumerate(lengths)
    ]
    scores = {item.id: score for item, (_, score) in zip(items, lengths, strict=True) if score is not None}
    given_items = [*items, store.user("?")]
    options: dict[str, Any] = {"budget": budget, "scores": scores}
    few = store.compile(given_items, **options)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(fit, "_FEW", 0)
        assert_same(store.compile(given_items, **options), few)


exchanges = st.lists(
    st.tuples(st.integers(1, 60), st.booleans(), st.sampled_from((260, 330, 420))), min_size=1, max_size=14
)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=60)
@given(exchanges=exchanges)
def test_a_session_goes_on_from_where_it_was(exchanges: list[tuple[int, bool, int]]) -> None:
    store = opened()
    rules = store.instruct("Answer briefly.")
    view = store.scope(tenant="acme", session="s")
    for number, (words, calls, budget) in enumerate(exchanges):
        view.add(User, f"Question {number}: " + "word " * words, source="user")
        if calls:
            view.add(Assistant, "", source="model", parts=[ToolCall(id=f"c{number}", name="f")])
            assert_same(*both(view, rules, budget))
            # A result that repeats an earlier one refers to it, as long as that is sent.
            view.add(ToolOutput, "the same row of a table " * 10, source="tool:f", call_id=f"c{number}")
        assert_same(*both(view, rules, budget))
        view.add(Assistant, "answer " * words, source="model")


def test_a_repeated_result_refers_to_the_first_that_is_still_sent() -> None:
    store = opened()
    rules = store.instruct("Answer briefly.")
    view = store.scope(tenant="acme", session="s")
    for number, budget in enumerate((260, 260, 260, 420)):
        view.add(User, f"Question {number}: " + "word " * (1 + number // 3), source="user")
        view.add(Assistant, "", source="model", parts=[ToolCall(id=f"c{number}", name="f")])
        assert_same(*both(view, rules, budget))
        view.add(ToolOutput, "the same row of a table " * 10, source="tool:f", call_id=f"c{number}")
        turn, alone = both(view, rules, budget)
        assert_same(turn, alone)
        sent = {part["tool_call_id"]: part["content"] for part in turn.request["messages"] if part["role"] == "tool"}
        named = {text.split()[-1].rstrip(")") for text in sent.values() if text.startswith("(unchanged")}
        assert named <= sent.keys()
        view.add(Assistant, "answer ", source="model")


def both(view: ContextStore, rules: ContextItem[Any], budget: int) -> tuple[Turn, Turn]:
    options: dict[str, Any] = {"budget": budget, "history": "session"}
    return view.compile([rules], **options), first(view, [rules], **options)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None, max_examples=40)
@given(
    said=st.lists(
        st.tuples(st.booleans(), st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=40)),
        min_size=1,
        max_size=6,
    ),
    target=st.sampled_from(("openai-chat", "openai-responses", "anthropic", "text")),
)
def test_what_was_the_request_is_history_in_the_next_turn(said: list[tuple[bool, str]], target: str) -> None:
    store = opened()
    items: list[ContextItem[Any]] = [store.instruct("Answer briefly.")]
    for number, (calls, text) in enumerate(said):
        items.append(store.user(text))
        options: dict[str, Any] = {"budget": 300, "target": target}
        assert_same(store.compile(items, **options), first(store, items, **options))
        if calls:
            items.append(store.assistant("", parts=[ToolCall(id=f"c{number % 2}", name="f")]))
            items.append(store.add(ToolOutput, text, source="tool:f", call_id=f"c{number % 2}"))
            assert_same(store.compile(items, **options), first(store, items, **options))
        items.append(store.assistant(text))


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses"])
@pytest.mark.parametrize("history", ["session", "items"])
def test_what_a_caller_does_to_a_request_reaches_no_other_turn(target: str, history: str) -> None:
    store = opened()
    view = store.scope(tenant="acme", session="s")
    items: list[ContextItem[Any]] = [store.instruct("Answer briefly."), view.user("A question?")]
    items.append(view.assistant("", parts=[ToolCall(id="c1", name="f", arguments='{"a": 1}')]))
    items += [view.add(ToolOutput, "a row", source="tool:f", call_id="c1"), view.assistant("An answer.")]
    items.append(view.user("And now?"))
    options: dict[str, Any] = {"budget": 600, "target": target, "history": history}
    turn = view.compile(items, **options)
    untouched = copy.deepcopy(turn.request)
    for part in turn.request["messages" if target == "openai-chat" else "input"]:
        for call in part.get("tool_calls", ()):
            call["function"]["arguments"] = "{}"
        part.clear()
    assert view.compile(items, **options).request == untouched


def test_a_rendering_that_fails_leaves_nothing_half_done(monkeypatch: pytest.MonkeyPatch) -> None:
    store = opened()
    rules = store.instruct("Answer briefly.")
    view = store.scope(tenant="acme", session="s")
    for number in range(4):
        view.add(User, f"Question {number}?", source="user")
        view.add(Assistant, f"Answer {number}.", source="model")
    view.add(User, "And now?", source="user")
    render, calls = Exchange.rendered, itertools.count()

    def fails_once(exchange: Exchange, *args: Any) -> Any:
        if next(calls) == 2:
            raise MemoryError
        return render(exchange, *args)

    monkeypatch.setattr(Exchange, "rendered", fails_once)
    with pytest.raises(MemoryError):
        view.compile([rules], budget=600, history="session")
    assert_same(*both(view, rules, 600))
