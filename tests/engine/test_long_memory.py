"""Memory and compaction beside the engine: written, found, and shortened between turns."""

from __future__ import annotations

from typing import Any

from tests.engine.agents import ACME, agent, compiles, sent

from rung import ContextStore
from rung.memory import MemoryStore
from rung.summary import Compactor


async def test_a_memory_is_written_in_one_session_and_used_in_another() -> None:
    store = ContextStore()
    engine = agent("Noted.", "By email.", store=store, memory=MemoryStore(store), tools=[])
    first = await engine.run("Please remember that I prefer contact by email.", session="s1", principal=ACME)
    assert (first.status, first.notes) == ("done", ())
    second = await engine.run("How will you contact me, by email or phone?", session="s2", principal=ACME)
    request = str(sent(engine)[-1])
    assert "<memory" in request
    assert "contact by email" in request
    compiles(engine, second)


async def test_a_memory_that_fails_is_noted_and_the_answer_stays() -> None:
    class Broken(MemoryStore):
        async def after_turn(self, view: Any, items: Any) -> Any:
            raise RuntimeError("down")

    store = ContextStore()
    engine = agent("Hello.", store=store, memory=Broken(store))
    outcome = await engine.run("Hi", session="s", principal=ACME)
    assert (outcome.text, outcome.notes) == ("Hello.", ("memory: RuntimeError",))


async def test_a_long_session_is_compacted_and_goes_on() -> None:
    store = ContextStore()
    engine = agent(
        lambda _: "We agreed on delivery on Friday. " * 12,
        store=store,
        tools=[],
        budget=1_500,
        compactor=Compactor(high=700, low=300, recent=2, budget=150),
    )
    for number in range(14):
        outcome = await engine.run(f"Question {number}: when is the delivery?", session="s", principal=ACME)
        assert outcome.notes == ()
    assert any(row.type == "summary" and row.state == "included" for row in outcome.manifests[-1].entries)
    compiles(engine, outcome)
