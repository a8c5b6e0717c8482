"""Providers' errors become ours, none is left out, and no key is ever in one."""

from __future__ import annotations

import asyncio
import inspect
import logging
import pickle
import traceback
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from tests.models.formats import FORMATS, Format

from rung.errors import (
    ConfigError,
    ModelAuthError,
    ModelError,
    ModelRateLimitError,
    ModelReplyError,
    ModelRequestError,
    ModelTimeoutError,
)
from rung.models import AnthropicMessages, OpenAIChat
from rung.models.failures import ANTHROPIC, OPENAI, TRANSPORT, event_failure, failure_of, raised
from rung.models.provider import ProviderModel, Secret
from rung.testing.server import Fault, ScriptedServer

KEY = "sk-test-0123456789abcdef"


def _exceptions(*modules: ModuleType) -> Iterator[str]:
    for module in modules:
        for name, value in [*vars(module).items()]:
            # Asked by `type`, as some values are proxies that load half the package when they are asked.
            if issubclass(type(value), type) and issubclass(value, Exception) and not name.startswith("_"):
                yield name


def test_every_error_that_openai_exports_is_in_the_table() -> None:
    assert {*_exceptions(openai, openai._exceptions)} <= {*OPENAI}


def test_every_error_that_anthropic_exports_is_in_the_table() -> None:
    assert {*_exceptions(anthropic, anthropic._exceptions)} <= {*ANTHROPIC}


@pytest.mark.parametrize("base", [openai.OpenAIError, anthropic.AnthropicError], ids=["openai", "anthropic"])
def test_every_other_class_of_a_package_is_taken_by_one_that_it_derives_from(base: type[Exception]) -> None:
    seen: list[type[Exception]] = [base]
    for kind in seen:
        seen += kind.__subclasses__()
        assert failure_of(kind.__new__(kind)) is not None, kind
    assert len(seen) > 15


def test_every_transport_error_of_the_client_is_mapped() -> None:
    kinds = [
        value
        for value in vars(httpx2).values()
        if inspect.isclass(value) and issubclass(value, Exception) and value.__module__.startswith("httpx2")
    ]
    left = {kind.__name__ for kind in kinds if failure_of(kind.__new__(kind)) is None}
    assert left <= {"CookieConflict"}
    assert failure_of(httpx2.ReadTimeout("x")) is ModelTimeoutError
    assert failure_of(httpx2.RemoteProtocolError("x")) is ModelTimeoutError
    assert {*TRANSPORT.values()} <= {ModelTimeoutError, ModelReplyError, ModelRequestError, ModelError}


STATUSES: dict[int, type[ModelError]] = {
    400: ModelRequestError,
    401: ModelAuthError,
    403: ModelAuthError,
    404: ModelRequestError,
    408: ModelTimeoutError,
    409: ModelError,
    413: ModelRequestError,
    422: ModelRequestError,
    429: ModelRateLimitError,
    500: ModelError,
    503: ModelError,
    504: ModelTimeoutError,
}


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
async def test_a_status_has_the_same_meaning_for_all_providers(form: Format) -> None:
    with ScriptedServer(*(Fault(status=status) for status in STATUSES)) as server:
        async with form.model(server) as model:
            for status, kind in STATUSES.items():
                with pytest.raises(ModelError) as caught:
                    await model.complete(form.request)
                assert (status, type(caught.value)) == (status, kind)
                assert caught.value.fields["status"] == status
                assert caught.value.fields["detail"]
                assert str(status) in str(caught.value)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ((("retry-after", "7"),), 7.0),
        ((("retry-after-ms", "1500"), ("retry-after", "7")), 1.5),
        ((("retry-after", "Wed, 21 Oct 2026 07:28:09 GMT"), ("x-date", "1")), None),
        ((("retry-after", "soon"),), None),
        ((("retry-after", "-3"),), None),
        ((), None),
    ],
)
async def test_a_rate_limit_says_how_long_to_wait(
    form: Format, headers: tuple[tuple[str, str], ...], seconds: float | None
) -> None:
    with ScriptedServer(Fault(status=429, headers=headers)) as server:
        async with form.model(server) as model:
            with pytest.raises(ModelRateLimitError, match="slow down") as caught:
                await model.complete(form.request)
    wait = caught.value.fields["retry_after"]
    if headers and "GMT" in headers[0][1]:  # counted from the server's own date
        assert wait is not None
        assert wait >= 0
    else:
        assert wait == seconds


@pytest.mark.parametrize("code", ["insufficient_quota", "billing_not_active"])
async def test_an_empty_account_is_no_rate_limit(code: str) -> None:
    with ScriptedServer(Fault(status=429, code=code)) as server:
        async with OpenAIChat("small", base_url=server.openai_url, max_retries=0) as model:
            with pytest.raises(ModelAuthError, match=code):
                await model.complete(FORMATS[0].request)


async def test_an_overloaded_provider_asks_to_slow_down() -> None:
    with ScriptedServer(Fault(status=529)) as server:
        async with AnthropicMessages("small", base_url=server.url, max_retries=0) as model:
            with pytest.raises(ModelRateLimitError, match="529"):
                await model.complete(FORMATS[2].request)
    assert type(event_failure("p", "overloaded_error", "")) is ModelRateLimitError


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
async def test_the_official_client_tries_again(form: Format) -> None:
    wait = Fault(status=429, headers=(("retry-after-ms", "1"),))
    with ScriptedServer(wait, wait, "at last") as server:
        async with form.model(server, max_retries=2) as model:
            assert (await model.complete(form.request)).text == "at last"
        assert len(server.requests) == 3


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
async def test_without_a_key_the_message_says_what_to_set(form: Format) -> None:
    model = form.adapter("small")
    with pytest.raises(ModelAuthError) as caught:
        await model.complete(form.request)
    name = "ANTHROPIC" if form.target == "anthropic" else "OPENAI"
    assert f"set `{name}_API_KEY`" in str(caught.value)
    assert f"`{name}_BASE_URL`" in str(caught.value)
    with pytest.raises(ModelAuthError, match="GROQ_KEY"):
        form.adapter("small", api_key_env="GROQ_KEY").check()
    form.adapter("small", base_url="http://127.0.0.1:9/v1").check()
    form.adapter("small", api_key=KEY).check()


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
async def test_without_a_server_the_message_says_where_and_what_to_set(form: Format) -> None:
    async with form.adapter("small", base_url="http://user:pass@127.0.0.1:9/v1?key=1", max_retries=0) as model:
        with pytest.raises(ModelTimeoutError) as caught:
            await model.complete(form.request)
    assert "`http://127.0.0.1:9/v1`" in str(caught.value)
    assert "`base_url`" in str(caught.value)


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
async def test_a_key_is_in_no_error_even_where_the_server_repeats_it(
    form: Format, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    caplog.set_level(logging.DEBUG)
    monkeypatch.setenv(form.adapter.key_env, KEY)
    echo = Fault(status=401, code=f"bad {KEY}", message=f"the key {KEY} is not valid")
    with ScriptedServer(echo, Fault(status=400, message=f"{KEY}?")) as server:
        async with form.model(server) as model:
            for _ in range(2):
                with pytest.raises(ModelError) as caught:
                    await model.complete(form.request)
                shown = "".join(traceback.format_exception(caught.value))
                assert KEY not in shown + str(caught.value.fields) + repr(caught.value.__context__)
                assert "***" in caught.value.fields["detail"]
            assert KEY not in repr(model) + repr(vars(model))
        assert KEY not in repr(server.requests)
    assert KEY not in caplog.text


def test_a_key_neither_prints_nor_pickles() -> None:
    secret = Secret(KEY)
    assert KEY not in f"{secret} {secret!r}"
    assert secret.reveal() == KEY
    with pytest.raises(ConfigError, match="does not pickle"):
        pickle.dumps(secret)


@pytest.mark.parametrize(
    ("options", "path"),
    [
        ({"model": ""}, "model"),
        ({"timeout": 0}, "timeout"),
        ({"max_retries": -1}, "max_retries"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"client": openai.OpenAI(api_key="x")}, "client"),
    ],
)
def test_a_wrong_setting_names_its_field(options: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigError) as caught:
        OpenAIChat(**{"model": "small", **options})
    assert caught.value.path == path


@pytest.mark.parametrize("form", FORMATS, ids=lambda form: form.target)
async def test_an_argument_that_the_client_does_not_know_is_a_request_error(form: Format) -> None:
    async with form.adapter("small", base_url="http://127.0.0.1:9", options={"flavour": 1}) as model:
        with pytest.raises(ModelRequestError, match="no argument `flavour`"):
            await model.complete(form.request)


def test_a_package_that_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    for package, kind in (("openai", OpenAIChat), ("anthropic", AnthropicMessages)):
        monkeypatch.setitem(sys.modules, package, None)
        model: ProviderModel = kind("small", api_key=KEY)
        with pytest.raises(ImportError, match=rf"install 'rung\[{package}\]'"):
            model.check()


def test_what_is_ours_stays_and_what_is_unknown_is_a_model_error() -> None:
    ours = ModelReplyError("x")
    assert raised("p", ours) is ours
    unknown = raised("p", KeyError("secret"), secret="secret")
    assert type(unknown) is ModelError
    assert unknown.__cause__ is None
    assert type(raised("p", TimeoutError())) is ModelTimeoutError
    assert type(raised("p", ConnectionResetError())) is ModelTimeoutError


async def test_a_cancelled_call_stays_cancelled() -> None:
    from rung.testing.server import Slow

    with ScriptedServer(Slow(line="late", seconds=5)) as server:
        async with OpenAIChat("small", base_url=server.openai_url) as model:
            task = asyncio.create_task(model.complete(FORMATS[0].request))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
