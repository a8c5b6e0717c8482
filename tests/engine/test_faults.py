"""Faults of models, tools, sources and people: each ends in a typed outcome, and the session still compiles."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from tests.engine.agents import ACME, agent, compiles, order_lookup, sent

from rung import ContextStore, Draft, Evidence, Fetch, load_policy
from rung.assembly.reply import Reply, Usage
from rung.engine import ContextEngine, RunLimits
from rung.errors import (
    ModelAuthError,
    ModelError,
    ModelRateLimitError,
    ModelReplyError,
    ModelTimeoutError,
    ToolError,
)
from rung.sources.simple import CallableSource
from rung.testing.model import call
from rung.tools import tool

LOOKUP = call("order_lookup", {"order_id": "1842"})


def many(count: int) -> list[Any]:
    return [call("order_lookup", {"order_id": str(number)}) for number in range(count)]


class Fault(NamedTuple):
    name: str
    script: tuple[Any, ...]
    status: str
    reason: str
    says: str = ""


FAULTS = [
    Fault("malformed tool JSON", (call("order_lookup", "{broken"), "Sorry."), "done", "", "malformed_arguments"),
    Fault("arguments that are a list", (call("order_lookup", "[1]"), "Sorry."), "done", "", "malformed_arguments"),
    Fault("arguments nested without end", (call("order_lookup", "[" * 5000), "Sorry."), "done", "", "malformed_arg"),
    Fault("an unknown tool", (call("delete_all", {}), "Sorry."), "done", "", "unknown_tool"),
    Fault("a tool whose name no provider takes", (call("delete all!", {}), "Sorry."), "done", "", "unknown_tool"),
    Fault("an undeclared argument", (call("order_lookup", {"order_id": "1", "sql": "x"}), "Sorry."), "done", "",
          "undeclared_argument"),
    Fault("an argument of the wrong type", (call("order_lookup", {"order_id": 5}), "Sorry."), "done", "",
          "invalid_arguments"),
    Fault("200 parallel calls", (many(200), "Sorry."), "done", "", "too_many_calls"),
    Fault("a stop by length", (Reply(text="The order is", stop="length"),), "limit_reached", "length"),
    Fault("a call cut by length", (Reply(calls=(call("order_lookup", '{"order_id": "18', id="c1"),), stop="length"),
                                   "Sorry."), "done", "", "malformed_arguments"),
    Fault("an empty reply", (Reply(text=" "),), "stopped", "empty_reply"),
    Fault("an empty reply after a tool", (LOOKUP, Reply()), "stopped", "empty_reply"),
    Fault("a refusal", (Reply(text="I will not.", stop="refusal"),), "stopped", "refusal"),
    Fault("a lost connection", (ModelTimeoutError("lost"),), "failed", "model_timeout"),
    Fault("a lost connection after a tool", (LOOKUP, ModelTimeoutError("lost")), "failed", "model_timeout"),
    Fault("a provider that asks to slow down", (ModelRateLimitError("slow"),), "failed", "model_rate_limit"),
    Fault("a reply that cannot be read", (ModelReplyError("broken"),), "failed", "model_reply"),
    Fault("a provider that fails", (ModelError("500"),), "failed", "model_failed"),
]  # fmt: skip


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_a_fault_of_the_model_has_a_typed_outcome(fault: Fault) -> None:
    engine = agent(*fault.script)
    outcome = await engine.run("Where is my order?", session="s", principal=ACME)
    assert (outcome.status, outcome.reason) == (fault.status, fault.reason)
    if fault.says:
        assert fault.says in str(sent(engine)[-1])
    if fault.status == "failed":
        assert isinstance(outcome.error, ModelError)
    compiles(engine, outcome)


async def test_200_parallel_calls_are_capped_and_the_rest_is_refused_as_data() -> None:
    made: list[str] = []

    @tool
    def look(n: str) -> str:
        """Look."""
        made.append(n)
        return "found"

    engine = agent([call("look", {"n": str(n)}) for n in range(200)], "Done.", tools=[look])
    outcome = await engine.run("All?", session="s", principal=ACME)
    assert len(made) == 16
    assert "168 further calls: too_many_calls" in outcome.missing


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic"])
async def test_what_a_model_wrote_wrongly_can_be_sent_back_to_each_provider(target: str) -> None:
    wrong = [call("order_lookup", "{x"), call("no such", {}), call("order_lookup", "")]
    engine = agent(wrong, "Sorry.", target=target)
    assert (await engine.run("Hi", session="s", principal=ACME)).done


async def test_a_wrong_key_is_raised_and_the_session_stays_in_order() -> None:
    engine = agent(ModelAuthError("no key"), "Hello.")
    with pytest.raises(ModelAuthError):
        await engine.run("Hi", session="s", principal=ACME)
    assert (await engine.run("Hi again", session="s", principal=ACME)).done


async def test_a_stream_that_breaks_keeps_what_was_said() -> None:
    class Breaking:
        name, target = "breaking", "openai-chat"

        async def complete(self, request: Any, *, max_tokens: Any = None, stream: Any = None) -> Reply:
            from rung.assembly.reply import TextDelta

            if stream is not None:
                stream(TextDelta(text="It is on"))
            raise ModelTimeoutError("the connection broke")

    engine = agent("x")
    engine.model = Breaking()
    events = [event async for event in engine.stream("Where?", session="s", principal=ACME)]
    outcome = events[-1].outcome  # type: ignore[union-attr]
    assert (outcome.status, outcome.text, outcome.missing) == ("failed", "It is on", ("the rest of the reply",))
    compiles(engine, outcome)


async def test_case_d_tool_loop_01_the_third_identical_call_ends_the_run() -> None:
    asked = iter(['{"path":"h","limit":50}', '{"limit":50,"path":"h"}', '{ "path": "h", "limit": 50 }', "", ""])

    @tool
    def read_file(path: str, limit: int) -> str:
        """Read."""
        return "same"

    engine = agent(lambda _: call("read_file", next(asked)), tools=[read_file], limits=RunLimits(rounds=40))
    outcome = await engine.run("Read it", session="s", principal=ACME)
    assert (outcome.status, outcome.reason) == ("stopped", "repeated_call")
    assert outcome.missing == ("read_file: repeated_call",)
    assert outcome.text.startswith("I could not finish this")
    calls = [part.id for item in outcome.items for part in item.parts]
    assert calls == [item.call_id for item in outcome.items if item.call_id]
    compiles(engine, outcome)


async def test_a_read_that_is_asked_for_twice_in_one_reply_is_made_once() -> None:
    made: list[int] = []

    @tool
    def look(n: int) -> str:
        """Look."""
        made.append(n)
        return f"found {n}"

    engine = agent([call("look", {"n": 1}), call("look", {"n": 1}), call("look", {"n": 2})], "Done.", tools=[look])
    outcome = await engine.run("Look", session="s", principal=ACME)
    assert (outcome.status, sorted(made)) == ("done", [1, 2])
    assert [item.attr("refused") for item in outcome.items if item.call_id] == [None, "repeated_call", None]
    compiles(engine, outcome)


async def test_a_server_that_knows_no_tool_choice_still_gives_a_partial_result() -> None:
    from rung.errors import ModelRequestError

    def script(request: Any) -> Any:
        return ModelRequestError("unknown field") if "tool_choice" in request else LOOKUP

    engine = agent(script, limits=RunLimits(rounds=1))
    outcome = await engine.run("Look", session="s", principal=ACME)
    assert (outcome.status, outcome.notes) == ("limit_reached", ("last_word: ModelRequestError",))
    assert "order_lookup" in outcome.text
    compiles(engine, outcome)


async def test_a_repeated_call_whose_result_changes_is_no_loop() -> None:
    states = iter(["queued", "running", "half", "done"])

    @tool
    def state() -> str:
        """The state."""
        return next(states)

    engine = agent(*[call("state", {})] * 4, "Done.", tools=[state])
    assert (await engine.run("Ready?", session="s", principal=ACME)).done


async def test_case_d_tool_loop_02_the_limit_of_rounds_is_kept_exactly() -> None:
    count = iter(range(100))
    engine = agent(
        lambda _: call("order_lookup", {"order_id": str(next(count))}), limits=RunLimits(rounds=3, on_limit="partial")
    )
    outcome = await engine.run("Look", session="s", principal=ACME)
    assert (outcome.status, outcome.reason, outcome.rounds, outcome.calls) == ("limit_reached", "rounds", 3, 3)
    assert outcome.missing == ("order_lookup: limit_reached",)
    assert "order_lookup" in outcome.text
    results = [item for item in outcome.items if item.call_id]
    assert len(results) == 4
    assert results[-1].attr("refused") == "limit_reached"
    compiles(engine, outcome)


async def test_at_a_limit_the_model_answers_once_from_what_is_known() -> None:
    def script(request: Any) -> Any:
        return "Two orders, one not looked up." if request.get("tool_choice") == "none" else LOOKUP

    engine = agent(script, limits=RunLimits(rounds=1))
    outcome = await engine.run("Look", session="s", principal=ACME)
    assert (outcome.status, outcome.text) == ("limit_reached", "Two orders, one not looked up.")
    assert outcome.missing == ("order_lookup: limit_reached",)
    compiles(engine, outcome)


async def test_a_limit_can_escalate() -> None:
    engine = agent(LOOKUP, LOOKUP, limits=RunLimits(rounds=1, on_limit="escalate"))
    outcome = await engine.run("Look", session="s", principal=ACME)
    assert (outcome.status, outcome.reason) == ("escalated", "rounds")
    compiles(engine, outcome)


async def test_a_tool_can_hand_over_to_a_person() -> None:
    @tool
    def hand_to_a_person(why: str) -> None:
        """Hand over to a person."""
        raise ToolError("A colleague will call you back today.", reason="escalate")

    engine = agent(call("hand_to_a_person", {"why": "fraud"}), "Good.", tools=[hand_to_a_person])
    outcome = await engine.run("My card was stolen", session="s", principal=ACME)
    assert (outcome.status, outcome.reason) == ("escalated", "escalate")
    assert outcome.text == "A colleague will call you back today."
    assert (await engine.run("Thanks", session="s", principal=ACME)).done
    compiles(engine, outcome)


LIMITS: list[tuple[str, RunLimits, Usage | None]] = [
    ("tokens", RunLimits(tokens=250), None),
    ("calls", RunLimits(calls=1), None),
    ("cost", RunLimits(cost=0.5), Usage(input=1, output=1, cost=0.5)),
    ("cost_unknown", RunLimits(cost=0.5), Usage(input=1, output=1)),
]


@pytest.mark.parametrize(("reason", "limits", "usage"), LIMITS, ids=[row[0] for row in LIMITS])
async def test_each_limit_ends_the_run_with_its_name(reason: str, limits: RunLimits, usage: Usage | None) -> None:
    count = iter(range(100))

    def script(_: Any) -> Any:
        made = Reply(calls=(call("order_lookup", {"order_id": str(next(count))}, id=f"c{next(count)}"),))
        return made if usage is None else Reply(calls=made.calls, usage=usage)

    engine = agent(script, limits=limits)
    outcome = await engine.run("Look", session="s", principal=ACME)
    assert (outcome.status, outcome.reason) == ("limit_reached", reason)
    assert outcome.text
    compiles(engine, outcome)


async def test_a_model_that_takes_too_long_ends_at_the_limit_of_time() -> None:
    async def slow(_: Any) -> str:
        await asyncio.sleep(5)
        return "late"

    engine = agent(slow, limits=RunLimits(seconds=0.1))
    outcome = await engine.run("Hi", session="s", principal=ACME)
    assert (outcome.status, outcome.reason) == ("limit_reached", "seconds")
    compiles(engine, outcome)


class Broken(NamedTuple):
    name: str
    function: Callable[[], Any]
    code: str


def raises() -> Any:
    raise ValueError("password=hunter2")


def refuses() -> Any:
    raise ToolError("the order is locked", reason="locked")


def hangs() -> Any:
    time.sleep(0.4)


async def hangs_async() -> Any:
    await asyncio.sleep(5)


TOOLS = [
    Broken("it raises", raises, "tool_failed"),
    Broken("it refuses with a reason", refuses, "locked"),
    Broken("it hangs in a thread", hangs, "timeout"),
    Broken("it hangs in the loop", hangs_async, "timeout"),
    Broken("a value without a JSON form", object, "unserialisable_result"),
    Broken("NaN", lambda: float("nan"), "unserialisable_result"),
]


@pytest.mark.parametrize("broken", TOOLS, ids=lambda broken: broken.name)
async def test_a_tool_that_fails_becomes_data_and_the_loop_goes_on(broken: Broken) -> None:
    made = tool(name="it", description="It.", timeout=0.1)(broken.function)
    engine = agent(call("it", {}), "It failed.", tools=[made])
    outcome = await engine.run("Do it", session="s", principal=ACME)
    assert outcome.done
    assert outcome.items[2].attr("failed") == broken.code
    assert broken.code in sent(engine)[-1]["messages"][-1]["content"]
    assert "hunter2" not in str(sent(engine)[-1])
    compiles(engine, outcome)


async def test_a_result_of_100_megabytes_enters_capped_with_its_digest() -> None:
    whole = "2026-01-01 INFO worker started id=42\n" * 2_800_000

    @tool(max_bytes=2_000)
    def log() -> str:
        """The log."""
        return whole

    engine = agent(call("log", {}), "Long.", tools=[log])
    outcome = await engine.run("Log?", session="s", principal=ACME)
    shown = sent(engine)[-1]["messages"][-1]["content"]
    assert len(shown) <= 2_000
    assert "bytes left out" in shown
    assert outcome.items[2].attr("bytes") == str(len(whole))
    assert len(outcome.items[2].attr("sha256") or "") == 64
    compiles(engine, outcome)


def source_that_hangs(_: Fetch) -> list[Draft]:
    time.sleep(0.5)
    return []


def source_that_raises(_: Fetch) -> list[Draft]:
    raise RuntimeError("down")


def source_of_100_megabytes(_: Fetch) -> list[Draft]:
    return [Draft(type=Evidence, content="x" * 100_000_000)]


@pytest.mark.parametrize(
    ("fetch", "reason"),
    [(source_that_hangs, "timeout"), (source_that_raises, "fetch_failed"), (source_of_100_megabytes, "fetch_failed")],
)
async def test_a_source_that_fails_is_left_out_and_stands_in_the_manifest(
    fetch: Any, reason: str, tmp_path: Any
) -> None:
    file = tmp_path / "policy.toml"
    file.write_text("[sources.kb]\ntimeout = 0.2\n" if reason == "timeout" else "")
    engine = agent("ok", store=ContextStore(load_policy(file)), sources=[CallableSource("kb", fetch)])
    outcome = await engine.run("Hi", session="s", principal=ACME)
    row = next(row for row in outcome.manifests[0].entries if row.source == "kb")
    assert (row.state, row.reason, outcome.status) == ("failed", reason, "done")
    compiles(engine, outcome)


async def test_a_set_of_tools_that_hangs_is_left_out_and_stands_in_the_manifest() -> None:
    class Hanging:
        name = "server"

        async def tools(self, principal: Any) -> list[Any]:
            await asyncio.sleep(5)
            return []

    engine = agent("ok", tools=[order_lookup, Hanging()], tool_timeout=0.1)
    outcome = await engine.run("Hi", session="s", principal=ACME)
    row = next(row for row in outcome.manifests[0].entries if row.source == "tools")
    assert (row.item, row.state, row.reason) == ("server", "failed", "timeout")


async def cancelled(engine: ContextEngine, after: float) -> None:
    task = asyncio.ensure_future(engine.run("Look", session="s", principal=ACME))
    await asyncio.sleep(after)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_cancelled_run_leaves_every_call_answered() -> None:
    @tool
    async def slow() -> str:
        """Slow."""
        await asyncio.sleep(5)
        return "late"

    engine = agent([call("slow", {}), call("order_lookup", {"order_id": "1"})], "Good.", tools=[slow, order_lookup])
    await cancelled(engine, 0.15)
    items = list(engine.view("s", ACME).items())
    assert [item.attr("refused") for item in items if item.call_id] == ["cancelled", "cancelled"]
    outcome = await engine.run("Go on", session="s", principal=ACME)
    assert outcome.done
    compiles(engine, outcome)


@pytest.mark.parametrize("after", [0.0, 0.002, 0.005, 0.01, 0.02, 0.04])
async def test_a_run_cancelled_at_any_moment_leaves_a_session_that_compiles(after: float) -> None:
    engine = agent(LOOKUP, LOOKUP, "ok", "ok", "ok")
    with contextlib.suppress(BaseException):  # it may have ended before
        await cancelled(engine, after)
    outcome = await engine.run("Go on", session="s", principal=ACME)
    compiles(engine, outcome)


async def test_leaving_a_stream_cancels_the_turn() -> None:
    stopped = asyncio.Event()

    @tool
    async def slow() -> str:
        """Slow."""
        try:
            await asyncio.sleep(5)
        finally:
            stopped.set()
        return "late"

    engine = agent(call("slow", {}), tools=[slow])
    stream = engine.stream("Look", session="s", principal=ACME)
    async for event in stream:
        if type(event).__name__ == "CallStarted":
            await asyncio.sleep(0.05)
            break
    await stream.aclose()  # type: ignore[attr-defined]
    assert stopped.is_set()


async def test_a_process_that_dies_between_a_call_and_its_result_leaves_a_session_that_compiles(tmp_path: Any) -> None:
    import subprocess
    import sys

    file = tmp_path / "agent.db"
    code = f"""
import asyncio, os
from rung import ContextStore
from rung.engine import ContextEngine
from rung.tools import Principal, tool
from rung.testing.model import ScriptedModel, call
@tool
def die() -> str:
    "Die."
    os._exit(9)
engine = ContextEngine(ContextStore.open({str(file)!r}), ScriptedModel(call("die", {{}})), tools=[die])
asyncio.run(engine.run("Look", session="s", principal=Principal(tenant="acme", subject="u7")))
"""
    assert subprocess.run([sys.executable, "-c", code], timeout=60, check=False).returncode == 9
    with ContextStore.open(file) as store:
        engine = agent("Here I am.", store=store)
        outcome = await engine.run("Are you there?", session="s", principal=ACME)
        assert outcome.done
        assert "no result was recorded" in str(sent(engine)[0])
        compiles(engine, outcome)
