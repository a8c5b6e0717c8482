"""A conversation of a thousand turns with tool calls: every request is valid, and memory stays bounded."""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Mapping
from typing import Any

import pytest
from tests.engine.agents import ACME, RULES, order_lookup

from rung import ContextStore
from rung.assembly.reply import Reply
from rung.assembly.validate import validate
from rung.engine import ContextEngine
from rung.models import AnthropicMessages, OpenAIChat, OpenAIResponses
from rung.testing.model import as_reply, call
from rung.testing.server import ScriptedServer
from rung.tools import tool

FORMATS = {
    "openai-chat": lambda server: OpenAIChat("any", base_url=server.openai_url, api_key="k"),
    "openai-responses": lambda server: OpenAIResponses("any", base_url=server.openai_url, api_key="k"),
    "anthropic": lambda server: AnthropicMessages("any", base_url=server.url, api_key="k"),
}


@tool
def shipping_quote(order_id: str) -> str:
    """What shipping costs.

    Args:
        order_id: the number of the order.
    """
    return f"Shipping order {order_id} costs 4.90 EUR within the country and 12.50 EUR abroad. " * 3


def script(body: Mapping[str, Any]) -> Any:
    """Every request is answered by one or two calls, their results by a text."""
    last = (body.get("messages") or body.get("input"))[-1]
    content = last.get("content")
    answered = last.get("role") == "tool" or last.get("type") == "function_call_output"
    if isinstance(content, list) and any(part.get("type") == "tool_result" for part in content):
        answered = True
    if answered:
        return "It was shipped, and shipping cost 4.90 EUR."
    number = str(content)[-8:].strip("?'}] ")
    calls = [call("order_lookup", {"order_id": number})]
    return calls if len(number) % 2 else [*calls, call("shipping_quote", {"order_id": "1842"})]


def turns(fallback: int) -> int:
    return int(os.environ.get("RUNG_LONG_TURNS", str(fallback)))


@pytest.mark.parametrize("target", list(FORMATS))
async def test_every_request_of_a_long_conversation_is_one_that_its_provider_takes(target: str) -> None:
    with ScriptedServer(script, validate=validate, keep=3) as server, ContextStore() as store:
        model: Any = FORMATS[target](server)
        engine = ContextEngine(store, model, system=RULES, tools=[order_lookup, shipping_quote], budget=1_500)
        async with model:
            for number in range(turns(25)):
                outcome = await engine.run(f"Where is my order {number}?", session="s", principal=ACME)
                assert outcome.done
        assert server.refused == 0
        assert len(server.requests) == 3


class Lean:
    """A model that follows the script, checks each request as its provider would, and keeps none."""

    name, target = "lean", "openai-chat"

    def __init__(self) -> None:
        self.asked = self.calls = 0

    async def complete(self, request: Mapping[str, Any], *, max_tokens: Any = None, stream: Any = None) -> Reply:
        self.asked += 1
        assert validate(request, self.target) == []
        reply = as_reply(script(request), first_id=self.calls + 1)
        self.calls += len(reply.calls)
        return reply


def peak() -> int:
    """The most memory that this process has held so far, in bytes."""
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else size * 1_024


async def test_a_thousand_turns_are_valid_and_hold_their_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a turn the store keeps its items; what the engine and the compiler hold beside them does not grow."""
    monkeypatch.setenv("RUNG_VERIFY", "fast")
    model = Lean()
    with ContextStore() as store:
        tools = [order_lookup, shipping_quote]
        engine = ContextEngine(store, model, system=RULES, tools=tools, budget=3_000, record=False)
        marks: list[int] = []
        for number in range(1_000):
            outcome = await engine.run(f"Where is my order {number}?", session="s", principal=ACME)
            assert outcome.done
            if number in (299, 999):
                marks.append(peak())
    assert model.asked == 2_000
    assert (marks[1] - marks[0]) / 700 < 40_000
