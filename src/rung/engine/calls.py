"""The calls of one reply: decided one by one, made together where all only read, capped in what they return."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from hashlib import sha256
from typing import Any

import msgspec

from rung.engine.limits import RunBudget
from rung.engine.outcome import Decision, Event
from rung.records.canonical import canonical_json
from rung.records.item import ToolCall
from rung.tools.declare import Tool, ToolContext
from rung.tools.gate import Approve, Judge, Proposed, Verdict, decide, signature
from rung.tools.principal import Principal
from rung.tools.results import Shown, failed, refused, shown


class Answer(msgspec.Struct, frozen=True, kw_only=True):
    """A call with what answers it."""

    call: ToolCall
    tool: Tool | None
    arguments: Mapping[str, Any] = {}
    result: Shown


class Repeats:
    """Notices that a run goes round in circles: one call again and again, with nothing new in its results."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._seen: dict[str, tuple[int, bytes | None]] = {}

    def stuck(self, calls: Sequence[ToolCall]) -> set[str]:
        """Ids of the calls that are asked for once too often; one reply counts once."""
        out: set[str] = set()
        counted: set[str] = set()
        for call in calls:
            own = signature(call)
            count, last = self._seen.get(own, (0, None))
            if own not in counted:
                counted.add(own)
                count += 1
                self._seen[own] = (count, last)
            if count >= self._limit:
                out.add(call.id)
        return out

    def note(self, answers: Sequence[Answer]) -> None:
        """What the calls gave: a result that differs from the one before starts the count anew."""
        for answer in answers:
            own = signature(answer.call)
            count, last = self._seen.get(own, (1, None))
            content = answer.result.content
            text = content if isinstance(content, str) else canonical_json(content)
            digest = sha256(text.encode("utf-8", "replace")).digest()
            self._seen[own] = (1 if last is not None and last != digest else count, digest)


class Caller(msgspec.Struct, frozen=True, kw_only=True):
    """Decides on calls and makes them.

    Attributes:
        tools: by the name that the model knows.
        principal, session, turn: on whose behalf and where.
        budget: what may still be spent.
        approve: asks a person about a call.
        judges: further rules on a call.
        delegate: hands work to another agent under this run's budget.
        emit: takes events.
    """

    tools: Mapping[str, Tool]
    principal: Principal
    session: str
    turn: str
    budget: RunBudget
    approve: Approve | None
    judges: tuple[Judge, ...]
    delegate: Callable[..., Any]
    emit: Callable[[Event], None]

    async def answer(self, calls: Sequence[ToolCall]) -> list[Answer]:
        """Every call with its result, in their order. A refused or failed call is answered as data."""
        most = self.budget.limits.calls_per_round
        verdicts: list[Verdict] = []
        asked: set[str] = set()
        left = self.budget.calls_left()
        for number, call in enumerate(calls):
            verdict = self._judge(call)
            if signature(call) in asked and self._reads_only(call):
                verdict = Verdict(outcome="deny", reasons=("repeated_call",))
            asked.add(signature(call))
            if verdict.outcome != "deny" and number >= most:
                verdict = Verdict(outcome="deny", reasons=("too_many_calls",))
            elif verdict.outcome != "deny" and left is not None:
                if left < 1:
                    verdict = Verdict(outcome="deny", reasons=("limit_reached",))
                left -= 1
            verdicts.append(verdict)
        pairs = list(zip(calls, verdicts, strict=True))
        if all(self._reads_only(call) for call, verdict in pairs if verdict.outcome != "deny"):
            return await together(*(self._one(call, verdict) for call, verdict in pairs))
        return [await self._one(call, verdict) for call, verdict in pairs]

    def _reads_only(self, call: ToolCall) -> bool:
        found = self.tools.get(call.name)
        return found is not None and found.reads_only

    def _judge(self, call: ToolCall) -> Verdict:
        return decide(
            self.tools.get(call.name),
            call,
            self.principal,
            session=self.session,
            turn=self.turn,
            known=self.tools,
            judges=self.judges,
        )

    async def _one(self, call: ToolCall, verdict: Verdict) -> Answer:
        tool = self.tools.get(call.name)
        settled = await self._settled(tool, call, verdict)
        made = tool is not None and settled.outcome == "allow"
        self.emit(Decision(id=call.id, name=call.name, outcome=verdict.outcome, reasons=settled.reasons, made=made))
        if tool is None or not made:
            return Answer(call=call, tool=tool, result=refused(settled))
        self.budget.call()
        result = await self._make(tool, call, settled.arguments)
        return Answer(call=call, tool=tool, arguments=settled.arguments, result=result)

    async def _settled(self, tool: Tool | None, call: ToolCall, verdict: Verdict) -> Verdict:
        """The verdict once a person has been asked, where one must be."""
        if verdict.outcome != "ask" or tool is None:
            return verdict
        if self.approve is None:
            return _denied(verdict, "no_approver")
        proposed = Proposed(
            tool=tool,
            call=call,
            arguments=verdict.arguments,
            principal=self.principal,
            session=self.session,
            turn=self.turn,
        )
        try:
            async with asyncio.timeout(self.budget.seconds_left()):
                answer = self.approve(proposed)
                agreed = await answer if inspect.isawaitable(answer) else answer
        except Exception:
            agreed = False
        if agreed is not True:
            return _denied(verdict, "not_approved")
        return msgspec.structs.replace(verdict, outcome="allow", reasons=("approved", *verdict.reasons))

    async def _make(self, tool: Tool, call: ToolCall, arguments: Mapping[str, Any]) -> Shown:
        given = {**arguments, **{name: self._bound(field) for name, field in tool.bind.items()}}
        if tool.context is not None:
            given[tool.context] = ToolContext(
                principal=self.principal,
                session=self.session,
                turn=self.turn,
                call_id=call.id,
                delegate=self.delegate,
            )
        left = self.budget.seconds_left()
        try:
            async with asyncio.timeout(tool.timeout if left is None else min(tool.timeout, left)):
                if inspect.iscoroutinefunction(tool.call):
                    value = await tool.call(**given)
                else:
                    value = await asyncio.to_thread(tool.call, **given)
                    if inspect.isawaitable(value):
                        value = await value
            return shown(tool, value)
        except Exception as problem:
            return failed(tool, problem)

    def _bound(self, field: str) -> str | None:
        if field == "session":
            return self.session
        return self.principal.tenant if field == "tenant" else self.principal.subject


def _denied(verdict: Verdict, reason: str) -> Verdict:
    return msgspec.structs.replace(verdict, outcome="deny", reasons=(reason, *verdict.reasons))


async def together(*work: Awaitable[Any]) -> list[Any]:
    """All at once; when one fails or is cancelled, all are cancelled and waited for."""
    tasks = [asyncio.ensure_future(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        raise
