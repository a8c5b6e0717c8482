"""One turn: fetch, compile, call the model, run its tools, again; one flow for every way of calling it.

Read `Run.go` first.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from rung.assembly.reply import Reply, StreamEvent, TextDelta
from rung.compiler.turn import Turn
from rung.engine.calls import Answer, Caller, Repeats, together
from rung.engine.handover import hand_over
from rung.engine.limits import RunBudget
from rung.engine.outcome import (
    REASONS,
    CallEnded,
    CallStarted,
    Event,
    ManifestMade,
    Outcome,
    Status,
)
from rung.engine.recorder import Recorder, kept, recordable, refusals
from rung.errors import (
    BudgetError,
    ModelAuthError,
    ModelError,
    ModelRateLimitError,
    ModelReplyError,
    ModelRequestError,
    ModelTimeoutError,
    ScopeError,
    kind,
)
from rung.gather import gather_context
from rung.policy.rules import TurnIntent
from rung.records.item import ContextItem, ToolCall, body
from rung.store import ContextStore
from rung.tools.principal import Principal
from rung.tools.resolver import Resolution

if TYPE_CHECKING:
    from rung.engine.engine import ContextEngine

_CHOICE_NONE = {"anthropic": {"type": "none"}}


class Run:
    """A turn in progress.

    Args:
        engine: whose model, sources and tools.
        view: the handle of the session.
        principal: on whose behalf.
        intent: what it may use, already narrowed to the principal.
        budget: what it may spend.
        turn: the id that its items share.
        extra: items of this turn beside the instructions: delegated work.
        emit: takes events; None: nobody listens, and the model is not streamed.
    """

    def __init__(
        self,
        engine: ContextEngine,
        view: ContextStore,
        principal: Principal,
        intent: TurnIntent,
        budget: RunBudget,
        turn: str,
        *,
        extra: Sequence[ContextItem[Any]] = (),
        emit: Callable[[Event], None] | None = None,
    ) -> None:
        self.engine = engine
        self.view = view
        self.principal = principal
        self.intent = intent
        self.budget = budget
        self.turn = turn
        self.session = view.session or ""
        self.recorder = Recorder(view, turn, intent.clearance, engine.model.name)
        self._extra = tuple(extra)
        self._listener = emit
        self._manifests: list[Any] = []
        self._notes: list[str] = []
        self._missing: list[str] = []
        self._escalation = ""
        self._repeats = Repeats(budget.limits.repeated)

    # the flow

    async def go(self, request: ContextItem[Any]) -> Outcome:
        """The turn of a request that stands in the session already."""
        self.recorder.take([*self._extra, request])
        try:
            turn, tools = await self._first(request)
            caller = self._caller(tools)
            while True:
                limit = self.budget.reached(turn.tokens)
                if limit is not None:
                    return await self._limited(limit, turn)
                reply = await self._ask(turn)
                if isinstance(reply, Outcome):
                    return reply
                if not reply.calls:
                    return await self._answered(reply, turn)
                ended = await self._round(reply, turn, caller)
                if ended is not None:
                    return await self._limited(ended, turn, more=True)
                following = await self._again(turn)
                if following is None:
                    return await self._limited("context_full", turn)
                turn = following
        finally:
            self.recorder.cancel()

    async def _first(self, request: ContextItem[Any]) -> tuple[Turn, Resolution]:
        """Sources and tools, fetched at the same time; then the first request."""
        engine, view = self.engine, self.view
        rules = engine.instructions(view)
        gathered, tools, _ = await together(
            gather_context(view, engine.sources, self.intent, request, [*rules, *self._extra]),
            engine.resolve_tools(self.principal, self.intent, body(request)),
            self._compacted(),
        )
        items = [*gathered.given, *gathered.items, request]
        turn = await asyncio.to_thread(
            view.compile,
            items,
            target=engine.model.target,
            intent=self.intent,
            scores=gathered.scores,
            rows=(*gathered.rows, *tools.rows),
            tools=tools.schemas,
            history="session",
            turn=self.turn,
            **engine.compile_options,
        )
        for item in self._extra:
            _require(turn, item)
        return turn, tools

    async def _compacted(self) -> None:
        if self.engine.compactor is not None:
            try:
                await self.engine.compactor.compact(self.view)
            except Exception as problem:
                self._notes.append(f"compactor: {kind(problem)}")

    async def _again(self, turn: Turn) -> Turn | None:
        """The same items with what the session has gained; nothing is fetched again. None: it does not fit."""
        try:
            return await asyncio.to_thread(turn.what_if, previous=turn)
        except BudgetError:
            return None

    async def _ask(self, turn: Turn, *, final: bool = False) -> Reply | Outcome:
        """One call of the model; an outcome where its fault ends the run."""
        self._manifests.append(turn.manifest)
        if self.engine.records:
            await kept(lambda: self.view.record(turn))
        self._emit(ManifestMade(manifest=turn.manifest))
        said: list[str] = []

        def take(event: StreamEvent) -> None:
            if isinstance(event, TextDelta):
                said.append(event.text)
                self._emit(event)

        request = dict(turn.request)
        if final and request.get("tools"):
            request["tool_choice"] = _CHOICE_NONE.get(turn.manifest.target, "none")
        timer = asyncio.timeout(self.budget.seconds_left())
        try:
            async with timer:
                reply = await self.engine.model.complete(
                    request,
                    max_tokens=self._longest(turn),
                    stream=take if self._listener is not None else None,
                )
        except TimeoutError:
            if not timer.expired():
                raise
            return await self._broken("seconds", said, turn, None)
        except (ModelAuthError, ModelRequestError):
            raise  # for the deployment to mend; the session is as it was
        except ModelError as error:
            return await self._broken(_reason(error), said, turn, error)
        self.budget.charge(reply.usage, turn.tokens + len(reply.text) // 4)
        return reply

    def _longest(self, turn: Turn) -> int | None:
        left = self.budget.tokens_left()
        room = None if left is None else max(1, left - turn.tokens)
        own = self.engine.max_output
        return room if own is None else own if room is None else min(own, room)

    async def _round(self, reply: Reply, turn: Turn, caller: Caller) -> str | None:
        """Record a reply with calls, answer each, record the results; why the run ends, or None."""
        reply, dropped = recordable(reply, self.budget.limits.calls_per_round)
        await self.recorder.reply(reply, turn, **({"calls_left_out": str(dropped)} if dropped else {}))
        for call in reply.calls:
            self._emit(CallStarted(id=call.id, name=call.name, arguments=call.arguments))
        if dropped:
            self._notes.append(f"calls_left_out: {dropped}")
            self._missing += [f"{dropped} further calls: too_many_calls"]
        over = self.budget.no_more_rounds()
        if over is not None:
            await self._refuse(reply.calls, "limit_reached")
            return over
        stuck = self._repeats.stuck(reply.calls)
        if stuck:
            again = [call for call in reply.calls if call.id in stuck]
            await self._refuse(again, "repeated_call")
            await self._refuse([call for call in reply.calls if call.id not in stuck], "limit_reached")
            return "repeated_call"
        self.budget.round()
        answers = await caller.answer(reply.calls)
        self._repeats.note(answers)
        await self._keep(answers)
        asked = next((answer for answer in answers if answer.result.attrs.get("failed") == "escalate"), None)
        if asked is not None:
            self._escalation = str(asked.result.content["detail"])
            return "escalate"
        return None

    async def _refuse(self, calls: Sequence[ToolCall], reason: str) -> None:
        if calls:
            self._missing += [f"{call.name}: {reason}" for call in calls]
            await self._keep(refusals(calls, reason))

    async def _keep(self, answers: Sequence[Answer]) -> None:
        for answer, item in zip(answers, await self.recorder.results(answers), strict=True):
            facts = answer.result.attrs
            code = facts.get("refused") or facts.get("failed") or ""
            self._emit(CallEnded(id=answer.call.id, name=answer.call.name, item=item.id, code=code))

    # the ends

    async def _answered(self, reply: Reply, turn: Turn) -> Outcome:
        blank = not reply.text.strip()
        if not blank or reply.opaque:
            await self.recorder.reply(reply, turn)
        if reply.stop == "refusal":
            return await self._outcome(reply.text, "stopped", "refusal")
        if reply.stop == "length":
            self._missing.append("the rest of the reply")
            return await self._outcome(reply.text, "limit_reached", "length")
        if blank:
            return await self._outcome("", "stopped", "empty_reply")
        return await self._outcome(reply.text, "done")

    async def _limited(self, reason: str, turn: Turn, *, more: bool = False) -> Outcome:
        """The end at a limit: an answer from what is known where the model may be asked once more."""
        status: Status = "stopped" if reason == "repeated_call" else "limit_reached"
        how = self.budget.limits.on_limit
        if how == "escalate" or reason == "escalate":
            status = "escalated"
        elif how == "answer" and more:
            text = await self._last_word(turn)
            if text:
                return await self._outcome(text, status, reason)
        text = self._escalation or self._partial(reason)
        await self.recorder.reply(Reply(text=text), None, stop=reason)
        return await self._outcome(text, status, reason)

    async def _last_word(self, turn: Turn) -> str:
        """What the model says when it may ask for nothing more; empty where it says nothing."""
        following = await self._again(turn)
        if following is None or self.budget.reached(following.tokens) is not None:
            return ""
        try:
            reply = await self._ask(following, final=True)
        except ModelError as error:  # for example a server that knows no tool_choice
            self._notes.append(f"last_word: {kind(error)}")
            return ""
        if isinstance(reply, Outcome):
            self._notes.append(f"last_word: {reply.reason}")
            return ""
        if not reply.text.strip():
            return ""
        await self.recorder.reply(msgspec.structs.replace(reply, calls=()), following)
        return reply.text

    def _partial(self, reason: str) -> str:
        lines = [f"I could not finish this: {REASONS.get(reason, reason)} ended the work."]
        used = sorted(
            {item.attr("tool") or "" for item in self.recorder.items if item.call_id and not _failed(item)} - {""}
        )
        if used:
            lines.append(f"Looked up so far: {', '.join(used)}.")
        if self._missing:
            lines.append(f"Missing: {'; '.join(self._missing[:8])}.")
        return " ".join(lines)

    async def _broken(self, reason: str, said: Sequence[str], turn: Turn, error: ModelError | None) -> Outcome:
        """The model's fault ended the run. What it had said by then is kept, as far as anybody saw it."""
        text = "".join(said)
        self._missing.append("the rest of the reply" if text else "the reply")
        if text.strip():
            await self.recorder.reply(Reply(text=text), turn, stop=reason)
        return await self._outcome(text, "limit_reached" if reason == "seconds" else "failed", reason, error)

    async def _outcome(self, text: str, status: Status, reason: str = "", error: ModelError | None = None) -> Outcome:
        memory = self.engine.memory
        if memory is not None and status == "done":
            try:
                await memory.after_turn(self.view, tuple(self.recorder.items))
            except Exception as problem:
                self._notes.append(f"memory: {kind(problem)}")
        budget = self.budget
        return Outcome(
            text=text,
            status=status,
            reason=reason,
            missing=tuple(self._missing),
            tokens=budget.tokens,
            cost=budget.cost,
            rounds=budget.rounds,
            calls=budget.calls,
            manifests=tuple(self._manifests),
            items=tuple(self.recorder.items),
            session=self.session,
            turn=self.turn,
            error=error,
            notes=tuple(self._notes),
            **({} if budget.usage is None else {"usage": budget.usage}),
        )

    # parts

    def _caller(self, tools: Resolution) -> Caller:
        return Caller(
            tools=tools.tools,
            principal=self.principal,
            session=self.session,
            turn=self.turn,
            budget=self.budget,
            approve=self.engine.approve,
            judges=self.engine.judges,
            delegate=self.delegate,
            emit=self._emit,
        )

    async def delegate(self, agent: ContextEngine, task: str, **options: Any) -> Outcome:
        """Hand work to another agent: see `ContextEngine.delegate`."""
        return await hand_over(self, agent, task, **options)

    def _emit(self, event: Event) -> None:
        if self._listener is not None:
            self._listener(event)


def _require(turn: Turn, item: ContextItem[Any]) -> None:
    """Delegated work must be in front of the agent that is to do it."""
    row = turn.manifest.of(item.id)
    if row is not None and row.state in ("included", "truncated"):
        return
    reason = "excluded" if row is None else row.reason
    if row is not None and reason in ("over_budget", "source_cap", "component_cap"):
        raise BudgetError(
            f"the delegated work needs {row.size} tokens more than the turn has (raise the agent's budget)",
            required=((item.id, row.size),),
            budget=turn.manifest.totals.available,
            shortfall=row.size,
        )
    raise ScopeError(
        f"the delegated work `{item.id}` may not enter the agent's turn: {reason} (widen the hand-over, or hand over "
        "less)",
        reason=reason,
    )


def _failed(item: ContextItem[Any]) -> bool:
    return item.attr("refused") is not None or item.attr("failed") is not None


def _reason(error: ModelError) -> str:
    for known, reason in (
        (ModelTimeoutError, "model_timeout"),
        (ModelRateLimitError, "model_rate_limit"),
        (ModelReplyError, "model_reply"),
    ):
        if isinstance(error, known):
            return reason
    return "model_failed"
