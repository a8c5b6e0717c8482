"""`ScriptedServer`: a server on this machine that speaks the providers' wire formats and says what a test wrote down.

    with ScriptedServer("It arrives on Friday.", validate=validate) as server:
        model = OpenAIChat("any", base_url=server.openai_url)
        reply = await model.complete(turn.request)
    assert server.requests[0].body["messages"][-1]["role"] == "user"

One script serves Chat Completions, Responses and Messages, plain and streamed: each request is answered in the
format of its path. With `validate` it refuses, as the provider would, a request that breaks the provider's rules.
"""

from __future__ import annotations

import copy
import json
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Literal, cast, final

import msgspec

from rung.assembly.reply import Reply, Usage
from rung.errors import InputError
from rung.testing import wire
from rung.testing.model import as_reply

Format = Literal["openai-chat", "openai-responses", "anthropic"]

_PATHS: dict[str, Format] = {
    "/v1/chat/completions": "openai-chat",
    "/v1/responses": "openai-responses",
    "/v1/messages": "anthropic",
}
_SECRET_HEADERS = frozenset({"authorization", "x-api-key"})


class Fault(msgspec.Struct, frozen=True, kw_only=True):
    """An error instead of a reply. `retry_after` is in seconds, or the text of a date."""

    status: int
    code: str = ""
    message: str = "a fault of the script"
    retry_after: float | str | None = None
    headers: tuple[tuple[str, str], ...] = ()


class Raw(msgspec.Struct, frozen=True, kw_only=True):
    """Bytes instead of a reply, whatever was asked for."""

    body: bytes
    status: int = 200
    content_type: str = "application/json"


class Broken(msgspec.Struct, frozen=True, kw_only=True):
    """A reply that breaks off.

    Attributes:
        line: what would be said: a line as `ScriptedModel` takes it.
        after: how many events of the stream are sent; of a plain body, half its bytes are.
        how: `drop` breaks the connection, `end` ends the stream as if all were said, `stall` keeps the connection
            open and says no more for `seconds`, `error` sends an error event in the stream.
        seconds: how long a stall lasts.
    """

    line: Any
    after: int = 2
    how: Literal["drop", "end", "stall", "error"] = "drop"
    seconds: float = 30.0


class Slow(msgspec.Struct, frozen=True, kw_only=True):
    """A line that is said after `seconds`, and with `between` seconds before each event of a stream."""

    line: Any
    seconds: float = 0.0
    between: float = 0.0


class Received(msgspec.Struct, frozen=True, kw_only=True):
    """One request as it came: keys in its headers are masked.

    Attributes:
        format: the wire format of its path, or None for other paths.
        problems: what `validate` found.
    """

    path: str
    body: dict[str, Any]
    headers: dict[str, str]
    format: Format | None = None
    problems: tuple[Any, ...] = ()


Validate = Callable[[Mapping[str, Any], str], Sequence[Any]]
"""Finds what a provider would refuse in (request, target): `rung.assembly.validate.validate`."""


class ScriptedServer:
    """A server for tests; a context manager that serves while it is open.

    Args:
        script: one line for each request, in order: what `ScriptedModel` takes, or a `Fault`, `Raw`, `Broken` or
            `Slow`; or a single callable that answers every request body with a line.
        validate: called with (request, format) for each request; findings refuse it with 400.
        key: the only key that is taken; None takes any, and none.
        usage: what replies without figures report; None estimates four characters a token.
        count: counts the tokens of a request for the count endpoints.
        keep: how many of the newest requests are kept; None keeps all.
    """

    def __init__(
        self,
        *script: Any,
        validate: Validate | None = None,
        key: str | None = None,
        usage: Usage | None = None,
        count: Callable[[Mapping[str, Any]], int] | None = None,
        keep: int | None = None,
    ) -> None:
        self._script = script
        self._validate = validate
        self._key = key
        self._usage = usage
        self._count = count or _estimate
        self._received: deque[Received] = deque(maxlen=keep)
        self._lock = threading.Lock()
        self._asked = self._made = self._refused = 0
        self._server: _Server | None = None
        self._thread: threading.Thread | None = None
        self.closing = threading.Event()

    @property
    def requests(self) -> list[Received]:
        """The requests that came, in order; the newest `keep` of them."""
        with self._lock:
            return list(self._received)

    @property
    def refused(self) -> int:
        """How many requests `validate` refused."""
        return self._refused

    @property
    def url(self) -> str:
        """The address of the server, as Anthropic's client takes it."""
        if self._server is None:
            raise RuntimeError("the server is not open (use it in a `with` statement)")
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    @property
    def openai_url(self) -> str:
        """The address as OpenAI's client takes it."""
        return f"{self.url}/v1"

    def __enter__(self) -> ScriptedServer:
        self.closing.clear()
        self._server = _Server(self)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.closing.set()
        if self._server is not None and self._thread is not None:
            self._server.shutdown()
            self._thread.join()
            self._server.close()
            self._server = self._thread = None

    def receive(self, path: str, body: dict[str, Any], headers: dict[str, str]) -> tuple[Format | None, Any, int]:
        """Record a request; its format, its line of the script, and its number."""
        form = _PATHS.get(path)
        problems: Sequence[Any] = ()
        if form is not None and self._validate is not None:
            asked = {name: value for name, value in body.items() if name not in ("model", "stream", "stream_options")}
            problems = self._validate(asked, form)
        masked = {name: "***" if name in _SECRET_HEADERS else value for name, value in headers.items()}
        with self._lock:
            self._received.append(Received(path=path, body=body, headers=masked, format=form, problems=tuple(problems)))
            if form is None:
                return None, None, 0
            if not self._admits(headers):
                return form, Fault(status=401, code="invalid_api_key", message="the key is not valid"), 0
            if problems:
                self._refused += 1
                return form, Fault(status=400, code="invalid_request_error", message=str(problems[0])), 0
            self._asked += 1
            return form, self._line(body), self._asked

    def _admits(self, headers: Mapping[str, str]) -> bool:
        given = headers.get("x-api-key") or headers.get("authorization", "").removeprefix("Bearer ")
        return self._key is None or given == self._key

    def _line(self, body: dict[str, Any]) -> Any:
        if len(self._script) == 1 and callable(self._script[0]):
            return self._script[0](copy.deepcopy(body))
        if self._asked > len(self._script):
            return Fault(status=400, code="script_over", message=f"the script has {len(self._script)} lines")
        line = self._script[self._asked - 1]
        return line(copy.deepcopy(body)) if callable(line) else line

    def reply(self, line: Any, body: Mapping[str, Any]) -> Reply:
        """A line as a whole reply: with ids, the model that was asked for, and figures."""
        with self._lock:
            reply = as_reply(line, first_id=self._made + 1, model=str(body.get("model", "")))
            self._made += len(reply.calls)
        if reply.usage.reported:
            return reply
        said = len(reply.text) + sum(len(one.arguments) + len(one.name) for one in reply.calls)
        usage = self._usage or Usage(input=self._count(body), output=max(1, said // 4))
        return msgspec.structs.replace(reply, usage=usage)

    def count(self, body: Mapping[str, Any]) -> int:
        """The tokens of a request, for the count endpoints."""
        return self._count(body)


def _estimate(body: Mapping[str, Any]) -> int:
    return max(1, len(json.dumps(body, ensure_ascii=False)) // 4)


@final
class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128  # tests call many times at once

    def __init__(self, script: ScriptedServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.script = script
        self._open: set[socket.socket] = set()

    def process_request(self, request: Any, client_address: Any) -> None:
        self._open.add(request)
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        self._open.discard(request)
        super().shutdown_request(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no news: many tests make it do so."""

    def close(self) -> None:
        for connection in list(self._open):
            try:
                connection.shutdown(socket.SHUT_RDWR)
            except OSError:  # it closed in the meantime
                continue
        self.server_close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    @property
    def script(self) -> ScriptedServer:
        return cast(_Server, self.server).script

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is written to the console."""

    def do_GET(self) -> None:
        if self.path.partition("?")[0] == "/v1/models":
            self._send(200, {"object": "list", "data": [{"id": "scripted", "object": "model", "created": 0}]})
        else:
            self._send(404, wire.openai_error("no such path", status=404, code="not_found"))

    def do_POST(self) -> None:
        path = self.path.partition("?")[0]
        raw = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        try:
            body = json.loads(raw)
        except ValueError:
            self._send(400, wire.openai_error("the body is not JSON", status=400, code="invalid_json"))
            return
        script = self.script
        try:
            form, line, number = script.receive(path, body, headers)
        except Exception as error:  # a fault of the test's own function: the client should say so
            message = f"the script raised {error!r}"
            self._send(400, wire.openai_error(message, status=400, code="script_failed"))
            return
        if path in ("/v1/messages/count_tokens", "/v1/responses/input_tokens"):
            self._send(200, {"input_tokens": script.count(body), "object": "response.input_tokens"})
        elif form is None:
            self._send(404, wire.openai_error("no such path", status=404, code="not_found"))
        else:
            self._answer(form, line, number, body)

    def _answer(self, form: Format, line: Any, number: int, body: dict[str, Any]) -> None:
        script, between, broken = self.script, 0.0, None
        if isinstance(line, Slow):
            script.closing.wait(line.seconds)
            between, line = line.between, line.line
        if isinstance(line, Broken):
            broken, line = line, line.line
        if not isinstance(line, Fault | Raw):
            try:
                line = script.reply(line, body)
            except InputError as error:
                line = Fault(status=400, code="script_failed", message=error.message)
        if isinstance(line, Fault):
            self._fault(form, line)
        elif isinstance(line, Raw):
            self._head(line.status, line.content_type, len(line.body))
            self.wfile.write(line.body)
        elif body.get("stream"):
            self._stream(form, self._events(form, line, number, body), between, broken)
        else:
            bodies = {
                "openai-chat": wire.chat_body,
                "openai-responses": wire.responses_body,
                "anthropic": wire.messages_body,
            }
            self._send(200, bodies[form](line, number), broken=broken)

    def _events(self, form: Format, reply: Reply, number: int, body: dict[str, Any]) -> list[wire.Event]:
        if form == "openai-chat":
            options = cast("dict[str, Any]", body.get("stream_options") or {})
            return wire.chat_events(reply, number, usage=bool(options.get("include_usage")))
        return (wire.responses_events if form == "openai-responses" else wire.messages_events)(reply, number)

    def _fault(self, form: Format, fault: Fault) -> None:
        headers = dict(fault.headers)
        if fault.retry_after is not None:
            headers["retry-after"] = str(fault.retry_after)
        write = wire.anthropic_error if form == "anthropic" else wire.openai_error
        self._send(fault.status, write(fault.message, status=fault.status, code=fault.code), headers=headers)

    def _head(self, status: int, kind: str, length: int | None, headers: Mapping[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        if length is None:
            self.send_header("transfer-encoding", "chunked")
        else:
            self.send_header("content-length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()

    def _send(
        self, status: int, value: Any, *, headers: Mapping[str, str] | None = None, broken: Broken | None = None
    ) -> None:
        raw = json.dumps(value, ensure_ascii=False).encode()
        self._head(status, "application/json", len(raw), headers)
        if broken is None:
            self.wfile.write(raw)
            return
        self.wfile.write(raw[: len(raw) // 2])
        if broken.how == "stall":
            self.script.closing.wait(broken.seconds)
        self.close_connection = True

    def _stream(self, form: Format, events: list[wire.Event], between: float, broken: Broken | None) -> None:
        self._head(200, "text/event-stream", None)
        sent = events if broken is None else events[: broken.after]
        for name, data in sent:
            if between:
                self.script.closing.wait(between)
            self._event(name, json.dumps(data, ensure_ascii=False))
        if broken is not None and broken.how in ("drop", "stall"):
            if broken.how == "stall":
                self.script.closing.wait(broken.seconds)
            self.close_connection = True  # without the last chunk: the client sees a broken body
            return
        if broken is not None and broken.how == "error":
            self._error_event(form)
        elif form == "openai-chat" and broken is None:
            self._event(None, "[DONE]")
        self._chunk(b"")

    def _error_event(self, form: Format) -> None:
        if form == "anthropic":
            self._event("error", json.dumps(wire.anthropic_error("overloaded", status=529, code="")))
        elif form == "openai-responses":
            data = {"type": "error", "code": "server_error", "message": "failed", "param": None}
            self._event("error", json.dumps({**data, "sequence_number": 99}))
        else:
            self._event(None, json.dumps(wire.openai_error("failed", status=500, code="server_error")))

    def _event(self, name: str | None, data: str) -> None:
        head = f"event: {name}\n" if name else ""
        self._chunk(f"{head}data: {data}\n\n".encode())

    def _chunk(self, data: bytes) -> None:
        self.wfile.write(f"{len(data):x}\r\n".encode() + data + b"\r\n")
        self.wfile.flush()
