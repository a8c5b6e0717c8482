from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import anthropic
import pytest

from rung.errors import (
    MissingExtraError,
    ModelAuthError,
    ModelError,
    ModelRateLimitError,
    ModelReplyError,
    ModelRequestError,
    ModelTimeoutError,
)
from rung.tokens import AnthropicCounter

REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-5",
    "max_tokens": 100,
    "temperature": 0.0,
    "system": "Be brief.",
    "messages": [{"role": "user", "content": "Where is my order?"}],
    "tools": [{"name": "lookup", "input_schema": {"type": "object"}}],
}


class Endpoint(ThreadingHTTPServer):
    """Answers every request with what the test set, and keeps what it was sent."""

    status = 200
    answer: Any = None
    headers: dict[str, str]
    seen: list[tuple[str, dict[str, Any]]]


class _Handler(BaseHTTPRequestHandler):
    server: Endpoint

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.server.seen.append((self.path, json.loads(body)))
        data = json.dumps(self.server.answer).encode()
        self.send_response(self.server.status)
        for name, value in {"content-type": "application/json", **self.server.headers}.items():
            self.send_header(name, value)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: Any) -> None: ...


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    server = Endpoint(("127.0.0.1", 0), _Handler)
    server.seen = []
    server.headers = {}
    server.answer = {"input_tokens": 42}
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    yield server
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def client(endpoint: Endpoint) -> Iterator[anthropic.Anthropic]:
    with anthropic.Anthropic(
        api_key="none", base_url=f"http://127.0.0.1:{endpoint.server_port}", max_retries=0, timeout=5
    ) as client:
        yield client


def test_a_request_is_counted_by_the_endpoint(endpoint: Endpoint, client: anthropic.Anthropic) -> None:
    assert AnthropicCounter(client).count_request(REQUEST) == 42
    path, body = endpoint.seen[0]
    assert path == "/v1/messages/count_tokens"
    assert body == {name: REQUEST[name] for name in ("model", "system", "messages", "tools")}


def test_the_model_may_be_given_once(endpoint: Endpoint, client: anthropic.Anthropic) -> None:
    counter = AnthropicCounter(client, model="claude-haiku-4-5")
    counter.count_request({"messages": REQUEST["messages"]})
    assert endpoint.seen[0][1]["model"] == "claude-haiku-4-5"
    with pytest.raises(ModelRequestError, match="give `model` and `messages`"):
        AnthropicCounter(client).count_request({"messages": REQUEST["messages"]})


def test_it_says_that_it_is_an_estimate(client: anthropic.Anthropic) -> None:
    counter = AnthropicCounter(client)
    assert (counter.name, counter.exact) == ("anthropic:count_tokens", False)


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, ModelRequestError),
        (401, ModelAuthError),
        (403, ModelAuthError),
        (404, ModelRequestError),
        (429, ModelRateLimitError),
        (500, ModelError),
        (529, ModelError),
    ],
)
def test_what_the_client_raises_becomes_ours(
    endpoint: Endpoint, client: anthropic.Anthropic, status: int, error: type[ModelError]
) -> None:
    endpoint.status = status
    endpoint.headers = {"retry-after": "7"}
    endpoint.answer = {"type": "error", "error": {"type": "x", "message": "secret"}}
    with pytest.raises(error) as caught:
        AnthropicCounter(client).count_request(REQUEST)
    assert type(caught.value) is error
    assert caught.value.fields["status"] == status
    assert "secret" not in str(caught.value)
    if isinstance(caught.value, ModelRateLimitError):
        assert caught.value.fields["retry_after"] == 7.0


def test_no_answer_is_a_timeout(client: anthropic.Anthropic) -> None:
    away = client.with_options(base_url="http://127.0.0.1:9")
    with pytest.raises(ModelTimeoutError):
        AnthropicCounter(away).count_request(REQUEST)


def test_an_answer_without_a_number_is_broken(endpoint: Endpoint, client: anthropic.Anthropic) -> None:
    endpoint.answer = {"tokens": 1}
    with pytest.raises(ModelReplyError):
        AnthropicCounter(client).count_request(REQUEST)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(MissingExtraError, match=r"install 'rung\[anthropic\]'"):
        AnthropicCounter()
