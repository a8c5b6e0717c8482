"""What a run writes into its session, so that the session compiles at every moment."""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Callable, Sequence
from datetime import timedelta
from typing import Any, TypeVar

import msgspec

from rung.assembly.reply import Reply
from rung.compiler.turn import Turn
from rung.engine.calls import Answer
from rung.errors import StoreError
from rung.records.draft import Draft
from rung.records.item import ContextItem, ToolCall
from rung.records.labels import Labels, Sensitivity, combine
from rung.records.types import Assistant, ToolOutput
from rung.store import ContextStore, core
from rung.tools.declare import NAME
from rung.tools.gate import Verdict
from rung.tools.results import refused

T = TypeVar("T")


async def kept(work: Callable[[], T]) -> T:
    """Do this in a thread and to its end: a cancellation is passed on when it is done."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


class Recorder:
    """Adds the items of one turn to its session.

    Args:
        view: the handle of the session.
        turn: the id that the turn's items share.
        clearance: what the turn's principal may see; its replies are readable at that.
        model: the model's name.
    """

    def __init__(self, view: ContextStore, turn: str, clearance: Sensitivity, model: str) -> None:
        self.view = view
        self.turn = turn
        self.items: list[ContextItem[Any]] = []
        self.pending: tuple[ToolCall, ...] = ()
        """Calls that no result answers yet."""
        self.front = Labels()
        """The labels of all that the model has had in front of it in this turn, combined."""
        self._clearance = clearance
        self._model = model

    def take(self, items: Sequence[ContextItem[Any]]) -> None:
        """Items of this turn that somebody else added."""
        self.items += items

    async def reply(self, reply: Reply, made_by: Turn | None, **attrs: str) -> ContextItem[Any]:
        """The model's reply. Its lineage is one edge: the manifest of the request that it answers."""
        return await kept(lambda: self._reply(reply, made_by, attrs))

    def _reply(self, reply: Reply, made_by: Turn | None, attrs: dict[str, str]) -> ContextItem[Any]:
        if made_by is not None:
            attrs["manifest"] = made_by.manifest.turn
        if reply.stop not in ("end", "tool_calls"):
            attrs.setdefault("stop", reply.stop)
        item = self.view.add(
            Assistant,
            reply.text,
            source="model" if made_by is not None else "engine",
            sensitivity=self._clearance,
            scopes=self._read(made_by),
            turn=self.turn,
            parts=(*reply.opaque, *reply.calls),
            attrs={"model": self._model, **attrs} if made_by is not None else attrs,
        )
        self.items.append(item)
        self.pending = reply.calls
        return item

    def _read(self, made_by: Turn | None) -> frozenset[str]:
        """What a reader of the reply needs: all scopes that any item in front of the model needed."""
        if made_by is None:
            return self.front.scopes
        ids = {block.item_id for message in made_by.prompt.messages for block in message.blocks}
        ledger, reach = core(self.view)
        items = ledger.backend.get([one for one in ids if one is not None], reach.tenants)
        self.front = combine([self.front, *{item.labels for item in items.values()}])
        return self.front.scopes

    def speakers(self) -> list[ContextItem[Any]]:
        """The request and the latest reply of this turn."""
        said = [item for item in self.items if item.type.name in ("user", "assistant")]
        return list({item.id: item for item in (said[0], said[-1])}.values()) if said else []

    async def results(self, answers: Sequence[Answer]) -> list[ContextItem[Any]]:
        """The results of calls, in their order, in one write."""
        return await kept(lambda: self._results(answers))

    def _results(self, answers: Sequence[Answer]) -> list[ContextItem[Any]]:
        added = self.view.add_many([self._draft(answer) for answer in answers])
        self.items += added
        done = {answer.call.id for answer in answers}
        self.pending = tuple(call for call in self.pending if call.id not in done)
        return added

    def _draft(self, answer: Answer) -> Draft:
        tool, result, call = answer.tool, answer.result, answer.call
        now = self.view.now()
        observed = result.observed_at or now
        fresh = None if tool is None or tool.freshness is None else self.view.policy.freshness.get(tool.freshness)
        key = result.key
        if key is None and tool is not None and not result.failed:
            key = tool.fact(answer.arguments)
        return Draft(
            type=ToolOutput,
            content=result.content,
            source=f"tool:{call.name if tool is not None else 'unknown'}",
            sensitivity=None if tool is None or result.failed else tool.sensitivity,
            scopes=() if tool is None or result.failed else tool.scopes,
            turn=self.turn,
            call_id=call.id,
            key=key,
            version=result.version,
            observed_at=observed,
            expires_at=None if not fresh or result.failed else observed + timedelta(seconds=fresh),
            attrs={"tool": call.name, **result.attrs},
        )

    def cancel(self) -> None:
        """Answer what is pending, without waiting for anything: the run is ending in the middle of it.

        Where the store cannot take it, the compiler says that the results are missing.
        """
        if self.pending:
            with contextlib.suppress(StoreError):
                self._results(refusals(self.pending, "cancelled"))


def refusals(calls: Sequence[ToolCall], reason: str, detail: str = "") -> list[Answer]:
    """Calls that are answered without being made."""
    verdict = Verdict(outcome="deny", reasons=(reason,), detail=detail)
    return [Answer(call=call, tool=None, result=refused(verdict)) for call in calls]


def recordable(reply: Reply, most: int) -> tuple[Reply, int]:
    """The reply as the session keeps it, and how many of its calls are left out.

    A call has a name that providers take back, and an id of its own in its reply; of a flood of calls, twice as many as
    may be made are kept, so that the rest does not fill the context.
    """
    calls: list[ToolCall] = []
    ids: set[str] = set()
    for number, call in enumerate(reply.calls[: 2 * most]):
        own = call.id
        while not own or own in ids:
            own = f"{call.id or 'call'}_{number}" if own == call.id else f"{own}_"
        ids.add(own)
        name = call.name if NAME.match(call.name) else _name(call.name)
        calls.append(call if (own, name) == (call.id, call.name) else msgspec.structs.replace(call, id=own, name=name))
    return msgspec.structs.replace(reply, calls=tuple(calls)), len(reply.calls) - len(calls)


def _name(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9_-]", "_", name)[:64] or "unknown"
