"""The gate: who may call what, and what the model is told when it may not."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from tests.engine.agents import ACME, agent, compiles, sent

from rung.records.item import ToolCall
from rung.records.labels import Sensitivity
from rung.testing.model import call
from rung.tools import Principal, Proposed, Verdict, decide, refusal, tool


@tool
def read(x: int = 1) -> int:
    """Read."""
    return x


@tool(side_effect="send")
def send(to: str) -> str:
    """Send."""
    return f"sent to {to}"


def verdict(made: Any, principal: Principal = ACME, judges: Any = (), arguments: str = "{}") -> Verdict:
    return decide(
        made,
        ToolCall(id="1", name="it", arguments=arguments),
        principal,
        session="s",
        turn="t",
        known=["read", "send"],
        judges=judges,
    )


def variant(**changes: Any) -> Any:
    return msgspec.structs.replace(read, **changes)


ROWS: list[tuple[str, Any, Principal, str, str]] = [
    ("it may", read, ACME, "allow", ""),
    ("no such tool", None, ACME, "deny", "unknown_tool"),
    ("a scope is missing", variant(scopes=frozenset({"admin"})), ACME, "deny", "missing_scope"),
    ("another tenant's tool", variant(tenants=frozenset({"other"})), ACME, "deny", "other_tenant"),
    ("its results are too sensitive", variant(sensitivity=Sensitivity.RESTRICTED), ACME, "deny", "above_clearance"),
    ("nobody to bind", variant(bind={"x": "subject"}), Principal(tenant="acme"), "deny", "missing_scope"),
    ("it writes", variant(side_effect="write"), ACME, "ask", "side_effect_write"),
    ("it writes and never asks", variant(side_effect="write", approval="never"), ACME, "allow", ""),
    ("it reads and asks", variant(approval="ask"), ACME, "ask", "side_effect_read"),
]


@pytest.mark.parametrize(("what", "made", "principal", "outcome", "reason"), ROWS, ids=[row[0] for row in ROWS])
def test_the_gate_decides(what: str, made: Any, principal: Principal, outcome: str, reason: str) -> None:
    found = verdict(made, principal)
    assert (found.outcome, found.reason) == (outcome, reason)


def test_the_strictest_rule_wins_and_all_reasons_are_listed() -> None:
    def doubts(_: Proposed) -> Verdict:
        return Verdict(outcome="ask", reasons=("odd_recipient",))

    def forbids(_: Proposed) -> Verdict:
        return Verdict(outcome="deny", reasons=("untrusted_argument",))

    found = verdict(send, judges=[doubts, forbids], arguments='{"to":"x"}')
    assert (found.outcome, found.reasons) == ("deny", ("untrusted_argument", "odd_recipient", "side_effect_send"))


def test_a_rule_that_fails_denies() -> None:
    def broken(_: Proposed) -> Verdict:
        raise KeyError("x")

    assert verdict(read, judges=[broken]).reasons == ("rule_failed",)


def test_a_refusal_tells_the_model_why_and_what_would_do() -> None:
    told = refusal(verdict(read, arguments='{"y": 1}'))
    assert told == {
        "ok": False,
        "refused": "undeclared_argument",
        "hint": "leave out arguments that the tool does not declare (undeclared: `y`)",
        "allowed": ["x"],
    }


async def test_a_side_effect_without_an_approver_is_refused_and_the_loop_goes_on() -> None:
    engine = agent(call("send", {"to": "x"}), "I would send it.", tools=[send])
    outcome = await engine.run("Send", session="s", principal=ACME)
    assert (outcome.status, outcome.calls) == ("done", 0)
    assert "no_approver" in sent(engine)[-1]["messages"][-1]["content"]
    compiles(engine, outcome)


async def approved(_: Proposed) -> bool:
    return True


def declined(_: Proposed) -> bool:
    return False


def broken(_: Proposed) -> bool:
    raise RuntimeError("no terminal")


@pytest.mark.parametrize(("approve", "made"), [(approved, True), (declined, False), (broken, False)])
async def test_a_person_decides_on_side_effects(approve: Any, made: bool) -> None:
    asked: list[Proposed] = []

    def ask(proposed: Proposed) -> Any:
        asked.append(proposed)
        return approve(proposed)

    engine = agent(call("send", {"to": "x"}), "ok", tools=[send], approve=ask)
    outcome = await engine.run("Send", session="s", principal=ACME)
    content = sent(engine)[-1]["messages"][-1]["content"]
    assert ("sent to x" in content) is made
    assert ("not_approved" in content) is not made
    assert (asked[0].arguments, asked[0].principal.subject) == ({"to": "x"}, "u7")
    assert outcome.done


async def test_a_tool_that_the_principal_may_not_call_is_not_offered() -> None:
    @tool(scopes={"admin"})
    def wipe() -> None:
        """Wipe."""

    engine = agent(call("wipe", {}), "ok", tools=[read, wipe])
    await engine.run("Wipe", session="s", principal=ACME)
    assert [one["function"]["name"] for one in sent(engine)[0]["tools"]] == ["read"]
    assert "unknown_tool" in sent(engine)[-1]["messages"][-1]["content"]


async def test_bound_arguments_come_from_the_principal() -> None:
    @tool(bind={"customer": "subject", "tenant": "tenant", "place": "session"})
    def mine(customer: str, tenant: str, place: str) -> list[str]:
        """Mine."""
        return [customer, tenant, place]

    engine = agent(call("mine", {}), "ok", tools=[mine])
    await engine.run("Mine?", session="s", principal=ACME)
    assert sent(engine)[-1]["messages"][-1]["content"] == '["u7","acme","s"]'


async def test_side_effects_run_in_the_order_that_the_model_wrote() -> None:
    order: list[int] = []

    @tool(side_effect="write", approval="never")
    async def write(n: int) -> int:
        """Write."""
        import asyncio

        await asyncio.sleep(0.03 - n * 0.01)
        order.append(n)
        return n

    engine = agent([call("write", {"n": n}) for n in range(3)], "ok", tools=[write])
    await engine.run("Write", session="s", principal=ACME)
    assert order == [0, 1, 2]


async def test_reads_run_at_the_same_time_and_answer_in_order() -> None:
    import asyncio

    last_first: list[int] = []
    all_of_them = asyncio.Barrier(3)

    @tool
    async def slow(n: int) -> int:
        """Slow."""
        await asyncio.wait_for(all_of_them.wait(), 20)
        while len(last_first) < 2 - n:
            await asyncio.sleep(0)
        last_first.append(n)
        return n

    engine = agent([call("slow", {"n": n}) for n in range(3)], "ok", tools=[slow])
    outcome = await engine.run("Read", session="s", principal=ACME)
    assert last_first == [2, 1, 0]
    assert [item.reveal("test") for item in outcome.items if item.call_id] == ["0", "1", "2"]
