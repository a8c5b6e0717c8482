"""A whole turn with a real small model behind an OpenAI-compatible server, through the official client."""

from __future__ import annotations

from tests.engine.agents import ACME, compiles, order_lookup

from rung import ContextStore
from rung.engine import ContextEngine, RunLimits
from rung.models import OpenAIChat
from rung.testing.local import LocalModel


async def test_a_real_model_calls_a_tool_and_answers_from_its_result(local: LocalModel) -> None:
    # A model this small calls a tool only when it must; the last call of the turn forbids it again.
    options = {"temperature": 0, "tool_choice": "required"}
    async with OpenAIChat(local.name, base_url=local.base_url, options=options) as model:
        engine = ContextEngine(
            ContextStore(),
            model,
            system="Answer from the current order.",
            tools=[order_lookup],
            limits=RunLimits(rounds=1),
            max_output=40,
        )
        first = await engine.run("Where is order 1842?", session="s", principal=ACME)
        assert (first.status, first.reason, first.calls) == ("limit_reached", "rounds", 1)
        result = next(item for item in first.items if item.call_id)
        assert '"status":"shipped"' in result.reveal("test")
        assert first.text
        assert first.usage.reported
        assert first.usage.output > 0
    compiles(engine, first)
