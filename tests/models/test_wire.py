"""What providers send, as replies: pure, without a client or a server."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.models.formats import FORMATS, Format

from rung.assembly.reply import CallDelta, Reply, ReplyDone, TextDelta, Usage
from rung.errors import ModelAuthError, ModelError, ModelRateLimitError, ModelReplyError, ModelRequestError
from rung.models.chat_wire import ChatStream, chat_reply
from rung.models.messages_wire import MessagesStream, messages_reply
from rung.models.responses_wire import ResponsesStream, responses_reply
from rung.records.item import Opaque, ToolCall

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=60)
names = st.from_regex(r"[a-z_]{1,12}", fullmatch=True)
objects = st.dictionaries(names, st.one_of(st.integers(-9, 9), texts, st.none()), max_size=3)


@st.composite
def usages(draw: st.DrawFn) -> Usage:
    cached, written = draw(st.integers(0, 50)), draw(st.integers(0, 50))
    output = draw(st.integers(0, 99))
    return Usage(
        input=cached + written + draw(st.integers(0, 99)),
        output=output,
        cached_input=cached,
        cache_write=written,
        reasoning=draw(st.integers(0, output)),
    )


@st.composite
def replies(draw: st.DrawFn) -> Reply:
    calls = tuple(
        ToolCall(id=f"call_{i}", name=draw(names), arguments=json.dumps(draw(objects), ensure_ascii=False))
        for i in range(draw(st.integers(0, 3)))
    )
    stop: Any = "tool_calls" if calls else draw(st.sampled_from(["end", "length"]))
    return Reply(text=draw(texts), calls=calls, usage=draw(usages()), stop=stop, model="small", id="r1")


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
@given(reply=replies())
def test_a_reply_reads_the_same_whole_and_streamed(form: Format, reply: Reply) -> None:
    whole = form.parse("p", json.dumps(form.body(reply, 1)).encode())
    stream = form.stream("p")
    events = [event for _, data in form.events(reply, 1) for event in stream.feed(data)]
    streamed = stream.reply()
    for found in (whole, streamed):
        assert (found.text, found.usage, found.stop) == (reply.text, reply.usage, reply.stop)
        assert [(one.id, one.name, json.loads(one.arguments)) for one in found.calls] == [
            (one.id, one.name, json.loads(one.arguments)) for one in reply.calls
        ]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == reply.text
    for index, one in enumerate(reply.calls):
        pieces = [event for event in events if isinstance(event, CallDelta) and event.index == index]
        assert "".join(piece.arguments for piece in pieces) == one.arguments
        assert {(piece.id, piece.name) for piece in pieces} == {(one.id, one.name)}
    assert not [event for event in events if isinstance(event, ReplyDone)]


def _chat(message: dict[str, Any] | None = None, stop: str | None = "stop", **more: Any) -> dict[str, Any]:
    choice = {"message": {"role": "assistant", "content": None, **(message or {})}, "finish_reason": stop}
    return {"choices": [choice], **more}


def _tool(id: Any, name: Any, arguments: Any = "{}") -> dict[str, Any]:
    return {"id": id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _block(**block: Any) -> dict[str, Any]:
    return {"type": "message", "content": [block], "stop_reason": "end_turn"}


def _item(**item: Any) -> dict[str, Any]:
    return {"status": "completed", "output": [item]}


BROKEN: dict[str, tuple[Any, Any]] = {
    "chat: no JSON": (chat_reply, b"<html>busy</html>"),
    "chat: a list": (chat_reply, b"[]"),
    "chat: no UTF-8": (chat_reply, b'{"choices": "\xff"}'),
    "chat: cut off": (chat_reply, b'{"choices": [{"mess'),
    "chat: no choice": (chat_reply, {"choices": []}),
    "chat: choices missing": (chat_reply, {"id": "x"}),
    "chat: choices null": (chat_reply, {"choices": None}),
    "chat: no message": (chat_reply, {"choices": [{"finish_reason": "stop"}]}),
    "chat: content a number": (chat_reply, _chat({"content": 7})),
    "chat: a call without a function": (chat_reply, _chat({"tool_calls": [{"id": "a"}]})),
    "chat: a call without a name": (chat_reply, _chat({"tool_calls": [_tool("a", "")]})),
    "chat: two calls of one id": (chat_reply, _chat({"tool_calls": [_tool("a", "x"), _tool("a", "y")]})),
    "chat: says tool calls, has none": (chat_reply, _chat(stop="tool_calls")),
    "responses: no output": (responses_reply, {"status": "completed"}),
    "responses: an item without a type": (responses_reply, _item(id="x")),
    "responses: content a text": (responses_reply, _item(type="message", content="hi")),
    "responses: a call without a name": (responses_reply, _item(type="function_call", call_id="a")),
    "responses: not yet done": (responses_reply, {"status": "in_progress", "output": []}),
    "messages: no message": (messages_reply, {"content": []}),
    "messages: a block without a type": (messages_reply, _block(text="x")),
    "messages: text a number": (messages_reply, _block(type="text", text=7)),
    "messages: a call without a name": (messages_reply, _block(type="tool_use", id="a", input={})),
}


@pytest.mark.parametrize(("parse", "raw"), BROKEN.values(), ids=BROKEN)
def test_a_reply_that_breaks_the_protocol_is_a_reply_error_without_content(parse: Any, raw: Any) -> None:
    with pytest.raises(ModelReplyError, match="`p` sent a broken reply: ") as caught:
        parse("p", raw)
    assert caught.value.fields["provider"] == "p"
    assert "busy" not in str(caught.value)


FAILED: dict[str, tuple[Any, Any, type[ModelError]]] = {
    "chat: an error under status 200": (chat_reply, {"error": {"message": "m", "code": 502}}, ModelError),
    "chat: a text as error": (chat_reply, {"error": "m"}, ModelError),
    "chat: no money": (chat_reply, {"error": {"code": "insufficient_quota"}}, ModelAuthError),
    "responses: failed": (
        responses_reply,
        {"status": "failed", "output": [], "error": {"code": "rate_limit_exceeded", "message": "m"}},
        ModelRateLimitError,
    ),
    "responses: failed without a reason": (responses_reply, {"status": "failed", "output": []}, ModelError),
    "messages: an error": (
        messages_reply,
        {"type": "error", "error": {"type": "invalid_request_error", "message": "m"}},
        ModelRequestError,
    ),
}


@pytest.mark.parametrize(("parse", "raw", "kind"), FAILED.values(), ids=FAILED)
def test_a_failure_inside_a_reply_has_its_own_kind(parse: Any, raw: Any, kind: type[ModelError]) -> None:
    with pytest.raises(ModelError) as caught:
        parse("p", raw)
    assert type(caught.value) is kind
    assert caught.value.fields["detail"] in ("m", "")


STOPS: dict[str, tuple[Any, Any, str, str]] = {
    "chat: stop": (chat_reply, _chat({"content": "x"}), "end", "stop"),
    "chat: length": (chat_reply, _chat({"content": "x"}, "length"), "length", "length"),
    "chat: filter": (chat_reply, _chat({"content": ""}, "content_filter"), "refusal", "content_filter"),
    "chat: refusal": (chat_reply, _chat({"refusal": "no"}), "refusal", "stop"),
    "chat: calls under stop": (chat_reply, _chat({"tool_calls": [_tool("a", "x")]}), "tool_calls", "stop"),
    "chat: text under tool calls": (chat_reply, _chat({"content": "x"}, "tool_calls"), "end", "tool_calls"),
    "chat: a word of its own": (chat_reply, _chat({"content": "x"}, "eos"), "other", "eos"),
    "chat: none": (chat_reply, _chat({"content": "x"}, None), "end", ""),
    "responses: filter": (
        responses_reply,
        {"status": "incomplete", "output": [], "incomplete_details": {"reason": "content_filter"}},
        "refusal",
        "content_filter",
    ),
    "responses: refusal": (
        responses_reply,
        _item(type="message", content=[{"type": "refusal", "refusal": "no"}]),
        "refusal",
        "completed",
    ),
    "messages: window": (
        messages_reply,
        {**_block(type="text", text="x"), "stop_reason": "model_context_window_exceeded"},
        "length",
        "model_context_window_exceeded",
    ),
    "messages: pause": (
        messages_reply,
        {**_block(type="text", text="x"), "stop_reason": "pause_turn"},
        "other",
        "pause_turn",
    ),
    "messages: refusal": (
        messages_reply,
        {**_block(type="text", text="x"), "stop_reason": "refusal"},
        "refusal",
        "refusal",
    ),
}


@pytest.mark.parametrize(("parse", "raw", "stop", "raw_stop"), STOPS.values(), ids=STOPS)
def test_a_stop_is_read_in_one_meaning_and_kept_in_the_providers_words(
    parse: Any, raw: Any, stop: str, raw_stop: str
) -> None:
    found = parse("p", raw)
    assert (found.stop, found.raw_stop) == (stop, raw_stop)


def test_arguments_that_are_not_json_stay_the_models_text() -> None:
    found = chat_reply("p", _chat({"tool_calls": [_tool("a", "x", '{"order": 18')]}))
    assert found.calls[0].arguments == '{"order": 18'
    stream = MessagesStream("p")
    stream.feed({"type": "content_block_start", "content_block": {"type": "tool_use", "id": "a", "name": "x"}})
    stream.feed({"type": "content_block_delta", "delta": {"type": "input_json_delta", "partial_json": '{"order": 18'}})
    stream.feed({"type": "message_delta", "delta": {"stop_reason": "max_tokens"}})
    assert stream.reply().calls[0].arguments == '{"order": 18'
    assert stream.reply().stop == "length"


def test_a_missing_call_id_is_made_and_is_the_same_each_time() -> None:
    raw = _chat({"tool_calls": [_tool("", "x"), _tool(None, "x"), _tool("b", "x")]})
    first, second = chat_reply("p", raw), chat_reply("p", raw)
    assert first == second
    assert len({one.id for one in first.calls}) == 3
    assert all(one.id for one in first.calls)


def test_arguments_sent_as_an_object_become_text() -> None:
    assert chat_reply("p", _chat({"tool_calls": [_tool("a", "x", {"n": 1})]})).calls[0].arguments == '{"n":1}'


def test_blocks_of_the_providers_own_pass_through_byte_for_byte() -> None:
    block = '{"type": "thinking",  "thinking": "a\\u00e9 b", "signature": "EqQB+/=="}'
    raw = f'{{"type":"message","content":[{block},{{"type":"text","text":"hi"}}],"stop_reason":"end_turn"}}'
    assert messages_reply("p", raw.encode()).opaque == (Opaque(provider="anthropic", json=block),)
    item = '{"type":"reasoning", "id":"rs_1","summary":[],"encrypted_content":"x"}'
    found = responses_reply("p", f'{{"status":"completed","output":[{item}]}}'.encode())
    assert found.opaque == (Opaque(provider="openai-responses", json=item),)


def test_a_streamed_block_of_thought_is_whole_with_its_signature() -> None:
    stream = MessagesStream("p")
    start = {"type": "thinking", "thinking": "", "signature": ""}
    stream.feed({"type": "content_block_start", "index": 0, "content_block": start})
    for delta in (
        {"type": "thinking_delta", "thinking": "a "},
        {"type": "thinking_delta", "thinking": "b"},
        {"type": "signature_delta", "signature": "Eq=="},
    ):
        assert stream.feed({"type": "content_block_delta", "index": 0, "delta": delta}) == []
    redacted = {"type": "redacted_thinking", "data": "xyz"}
    stream.feed({"type": "content_block_start", "index": 1, "content_block": redacted})
    stream.feed({"type": "message_delta", "delta": {"stop_reason": "end_turn"}})
    assert [json.loads(one.json) for one in stream.reply().opaque] == [
        {"type": "thinking", "thinking": "a b", "signature": "Eq=="},
        redacted,
    ]


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
def test_a_stream_that_ends_before_its_reply_is_a_reply_error(form: Format) -> None:
    events = form.events(Reply(text="a b c", usage=Usage(input=1, output=1)), 1)
    stream = form.stream("p")
    for _, data in events[:3]:
        stream.feed(data)
    with pytest.raises(ModelReplyError, match="ended before"):
        stream.reply()


def test_calls_under_one_index_are_told_apart_by_their_ids() -> None:
    stream = ChatStream("p")
    for id, name, arguments in (("a", "x", '{"n":1}'), ("b", "y", '{"n"'), (None, None, ":2}")):
        piece = {"index": 0, "id": id, "function": {"name": name, "arguments": arguments}}
        stream.feed({"choices": [{"delta": {"tool_calls": [piece]}}]})
    stream.feed({"choices": [{"delta": {}, "finish_reason": "stop"}]})
    assert [(one.id, one.name, one.arguments) for one in stream.reply().calls] == [
        ("a", "x", '{"n":1}'),
        ("b", "y", '{"n":2}'),
    ]


def test_an_empty_output_in_the_last_event_is_taken_from_the_events_before() -> None:
    stream = ResponsesStream("p")
    item = {"type": "message", "content": [{"type": "output_text", "text": "hi"}]}
    stream.feed({"type": "response.output_item.done", "output_index": 0, "item": item})
    stream.feed({"type": "response.completed", "response": {"status": "completed", "output": []}})
    assert stream.reply().text == "hi"


def test_a_reply_without_figures_says_so() -> None:
    found = chat_reply("p", _chat({"content": "x"}))
    assert found.usage == Usage(reported=False)
    assert found.usage.total == 0


def test_usage_adds_up_and_an_unknown_cost_stays_unknown() -> None:
    one, two = Usage(input=3, output=2, cost=0.5), Usage(input=1, output=1, cached_input=1, cost=0.25)
    assert one + two == Usage(input=4, output=3, cached_input=1, cost=0.75)
    assert (one + Usage(input=1)).cost is None
    assert not (one + Usage(reported=False)).reported
