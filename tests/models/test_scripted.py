"""The scripted model and the scripted server say what a test wrote down, and keep what they were asked."""

from __future__ import annotations

import gc
import json
import warnings
from collections.abc import Mapping
from typing import Any

import anthropic
import openai
import pytest

from rung.assembly.reply import CallDelta, Model, Reply, ReplyDone, StreamEvent, TextDelta, Usage, close
from rung.assembly.validate import check
from rung.errors import InputError, ModelTimeoutError, RequestError
from rung.testing.model import ScriptedModel, call
from rung.testing.server import Fault, Raw, ScriptedServer

REQUEST: dict[str, Any] = {"messages": [{"role": "user", "content": "Where is it?"}]}


async def test_a_script_is_said_line_by_line_and_requests_are_kept_as_they_were() -> None:
    model: Model = ScriptedModel(
        call("order_lookup", {"id": "é"}), [call("a"), call("b", "{bad")], "Friday.", Reply(text="cut", stop="length")
    )
    request = json.loads(json.dumps(REQUEST))
    found = [await model.complete(request, max_tokens=i) for i in range(4)]
    assert [[(one.id, one.name, one.arguments) for one in reply.calls] for reply in found] == [
        [("call_1", "order_lookup", '{"id": "é"}')],
        [("call_2", "a", "{}"), ("call_3", "b", "{bad")],
        [],
        [],
    ]
    assert [reply.stop for reply in found] == ["tool_calls", "tool_calls", "end", "length"]
    assert isinstance(model, ScriptedModel)
    request["messages"].clear()
    assert model.requests == [REQUEST] * 4
    assert model.max_tokens == [0, 1, 2, 3]
    assert model.left == 0
    with pytest.raises(InputError, match="has 4 lines and was asked for line 5"):
        await model.complete(REQUEST)
    await close(model)


async def test_a_script_may_raise_look_at_the_request_or_answer_for_ever() -> None:
    async def later(request: Mapping[str, Any]) -> str:
        return request["messages"][0]["content"]

    model = ScriptedModel(ModelTimeoutError("late"), later, usage=Usage(input=1, output=1))
    with pytest.raises(ModelTimeoutError, match="late"):
        await model.complete(REQUEST)
    assert await model.complete(REQUEST) == Reply(text="Where is it?", usage=Usage(input=1, output=1), model="scripted")
    endless = ScriptedModel(later)
    assert [(await endless.complete(REQUEST)).text for _ in range(3)] == ["Where is it?"] * 3


async def test_a_streamed_line_comes_in_pieces() -> None:
    events: list[StreamEvent] = []
    reply = await ScriptedModel(Reply(text=" On its  way ", calls=(call("a", {"n": 1}),))).complete(
        REQUEST, stream=events.append
    )
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text
    assert "".join(event.arguments for event in events if isinstance(event, CallDelta)) == '{"n": 1}'
    assert events[-1] == ReplyDone(reply=reply)
    assert len(events) == 7


async def test_a_check_fails_the_call_as_the_provider_would() -> None:
    model = ScriptedModel("never", check=check)
    with pytest.raises(RequestError):
        await model.complete({"messages": [{"role": "user"}]})


@pytest.mark.parametrize("line", [7, None, ["text"], [], {"text": "x"}])
async def test_what_a_script_may_not_hold_is_refused(line: Any) -> None:
    with pytest.raises(InputError, match="script"):
        await ScriptedModel(line).complete(REQUEST)


def test_the_official_synchronous_clients_read_the_server() -> None:
    lines = (Reply(text="hi", calls=(call("a", {"n": 1}),)),)
    with ScriptedServer(*lines * 6) as server:
        chat = openai.OpenAI(api_key="x", base_url=server.openai_url)
        claude = anthropic.Anthropic(api_key="x", base_url=server.url)
        with chat, claude:
            completion = chat.chat.completions.create(model="m", messages=REQUEST["messages"])
            assert completion.choices[0].finish_reason == "tool_calls"
            with chat.chat.completions.stream(model="m", messages=REQUEST["messages"]) as stream:
                final = stream.get_final_completion()
            assert final.choices[0].message.content == "hi"
            response = chat.responses.create(model="m", input="?")
            assert response.output_text == "hi"
            with chat.responses.stream(model="m", input="?") as events:
                assert events.get_final_response().output_text == "hi"
            message = claude.messages.create(model="m", max_tokens=9, messages=REQUEST["messages"])
            assert [block.type for block in message.content] == ["text", "tool_use"]
            with claude.messages.stream(model="m", max_tokens=9, messages=REQUEST["messages"]) as pieces:
                assert pieces.get_final_message().stop_reason == "tool_use"
            count = claude.messages.count_tokens(model="m", messages=REQUEST["messages"])
            assert count.input_tokens > 1
            assert [one.id for one in chat.models.list()] == ["scripted"]
            with pytest.raises(openai.NotFoundError):
                chat.embeddings.create(model="m", input="x")
    assert [one.format for one in server.requests[:3]] == ["openai-chat", "openai-chat", "openai-responses"]


def test_a_server_can_count_limit_what_it_keeps_and_ask_for_a_key() -> None:
    with ScriptedServer("a", "b", "c", key="right", keep=2, count=lambda body: 42, usage=Usage(input=5)) as server:
        with (
            openai.OpenAI(api_key="wrong", base_url=server.openai_url) as client,
            pytest.raises(openai.AuthenticationError),
        ):
            client.chat.completions.create(model="m", messages=REQUEST["messages"])
        with openai.OpenAI(api_key="right", base_url=server.openai_url) as client:
            found = client.chat.completions.create(model="m", messages=REQUEST["messages"])
            assert found.usage is not None
            assert found.usage.prompt_tokens == 5
            assert [client.chat.completions.create(model="m", messages=[]).choices[0].message.content] == ["b"]
        with anthropic.Anthropic(api_key="right", base_url=server.url) as other:
            assert other.messages.count_tokens(model="m", messages=[]).input_tokens == 42
        assert len(server.requests) == 2
        assert "right" not in repr(server.requests)


def test_a_script_that_is_over_and_a_body_that_is_no_json_are_refused() -> None:
    with ScriptedServer(Raw(body=b"{}", status=200)) as server:
        with openai.OpenAI(api_key="x", base_url=server.openai_url, max_retries=0) as client:
            client.chat.completions.create(model="m", messages=[])
            with pytest.raises(openai.BadRequestError, match="the script has 1 lines"):
                client.chat.completions.create(model="m", messages=[])
        import urllib.error
        import urllib.request

        request = urllib.request.Request(f"{server.openai_url}/chat/completions", b"{", method="POST")
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(request)
        assert caught.value.code == 400
        caught.value.close()


def test_a_fault_of_the_script_itself_reaches_the_client() -> None:
    def wrong(body: Mapping[str, Any]) -> Any:
        raise KeyError("not in the test's table")

    for script, words in ((wrong, "not in the test's table"), (lambda body: 7, "not `int`")):
        with (
            ScriptedServer(script) as server,
            openai.OpenAI(api_key="x", base_url=server.openai_url) as client,
            pytest.raises(openai.BadRequestError, match=words),
        ):
            client.chat.completions.create(model="m", messages=[])


def test_a_server_opens_again_and_leaves_nothing_open() -> None:
    server = ScriptedServer(lambda body: Fault(status=400))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for _ in range(2):
            with (
                server,
                openai.OpenAI(api_key="x", base_url=server.openai_url) as client,
                pytest.raises(openai.BadRequestError),
            ):
                client.chat.completions.create(model="m", messages=[])
        gc.collect()
    with pytest.raises(RuntimeError, match="not open"):
        _ = server.url
