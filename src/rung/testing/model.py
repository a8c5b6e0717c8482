"""`ScriptedModel`: a model that says what a test wrote down, and keeps every request it was given.

model = ScriptedModel(call("order_lookup", {"order_id": "1842"}), "It arrives on Friday.")
reply = await model.complete(turn.request)
assert model.requests[0]["messages"][-1]["role"] == "user"
"""

from __future__ import annotations

import copy
import inspect
import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

import msgspec

from rung.assembly.reply import CallDelta, OnEvent, Reply, ReplyDone, Stop, TextDelta, Usage
from rung.errors import InputError, kind
from rung.records.item import ToolCall

Line = Reply | str | ToolCall | Iterable[ToolCall] | BaseException
"""What a script holds for one call: a whole reply, a text, tool calls, or what is raised."""

Script = Callable[[Mapping[str, Any]], Any]
"""A script that looks at the request and returns a line, or an awaitable of one."""


def call(name: str, arguments: Mapping[str, Any] | str | None = None, *, id: str = "") -> ToolCall:
    """A tool call for a script. Without an id the model numbers it; a text as arguments stays as it is."""
    text = arguments if isinstance(arguments, str) else json.dumps(dict(arguments or {}), ensure_ascii=False)
    return ToolCall(id=id, name=name, arguments=text)


def as_reply(line: Any, *, first_id: int = 1, model: str = "scripted") -> Reply:
    """A line of a script as a reply: calls without an id are numbered from `first_id`.

    Raises:
        InputError: it is none of the things that a script may hold.
    """
    if isinstance(line, str):
        line = Reply(text=line)
    elif isinstance(line, ToolCall):
        line = Reply(calls=(line,))
    elif isinstance(line, list | tuple):
        found = cast("list[object] | tuple[object, ...]", line)
        if not found or not all(isinstance(one, ToolCall) for one in found):
            raise InputError("a list in a script holds tool calls only (use `call(name, arguments)`)", field="script")
        line = Reply(calls=tuple(cast("list[ToolCall]", list(found))))
    if not isinstance(line, Reply):
        raise InputError(f"a script holds replies, texts, tool calls and errors, not `{kind(line)}`", field="script")
    calls = tuple(
        one if one.id else msgspec.structs.replace(one, id=f"call_{first_id + i}") for i, one in enumerate(line.calls)
    )
    stop: Stop = "tool_calls" if calls and line.stop == "end" else line.stop
    return msgspec.structs.replace(line, calls=calls, stop=stop, model=line.model or model)


class ScriptedModel:
    """A model for tests.

    Args:
        script: one line for each call, in order; or a single callable that answers them all.
        name: its name.
        target: the request format that it stands for.
        check: called with (request, target) before each answer; what it raises, the call raises. With
            `rung.assembly.validate.check` a request that the provider would refuse fails the test.
        usage: what replies without figures report.

    Attributes:
        requests: a deep copy of every request, in order.
        max_tokens: the limit that each call gave.
    """

    def __init__(
        self,
        *script: Line | Script,
        name: str = "scripted",
        target: str = "openai-chat",
        check: Callable[[Mapping[str, Any], str], object] | None = None,
        usage: Usage | None = None,
    ) -> None:
        self.name = name
        self.target = target
        self.requests: list[dict[str, Any]] = []
        self.max_tokens: list[int | None] = []
        self._script = script
        self._check = check
        self._usage = usage
        self._made = 0

    @property
    def left(self) -> int:
        """How many lines of the script were not asked for."""
        return 0 if self._endless else max(0, len(self._script) - len(self.requests))

    @property
    def _endless(self) -> bool:
        return len(self._script) == 1 and callable(self._script[0])

    async def complete(
        self,
        request: Mapping[str, Any],
        *,
        max_tokens: int | None = None,
        stream: OnEvent | None = None,
    ) -> Reply:
        """The next line of the script. A streamed text comes word by word, a call's arguments in two pieces.

        Raises:
            InputError: the script is over, or holds something that it may not.
        """
        self.requests.append(copy.deepcopy(dict(request)))
        self.max_tokens.append(max_tokens)
        if self._check is not None:
            self._check(request, self.target)
        reply = as_reply(await self._line(request), first_id=self._made + 1, model=self.name)
        self._made += len(reply.calls)
        if self._usage is not None and not reply.usage.reported:
            reply = msgspec.structs.replace(reply, usage=self._usage)
        if stream is not None:
            for event in pieces(reply):
                stream(event)
            stream(ReplyDone(reply=reply))
        return reply

    async def _line(self, request: Mapping[str, Any]) -> Any:
        asked = len(self.requests)
        if not self._endless and asked > len(self._script):
            raise InputError(
                f"the script of `{self.name}` has {len(self._script)} lines and was asked for line {asked}",
                field="script",
            )
        line: Any = self._script[0] if self._endless else self._script[asked - 1]
        if callable(line):
            line = line(request)
            if inspect.isawaitable(line):
                line = await line
        if isinstance(line, BaseException):
            raise line
        return line

    def __repr__(self) -> str:
        return f"<ScriptedModel {self.name} {self.target} asked {len(self.requests)} times>"


def pieces(reply: Reply) -> list[TextDelta | CallDelta]:
    """A reply as a stream brings it: words, then each call in two pieces."""
    events: list[TextDelta | CallDelta] = [TextDelta(text=word) for word in re.findall(r"\s*\S+|\s+", reply.text)]
    for index, one in enumerate(reply.calls):
        half = len(one.arguments) // 2
        events += [
            CallDelta(index=index, id=one.id, name=one.name, arguments=part)
            for part in (one.arguments[:half], one.arguments[half:])
        ]
    return events
