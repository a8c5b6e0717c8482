"""Whatever a model says and whenever it is stopped: each request is valid, and the session compiles everywhere."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.engine.agents import ACME, agent, compiles, order_lookup

from rung.assembly.reply import Reply
from rung.engine import RunLimits
from rung.errors import ModelAuthError, ModelTimeoutError
from rung.records.item import Opaque, ToolCall
from rung.tools import tool

NAMES = st.sampled_from(["order_lookup", "odd", "writes", "no such tool", "delete_all", "x" * 90])
ARGUMENTS = st.sampled_from(
    ['{"order_id":"1"}', '{"order_id": "1"}', "{}", "", "{broken", "[1]", '"text"', "null", "1"]
)
CALLS = st.builds(ToolCall, id=st.sampled_from(["a", "b", "c", "", "x" * 70]), name=NAMES, arguments=ARGUMENTS)
THINKING = Opaque(provider="anthropic", json='{"signature":"s","thinking":"…","type":"thinking"}')
REPLIES = st.one_of(
    st.builds(
        Reply,
        text=st.sampled_from(["", " ", "Hello.", "<tool_output>x</tool_output>"]),
        calls=st.lists(CALLS, max_size=4).map(tuple),
        opaque=st.sampled_from([(), (THINKING,)]),
        stop=st.sampled_from(["end", "tool_calls", "length", "refusal", "other"]),
    ),
    st.sampled_from([ModelTimeoutError("lost"), ModelAuthError("no key")]),
)


@tool
async def odd(order_id: str = "") -> Any:
    """Odd."""
    await asyncio.sleep(0)
    return None if order_id else {"x": [1, {"y": None}]}


@tool(side_effect="write")
def writes(order_id: str) -> str:
    """Write."""
    return "written"


def last_resort(_: Any) -> Reply:
    return Reply(text="Good.")


@settings(max_examples=60)
@given(
    lines=st.lists(REPLIES, max_size=9),
    rounds=st.integers(0, 4),
    how=st.sampled_from(["answer", "partial", "escalate"]),
    target=st.sampled_from(["openai-chat", "openai-responses", "anthropic"]),
    stop_after=st.none() | st.integers(0, 12),
)
@example(
    lines=[Reply(calls=(ToolCall(id="a", name="odd"), ToolCall(id="a", name="odd"), ToolCall(id="", name="odd")))],
    rounds=3,
    how="answer",
    target="anthropic",
    stop_after=None,
)
def test_a_session_survives_any_model_and_any_stop(
    lines: list[Any], rounds: int, how: Any, target: str, stop_after: int | None
) -> None:
    engine = agent(
        *lines,
        *[last_resort] * 40,
        tools=[order_lookup, odd, writes],
        target=target,
        limits=RunLimits(rounds=rounds, on_limit=how),
        approve=lambda _: True,
        budget=2_000,
    )

    async def talk() -> None:
        for question in ("Where?", "And now?"):
            task = asyncio.ensure_future(engine.run(question, session="s", principal=ACME))
            if stop_after is not None and question == "Where?":
                for _ in range(stop_after):
                    await asyncio.sleep(0.001)
                task.cancel()
            with contextlib.suppress(ModelAuthError, asyncio.CancelledError):
                outcome = await task
                assert outcome.status in ("done", "limit_reached", "stopped", "escalated", "failed")
        engine.model = agent("The end.", target=target).model
        compiles(engine, await engine.run("Bye", session="s", principal=ACME))
        view = engine.view("s", ACME)
        answered = [item.call_id for item in view.items() if item.call_id]
        asked = [part.id for item in view.items() for part in item.parts if isinstance(part, ToolCall)]
        if stop_after is None:
            assert sorted(answered) == sorted(asked)

    asyncio.run(talk())
