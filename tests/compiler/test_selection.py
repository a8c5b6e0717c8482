"""Which candidates come in: minimum shares, surplus, value, and cache marks."""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from rung import ContextStore, Evidence, Memory, PolicySet, SourcePolicy, ToolCall, ToolOutput, default_policy
from rung.assembly.validate import validate


def store_with(**sources: SourcePolicy) -> ContextStore:
    base = default_policy()
    return ContextStore(
        PolicySet(types=base.types, transitions=base.transitions, freshness=base.freshness, sources=sources)
    )


@settings(max_examples=40, deadline=None)
@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=7),
    scores=st.lists(st.integers(0, 20), min_size=7, max_size=7),
    room=st.integers(0, 250),
)
def test_value_finds_the_best_sum_of_scores(sizes: list[int], scores: list[int], room: int) -> None:
    store = store_with()
    rules, question = store.instruct("x"), store.user("?")
    items = [store.add(Memory, f"{n} " + "word " * size, source="m") for n, size in enumerate(sizes)]
    worth = {item.id: float(score) for item, score in zip(items, scores, strict=False)}
    alone = store.compile([rules, question], budget=9_000).tokens
    whole = store.compile([rules, *items, question], budget=9_000)
    cost = {item.id: whole.manifest.of(item.id).tokens for item in items}  # type: ignore[union-attr]
    overhead = whole.tokens - alone - sum(cost.values())
    turn = store.compile(
        [rules, *items, question], budget=alone + overhead + room, scores=worth, select="value", verify="full"
    )
    got = sum(worth[item.id] for item in items if turn.manifest.of(item.id).tokens)  # type: ignore[union-attr]
    best = max(
        sum(worth[item.id] for item in some)
        for count in range(len(items) + 1)
        for some in itertools.combinations(items, count)
        if sum(cost[item.id] for item in some) <= room
    )
    assert got == best


def test_a_minimum_share_is_kept_until_its_source_has_had_it() -> None:
    store = store_with(loud=SourcePolicy(priority=9), quiet=SourcePolicy(min_tokens=60))
    loud = [store.add(Memory, f"{n} " + "word " * 30, source="loud") for n in range(20)]
    quiet = store.add(Memory, "quiet " + "word " * 20, source="quiet")
    turn = store.compile([store.instruct("x"), *loud, quiet, store.user("?")], budget=400, verify="full")
    assert turn.manifest.of(quiet.id).state == "included"  # type: ignore[union-attr]
    without = store.compile([store.instruct("x"), *loud, store.user("?")], budget=400, verify="full")
    assert without.tokens > 340


def test_what_one_source_does_not_need_goes_to_the_others() -> None:
    store = store_with(a=SourcePolicy(max_tokens=2_000, priority=1), b=SourcePolicy())
    few = [store.add(Evidence, f"a{n} " + "word " * 10, source="a") for n in range(2)]
    many = [store.add(Evidence, f"b{n} " + "word " * 10, source="b") for n in range(200)]
    turn = store.compile([store.instruct("x"), *few, *many, store.user("?")], budget=2_000, verify="full")
    assert turn.tokens >= 0.98 * 2_000


def test_anthropic_gets_marks_where_stable_parts_end() -> None:
    store = ContextStore()
    view = store.scope(session="s")
    rules = store.instruct("Answer.")
    view.user("one")
    view.assistant("1")
    view.user("two")
    view.assistant("", parts=[ToolCall(id="c", name="f")])
    view.add(ToolOutput, "result", source="tool:f", call_id="c")
    turn = view.compile([rules], history="session", target="anthropic", verify="full")
    assert str(turn.request).count("cache_control") == 3
    assert "cache_control" in str(turn.request["system"])
    assert validate(dict(turn.request), "anthropic") == []
    plain = view.compile([rules], history="session", target="anthropic", cache=False)
    assert "cache_control" not in str(plain.request)
    assert plain.tokens == turn.tokens
