"""Handing work over: rights, data and budget only narrow; lineage is kept; a person's authority is not made up."""

from __future__ import annotations

from typing import Any

import pytest
from tests.engine.agents import ACME, agent, compiles, order_lookup, sent

from rung import ContextStore, Draft, Evidence, Fetch, Sensitivity
from rung.engine import ContextEngine, RunBudget, RunLimits
from rung.errors import ConfigError, InputError, ScopeError
from rung.sources.simple import CallableSource
from rung.testing.model import call
from rung.tools import ToolContext, tool

ASK = call("helper", {"task": "Find out when order 1842 arrives."})


def pair(*script: Any, store: ContextStore | None = None, **options: Any) -> tuple[ContextEngine, ContextEngine]:
    """An agent whose one tool is a second agent with this script."""
    store = store or ContextStore()
    helper = agent(*script, store=store, name="helper", system="Do what the task says.")
    first = agent(ASK, "It arrives on Friday.", store=store, tools=[helper.as_tool(description="Ask.", **options)])
    return first, helper


async def test_delegated_work_arrives_as_task_state_with_its_lineage() -> None:
    first, helper = pair(call("order_lookup", {"order_id": "1842"}), "Friday.")
    outcome = await first.run("When does my order arrive?", session="s", principal=ACME)
    assert outcome.text == "It arrives on Friday."
    asked = sent(helper)[0]["messages"]
    assert "Find out when order 1842 arrives." in asked[1]["content"]
    assert "<task_state" in asked[1]["content"]
    assert "Find out" not in asked[-1]["content"]
    store = first.store.scope(tenant="acme", subject="u7")
    work = next(item for item in store.items() if item.type.name == "task_state")
    assert [parent.type.name for parent in store.ancestors(work)] == ["user", "assistant"]
    assert {parent.id for parent in store.ancestors(work)} <= {item.id for item in outcome.items}
    assert work.session != "s"
    compiles(first, outcome)


async def test_no_text_that_a_model_wrote_becomes_a_users() -> None:
    first, _ = pair("Friday.")
    await first.run("When?", session="s", principal=ACME)
    said = [item.reveal("test") for item in first.store.scope(tenant="acme", subject="u7").items()
            if item.type.name == "user"]  # fmt: skip
    assert not any("Find out" in text for text in said)


async def test_the_persons_own_request_goes_along_only_when_it_is_passed_and_keeps_its_lineage() -> None:
    store = ContextStore()
    helper = agent("Friday.", store=store, name="helper")

    @tool(side_effect="write", approval="never")
    async def hand_over(context: ToolContext) -> str:
        """Hand over."""
        view = store.scope(tenant="acme", subject="u7", session=context.session)
        request = next(item for item in view.items() if item.type.name == "user")
        return str((await helper.delegate(helper, "Do it.", context=context, request=request)).text)

    first = agent(call("hand_over", {}), "ok", store=store, tools=[hand_over])
    outcome = await first.run("When does it arrive?", session="s", principal=ACME)
    assert sent(helper)[0]["messages"][-1]["content"] == "When does it arrive?"
    copied = [item for item in store.scope(tenant="acme", subject="u7").items() if item.type.name == "user"][-1]
    assert copied.derived_from == (outcome.items[0].id,)


async def test_scopes_narrow_and_never_widen() -> None:
    first, helper = pair(call("order_lookup", {"order_id": "1"}), "No access.", scopes=())
    await first.run("When?", session="s", principal=ACME)
    assert "tools" not in sent(helper)[0]
    first, _ = pair("x", scopes={"admin"})
    await first.run("When?", session="s", principal=ACME)
    assert "only narrows" in sent(first)[-1]["messages"][-1]["content"]


async def test_a_narrower_clearance_holds_for_what_the_agent_is_given() -> None:
    """What the handing agent saw is what its words may hold: they do not flow below that."""
    store = ContextStore()

    def found(_: Fetch) -> list[Draft]:
        return [Draft(type=Evidence, content="Diagnosis: …", sensitivity=Sensitivity.PERSONAL)]

    helper = agent("ok", store=store, name="helper")
    ask = helper.as_tool(description="Ask.", clearance=Sensitivity.INTERNAL)
    plain = agent(ASK, "ok", store=store, tools=[ask])
    assert (await plain.run("When?", session="a", principal=ACME)).done
    assert len(sent(helper)) == 1
    knowing = agent(ASK, "ok", store=store, tools=[ask], sources=[CallableSource("kb", found)])
    await knowing.run("When?", session="b", principal=ACME)
    assert len(sent(helper)) == 1
    assert "above_clearance" in sent(knowing)[-1]["messages"][-1]["content"]


async def test_one_budget_is_shared() -> None:
    store = ContextStore()
    count = iter(range(100))
    helper = agent(
        lambda _: call("order_lookup", {"order_id": str(next(count))}),
        store=store,
        name="helper",
        limits=RunLimits(rounds=50, on_limit="partial"),
    )
    first = agent(
        ASK, "Not all of it.", store=store, tools=[helper.as_tool(description="Ask.")], limits=RunLimits(rounds=4)
    )
    outcome = await first.run("When?", session="s", principal=ACME)
    assert outcome.rounds == 4
    assert '"status":"limit_reached"' in sent(first)[-1]["messages"][-1]["content"]
    assert outcome.tokens > sum(manifest.totals.total for manifest in outcome.manifests)
    compiles(first, outcome)


def test_a_child_budget_is_never_more_than_what_is_left_above() -> None:
    clock = iter(float(second) for second in range(1_000))
    above = RunBudget(RunLimits(rounds=3, calls=5, tokens=100, seconds=1_000), monotonic=lambda: next(clock))
    child = above.child(RunLimits(rounds=50, calls=50, tokens=10_000))
    for _ in range(3):
        assert child.no_more_rounds() is None
        child.round()
    assert child.no_more_rounds() == "rounds"
    assert child.calls_left() == 5
    child.call()
    assert (child.calls_left(), above.calls) == (4, 1)
    assert child.tokens_left() == 100
    assert child.reached(100) == "tokens"
    left = child.seconds_left()
    assert left is not None
    assert left < 1_000


async def test_an_agent_on_another_store_and_an_empty_task_are_refused() -> None:
    other = agent("x", name="other")
    seen: list[str] = []

    @tool(side_effect="write", approval="never")
    async def hand_over(context: ToolContext) -> str:
        """Hand over."""
        for target, task, kind in ((other, "x", ConfigError), (first, " ", InputError)):
            with pytest.raises(kind) as caught:
                await first.delegate(target, task, context=context)
            seen.append(str(caught.value))
        item: Any = first.store.instruct("Be brief.")
        with pytest.raises(InputError, match="no USER item"):
            await first.delegate(first, "x", context=context, request=item)
        return "tried"

    first = agent(call("hand_over", {}), "ok", tools=[hand_over, order_lookup])
    assert (await first.run("Go", session="s", principal=ACME)).done
    assert "another store" in seen[0]
    assert "task is empty" in seen[1]


def test_limits_that_make_no_sense_are_refused() -> None:
    for wrong in ({"rounds": -1}, {"calls_per_round": 0}, {"repeated": 1}, {"tokens": 0}):
        with pytest.raises(ConfigError, match="limits"):
            RunLimits(**wrong)
    assert issubclass(ScopeError, PermissionError)
