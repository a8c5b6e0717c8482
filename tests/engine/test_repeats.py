"""What was sent is not sent again, old results give way when room is short, and a tool's value beats a memory."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from tests.engine.agents import ACME, agent, compiles, sent

from rung import ContextStore, Draft, Fetch, Memory
from rung.sources.simple import CallableSource
from rung.testing.model import call
from rung.tools import tool

LONG = "The order was packed, handed over and shipped to the given address. " * 6


@tool
def report(n: int = 0) -> str:
    """The report."""
    return LONG


def results(request: dict[str, Any]) -> list[str]:
    messages = request["messages"]
    chat = [message["content"] for message in messages if message["role"] == "tool"]
    blocks = [part for message in messages if isinstance(message["content"], list) for part in message["content"]]
    return chat or [_text(part) for part in blocks if part["type"] == "tool_result"]


def _text(part: dict[str, Any]) -> str:
    content = part["content"]
    return content if isinstance(content, str) else content[0]["text"]


@pytest.mark.parametrize("target", ["openai-chat", "anthropic"])
async def test_an_unchanged_result_is_referred_to_within_a_turn_and_in_the_turns_after_it(target: str) -> None:
    asks = [call("report", {"n": 1}, id="a"), call("report", {"n": 2}, id="b")]
    engine = agent(*asks, "ok", call("report", {}, id="c"), "still", "bye", tools=[report], target=target)
    outcome = await engine.run("Report?", session="s", principal=ACME)
    stub = "(unchanged: the same result as call a)"
    assert results(sent(engine)[2]) == [LONG.rstrip(), stub] or results(sent(engine)[2]) == [LONG, stub]
    await engine.run("And now?", session="s", principal=ACME)
    assert results(sent(engine)[4])[1:] == [stub, stub]
    await engine.run("Bye", session="s", principal=ACME)
    assert results(sent(engine)[5])[1:] == [stub, stub]
    assert [item.reveal("test") for item in outcome.items if item.call_id] == [LONG, LONG]
    row = outcome.manifests[2].of(outcome.items[4].id)
    assert row is not None
    assert row.params == {"same_as": "a"}
    compiles(engine, outcome)


async def test_results_of_the_turn_give_way_the_oldest_first_when_room_is_short() -> None:
    @tool(max_bytes=6_000)
    def page(n: int) -> str:
        """A page."""
        return f"page {n}\n" + "\n".join(f"line {line} of page {n} says this and that" for line in range(90))

    engine = agent(
        *[call("page", {"n": n}) for n in range(6)],
        "Read.",
        tools=[page],
        budget=2_500,
    )
    outcome = await engine.run("Read all pages", session="s", principal=ACME)
    assert outcome.done
    last = outcome.manifests[-1]
    assert last.totals.total <= 2_500
    rows = [last.of(item.id) for item in outcome.items if item.call_id]
    assert next(row.state for row in rows if row) == "truncated"
    assert rows[-1] is not None
    assert rows[-1].tokens > (rows[0].tokens if rows[0] else 0)
    compiles(engine, outcome)


async def test_a_tools_value_beats_a_memory_of_the_same_fact() -> None:
    def remembered(_: Fetch) -> list[Draft]:
        seen = datetime.now(UTC)
        return [Draft(type=Memory, content="Order 1842 is packed.", key="order:1842", observed_at=seen)]

    @tool(key="order:{order_id}")
    def look(order_id: str) -> dict[str, str]:
        """Look."""
        return {"status": "shipped"}

    engine = agent(
        call("look", {"order_id": "1842"}), "Shipped.", tools=[look], sources=[CallableSource("memory", remembered)]
    )
    outcome = await engine.run("Order?", session="s", principal=ACME)
    assert "packed" in json.dumps(sent(engine)[0])
    assert "packed" not in json.dumps(sent(engine)[1])
    row = next(row for row in outcome.manifests[1].entries if row.type == "memory")
    assert (row.state, row.reason) == ("excluded", "superseded_by")


async def test_a_turn_whose_context_is_full_ends_with_what_it_has() -> None:
    count = iter(range(100))
    engine = agent(
        lambda _: [call("report", {"n": next(count)}) for _ in range(8)],
        tools=[report],
        store=ContextStore(),
        budget=900,
    )
    outcome = await engine.run("Report?", session="s", principal=ACME)
    assert (outcome.status, outcome.reason) == ("limit_reached", "context_full")
    assert "report" in outcome.text
    compiles(engine, outcome)
