"""Adapters through the official clients, against a server that speaks the providers' formats."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import anthropic
import openai
import pytest
from tests.models.formats import FORMATS, Format

from rung.assembly.reply import CallDelta, Reply, ReplyDone, StreamEvent, TextDelta, Usage, close
from rung.assembly.targets import target
from rung.assembly.validate import validate
from rung.errors import ModelError, ModelRateLimitError, ModelReplyError, ModelTimeoutError
from rung.models import AnthropicMessages, OpenAIChat, OpenAIResponses, Prices
from rung.records.item import Opaque
from rung.testing.model import call
from rung.testing.server import Broken, Raw, ScriptedServer, Slow

USAGE = Usage(input=100, output=9, cached_input=20, cache_write=30, reasoning=4)
FULL = Reply(
    text="On its way — é 🚚",
    calls=(call("order_lookup", {"order_id": "1842", "note": "é"}), call("weather")),
    usage=USAGE,
)
forms = pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)


@forms
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
async def test_a_reply_comes_with_text_calls_usage_and_stop(form: Format, streamed: bool) -> None:
    events: list[StreamEvent] = []
    with ScriptedServer(FULL, validate=validate) as server:
        async with form.model(server) as model:
            assert (model.name, model.target) == ("small", form.target)
            reply = await model.complete(form.request, max_tokens=50, stream=events.append if streamed else None)
        assert server.requests[0].body[form.limit] == 50
    assert reply.text == FULL.text
    assert [(one.id, one.name) for one in reply.calls] == [("call_1", "order_lookup"), ("call_2", "weather")]
    assert [one.arguments for one in reply.calls] == [one.arguments for one in FULL.calls]
    assert (reply.usage, reply.stop, reply.model) == (USAGE, "tool_calls", "small")
    assert reply.raw_stop
    assert reply.id
    if streamed:
        assert "".join(event.text for event in events if isinstance(event, TextDelta)) == FULL.text
        assert {event.index for event in events if isinstance(event, CallDelta)} == {0, 1}
        assert [event for event in events if isinstance(event, ReplyDone)] == events[-1:] == [ReplyDone(reply=reply)]


@forms
@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    "raw",
    [b"<html>busy</html>", b"[]", b"7", b'{"choices": [{"mess', b"", b'"text"'],
    ids=["html", "list", "number", "cut", "nothing", "text"],
)
async def test_a_malformed_answer_is_a_reply_error(form: Format, streamed: bool, raw: bytes) -> None:
    if streamed and raw.startswith((b"<", b"{", b"[", b"7", b'"')):
        name = "message_start" if form.target == "anthropic" else "x"
        raw = b"event: " + name.encode() + b"\ndata: " + raw + b"\n\n"
    kind = "text/event-stream" if streamed else "application/json"
    with ScriptedServer(Raw(body=raw, content_type=kind)) as server:
        async with form.model(server) as model:
            with pytest.raises(ModelReplyError):
                await model.complete(form.request, stream=(lambda event: None) if streamed else None)


BREAKS: dict[str, tuple[str, type[ModelError]]] = {
    "the connection drops": ("drop", ModelTimeoutError),
    "it ends before the reply does": ("end", ModelReplyError),
    "no more comes": ("stall", ModelTimeoutError),
    "it reports a failure": ("error", ModelError),
}


@forms
@pytest.mark.parametrize(("how", "kind"), BREAKS.values(), ids=BREAKS)
@pytest.mark.parametrize("after", [0, 3])
async def test_a_stream_that_breaks_has_a_typed_end_and_keeps_what_came(
    form: Format, how: Any, kind: type[ModelError], after: int
) -> None:
    events: list[StreamEvent] = []
    with ScriptedServer(Broken(line="one two three four", after=after, how=how), "fine") as server:
        async with form.model(server, timeout=0.4 if how == "stall" else 10.0) as model:
            with pytest.raises(ModelError) as caught:
                await model.complete(form.request, stream=events.append)
            assert isinstance(caught.value, kind)
            assert not any(isinstance(event, ReplyDone) for event in events)
            if how != "stall":
                assert (await model.complete(form.request)).text == "fine"  # the model can be used again
    if how == "error" and form.target == "anthropic":
        assert isinstance(caught.value, ModelRateLimitError)


@forms
@pytest.mark.parametrize("how", ["drop", "stall"])
async def test_a_body_that_breaks_is_a_timeout(form: Format, how: Any) -> None:
    with ScriptedServer(Broken(line="one two", how=how)) as server:
        async with form.model(server, timeout=0.4) as model:
            with pytest.raises(ModelTimeoutError):
                await model.complete(form.request)


@forms
async def test_a_slow_answer_runs_into_the_time_limit(form: Format) -> None:
    with ScriptedServer(Slow(line="late", seconds=30)) as server:
        async with form.model(server, timeout=0.3) as model:
            with pytest.raises(ModelTimeoutError, match="`timeout`"):
                await model.complete(form.request)


async def test_the_time_limit_is_between_two_pieces_of_a_stream() -> None:
    with ScriptedServer(Slow(line="a b c d e f", between=0.25)) as server:
        async with FORMATS[0].model(server, timeout=1.2) as model:
            started = asyncio.get_running_loop().time()
            assert (await model.complete(FORMATS[0].request, stream=lambda event: None)).text == "a b c d e f"
            assert asyncio.get_running_loop().time() - started > 1.2


@forms
async def test_what_the_callers_function_raises_is_not_the_providers_fault(form: Format) -> None:
    def stop(event: StreamEvent) -> None:
        raise KeyError("mine")

    with ScriptedServer("one two", "fine") as server:
        async with form.model(server) as model:
            with pytest.raises(KeyError, match="mine"):
                await model.complete(form.request, stream=stop)
            assert (await model.complete(form.request)).text == "fine"


@forms
async def test_a_request_that_the_provider_would_refuse_is_refused(form: Format) -> None:
    seen: list[tuple[list[str], str]] = []

    def find(request: Mapping[str, Any], name: str) -> list[str]:
        seen.append((sorted(request), name))
        return ["messages[0]: wrong"]

    with ScriptedServer("never said", validate=find) as server:
        async with form.model(server) as model:
            with pytest.raises(ModelError) as caught:
                await model.complete(form.request, stream=lambda event: None)
        assert server.refused == 1
        assert server.requests[0].problems == ("messages[0]: wrong",)
    assert "wrong" in caught.value.fields["detail"]
    assert seen[0][1] == form.target
    assert not {"model", "stream"} & {*seen[0][0]}


@forms
async def test_options_are_sent_and_a_requests_own_arguments_win(form: Format) -> None:
    with ScriptedServer("a", "b") as server:
        async with form.model(
            server, options={"service_tier": "auto", "metadata": {"user_id": "u"}}, max_tokens=77
        ) as model:
            await model.complete({**form.request, "service_tier": "default"})
            await model.complete({**form.request, form.limit: 5}, max_tokens=9)
        first, second = (one.body for one in server.requests)
    assert (first["service_tier"], first["metadata"], first[form.limit]) == ("default", {"user_id": "u"}, 77)
    assert second[form.limit] == 5


@forms
async def test_prices_give_the_cost(form: Format) -> None:
    prices = Prices(input=1.0, output=10.0, cached_input=0.1, cache_write=2.0)
    with ScriptedServer(FULL, FULL) as server:
        async with form.model(server, prices=prices) as model:
            whole = await model.complete(form.request)
            streamed = await model.complete(form.request, stream=lambda event: None)
    assert whole.usage.cost == pytest.approx((50 * 1 + 20 * 0.1 + 30 * 2 + 9 * 10) / 1e6)
    assert streamed.usage.cost == whole.usage.cost


THOUGHT = '{"type":"thinking","thinking":"where is it – é","signature":"EqQB+/=="}'
REASONING = '{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"x"}'


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(
    ("form", "provider", "block"),
    [(FORMATS[2], "anthropic", THOUGHT), (FORMATS[1], "openai-responses", REASONING)],
    ids=["anthropic", "responses"],
)
async def test_reasoning_goes_back_as_it_came(form: Format, provider: str, block: str, streamed: bool) -> None:
    import json

    from rung.assembly.messages import Block, Message, Prompt

    first = Reply(text="I look.", calls=(call("order_lookup"),), opaque=(Opaque(provider=provider, json=block),))
    with ScriptedServer(first, "Friday.", validate=validate) as server:
        async with form.model(server) as model:
            reply = await model.complete(form.request, stream=(lambda event: None) if streamed else None)
            messages = (
                Message(role="user", place="history", blocks=(Block(text="Where is it?"),)),
                Message(
                    role="assistant",
                    place="history",
                    blocks=(Block(text=reply.text),),
                    calls=reply.calls,
                    opaque=reply.opaque,
                ),
                Message(role="tool", place="history", call_id=reply.calls[0].id, blocks=(Block(text="shipped"),)),
            )
            second = await model.complete(target(form.target).request(Prompt(messages=messages)))
        sent = server.requests[1].body
    assert second.text == "Friday."
    places = sent["messages"][1]["content"] if form.target == "anthropic" else sent["input"]
    assert json.loads(block) in places


async def test_cache_markers_go_out_as_they_are() -> None:
    mark = {"type": "ephemeral"}
    system = [{"type": "text", "text": "Answer.", "cache_control": mark}]
    with ScriptedServer("fine", validate=validate) as server:
        async with FORMATS[2].model(server) as model:
            await model.complete({"system": system, **FORMATS[2].request})
        assert server.requests[0].body["system"] == system


async def test_openai_itself_gets_the_newer_name_of_the_limit() -> None:
    assert not OpenAIChat("gpt").compatible
    assert not OpenAIChat("gpt", base_url="https://eu.api.openai.com/v1").compatible
    assert OpenAIChat("gpt", base_url="http://localhost:8000/v1").compatible
    assert OpenAIChat("gpt")._arguments({}, 5) == {"model": "gpt", "max_completion_tokens": 5}
    assert AnthropicMessages("c")._max_tokens == 4_096


async def test_a_client_of_ones_own_is_used_as_it_is() -> None:
    with ScriptedServer("one", "two", key="mine") as server:
        async with openai.AsyncOpenAI(api_key="mine", base_url=server.openai_url) as client:
            model = OpenAIResponses("small", client=client)
            assert model.address == server.openai_url
            assert (await model.complete(FORMATS[1].request)).text == "one"
            await model.aclose()
        async with anthropic.AsyncAnthropic(api_key="mine", base_url=server.url) as other:
            claude = AnthropicMessages("small", client=other)
            claude.check()
            assert (await claude.complete(FORMATS[2].request)).text == "two"


@forms
def test_a_model_works_in_one_event_loop_after_another(form: Format) -> None:
    with ScriptedServer(lambda body: "hi") as server:
        model = form.model(server)

        async def turn() -> str:
            try:
                return (await model.complete(form.request)).text
            finally:
                await close(model)

        assert [asyncio.run(turn()) for _ in range(3)] == ["hi"] * 3


@forms
async def test_many_calls_at_a_time_keep_their_replies(form: Format) -> None:
    def echo(body: Mapping[str, Any]) -> str:
        return (body.get("messages") or body.get("input"))[0]["content"]

    field = "input" if form.target == "openai-responses" else "messages"
    with ScriptedServer(echo) as server:
        async with form.model(server) as model:
            asked = [{field: [{"role": "user", "content": f"n {i}"}]} for i in range(20)]
            found = await asyncio.gather(*(model.complete(one) for one in asked))
    assert [reply.text for reply in found] == [f"n {i}" for i in range(20)]


def test_a_model_shows_its_name_and_address_only() -> None:
    model = OpenAIChat("gpt", base_url="http://u:p@localhost:8000/v1?key=x", api_key="sk-secret")
    assert repr(model) == "<OpenAIChat gpt at http://localhost:8000/v1>"
    assert repr(OpenAIChat("gpt")) == "<OpenAIChat gpt>"
