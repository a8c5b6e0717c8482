"""Any callable as a model."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Mapping
from typing import Any

import openai
import pytest

from rung.assembly.reply import Reply, ReplyDone, StreamEvent, TextDelta, Usage
from rung.errors import ConfigError, ModelAuthError, ModelError, ModelReplyError, ModelTimeoutError, ScopeError
from rung.models import CallableModel, Prices
from rung.testing.server import Fault, ScriptedServer

REQUEST = {"prompt": "Where is it?"}
BODY = {"choices": [{"message": {"content": "Friday."}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 3}}


class Dumps:
    def model_dump(self, **_: Any) -> dict[str, Any]:
        return BODY


class Called:
    async def __call__(self, request: Mapping[str, Any]) -> str:
        return "Friday."


async def _later(request: Mapping[str, Any]) -> str:
    return "Friday."


async def _pieces(request: Mapping[str, Any]) -> AsyncIterator[str]:
    yield "Fri"
    yield "day."


FUNCTIONS: dict[str, tuple[Any, str]] = {
    "a text": (lambda request: "Friday.", "text"),
    "a reply": (lambda request: Reply(text="Friday."), "text"),
    "asynchronous": (_later, "text"),
    "an object that is called": (Called(), "text"),
    "pieces": (_pieces, "text"),
    "a function that returns pieces": (lambda request: _pieces(request), "text"),
    "what the provider sends": (lambda request: BODY, "openai-chat"),
    "an object of a client": (lambda request: Dumps(), "openai-chat"),
}


@pytest.mark.parametrize(("function", "target"), FUNCTIONS.values(), ids=FUNCTIONS)
async def test_whatever_a_function_returns_becomes_a_reply(function: Any, target: str) -> None:
    events: list[StreamEvent] = []
    model = CallableModel(function, target=target, name="mine")
    reply = await model.complete(REQUEST, stream=events.append)
    assert (await model.complete(REQUEST)).text == reply.text == "Friday."
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "Friday."
    assert events[-1] == ReplyDone(reply=reply)
    assert (model.name, model.target) == ("mine", target)


async def test_a_plain_function_runs_in_a_thread_and_gets_the_limit() -> None:
    seen: list[Any] = []

    def answer(request: Mapping[str, Any]) -> str:
        seen.append((threading.current_thread() is threading.main_thread(), dict(request)))
        return "x"

    await CallableModel(answer, limit="max_tokens").complete(REQUEST, max_tokens=7)
    await CallableModel(answer).complete(REQUEST, max_tokens=7)
    assert seen == [(False, {**REQUEST, "max_tokens": 7}), (False, REQUEST)]
    assert CallableModel(answer).name == "answer"


async def test_prices_apply_where_there_are_figures() -> None:
    prices = Prices(input=1.0, output=2.0)
    priced = CallableModel(lambda request: Reply(text="x", usage=Usage(input=2, output=1)), prices=prices)
    assert (await priced.complete(REQUEST)).usage.cost == pytest.approx(4e-6)
    assert (await CallableModel(lambda request: "x", prices=prices).complete(REQUEST)).usage.cost is None


@pytest.mark.parametrize("price", [{"input": -1, "output": 0}, {"input": 0, "output": float("nan")}])
def test_a_price_is_zero_or_more(price: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="price"):
        Prices(**price)


RAISED: dict[str, tuple[BaseException, type[Exception]]] = {
    "ours": (ScopeError("x"), ScopeError),
    "a timeout": (TimeoutError(), ModelTimeoutError),
    "a broken connection": (ConnectionResetError(), ModelTimeoutError),
    "anything": (KeyError("x"), ModelError),
    "a value": (ValueError("x"), ModelReplyError),
}


@pytest.mark.parametrize(("error", "kind"), RAISED.values(), ids=RAISED)
async def test_what_a_function_raises_is_a_model_error_with_its_cause(error: Exception, kind: type[Exception]) -> None:
    def fails(request: Mapping[str, Any]) -> str:
        raise error

    with pytest.raises(kind) as caught:
        await CallableModel(fails).complete(REQUEST)
    assert type(caught.value) is kind
    assert caught.value is error or type(caught.value.__cause__) is type(error)


async def test_an_official_clients_error_keeps_its_kind() -> None:
    with ScriptedServer(Fault(status=401)) as server, openai.OpenAI(api_key="x", base_url=server.openai_url) as client:
        model = CallableModel(
            lambda request: client.chat.completions.create(model="m", messages=[]), target="openai-chat"
        )
        with pytest.raises(ModelAuthError):
            await model.complete({})


async def test_a_synchronous_official_client_works_through_a_function() -> None:
    with ScriptedServer("Friday.") as server, openai.OpenAI(api_key="x", base_url=server.openai_url) as client:
        model = CallableModel(
            lambda request: client.chat.completions.create(model="m", **request), target="openai-chat"
        )
        reply = await model.complete({"messages": [{"role": "user", "content": "?"}]})
    assert (reply.text, reply.stop) == ("Friday.", "end")


@pytest.mark.parametrize(("found", "target"), [(7, "text"), (None, "text"), (BODY, "text"), (7, "openai-chat")])
async def test_what_is_no_reply_is_refused_with_what_to_return(found: Any, target: str) -> None:
    with pytest.raises(ModelReplyError, match="return a text"):
        await CallableModel(lambda request: found, target=target).complete(REQUEST)


async def test_a_stream_of_other_things_is_refused() -> None:
    async def numbers(request: Mapping[str, Any]) -> AsyncIterator[int]:
        yield 7

    with pytest.raises(ModelReplyError, match="streams a `int`"):
        await CallableModel(numbers).complete(REQUEST)


async def test_what_the_callers_function_raises_comes_through() -> None:
    def stop(event: StreamEvent) -> None:
        raise KeyError("mine")

    for function in (_pieces, _later):
        with pytest.raises(KeyError, match="mine"):
            await CallableModel(function).complete(REQUEST, stream=stop)


@pytest.mark.parametrize(("options", "path"), [({"function": 7}, "function"), ({"target": "x"}, "target")])
def test_a_wrong_setting_names_its_field(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        CallableModel(**{"function": _later, **options})
    assert caught.value.path == path
