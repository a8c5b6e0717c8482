"""`ContextEngine`: a whole turn with knowledge, memory, history, tools and a model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, LiteralString, Protocol
from uuid import uuid4

import msgspec

from rung.assembly.reply import Model, close
from rung.engine.handover import TASK
from rung.engine.limits import RunBudget, RunLimits
from rung.engine.offers import offers_of
from rung.engine.outcome import Done, Event, Outcome
from rung.engine.recorder import kept
from rung.engine.run import Run
from rung.errors import ConfigError, InputError, ScopeError, names
from rung.policy.rules import TurnIntent
from rung.records.item import ContextItem
from rung.records.types import Instruction
from rung.sources.protocol import ContextSource
from rung.sources.system import SystemPrompt
from rung.store import ContextStore
from rung.tools.declare import Tool, ToolContext, tool
from rung.tools.gate import Approve, Judge
from rung.tools.principal import Principal
from rung.tools.resolver import Resolution, resolve
from rung.tools.sets import ToolSet, ToolSource, offered


class MemoryLike(Protocol):
    """What the engine asks of a memory: a source to search, and to be told what was said."""

    def source(self) -> ContextSource: ...

    async def after_turn(self, view: ContextStore, items: Sequence[ContextItem[Any]]) -> object:
        """A turn has ended well; `items` are what it added to the session. What this raises is noted, no more."""
        ...


class Compactor(Protocol):
    """What the engine asks of a compaction of the history: `rung.summary.Compactor`."""

    async def compact(self, view: ContextStore) -> object:
        """Called before a turn is compiled; a SUMMARY that it adds stands for older parts of the session from then
        on. What this raises is noted, and the turn goes on with the history as it is."""
        ...


System = (
    LiteralString | SystemPrompt | Sequence[ContextItem[Any]] | Callable[[ContextStore], Sequence[ContextItem[Any]]]
)
"""Instructions of each turn: a literal, a built prompt, registered items, or a function of the session's handle."""

_COMPILED = frozenset(
    {"budget", "reserve_output", "window", "tokenizer", "framing", "response_schema", "caps", "history_tokens",
     "history_rule", "verify", "invisible", "both"}
)  # fmt: skip


class ContextEngine:
    """Runs turns: what a careful team would write by hand in a month.

    Args:
        store: where items are kept; its policy holds intents, budgets and freshness.
        model: who answers; `rung.models`, or `ScriptedModel` in tests.
        system: the instructions of each turn.
        sources: where context comes from.
        tools: single tools, and sets of them.
        intent: what a turn may use where a run does not say; a name of the policy, or None for all sources given.
        limits: the most that a run may spend.
        memory: searched before and told after each turn.
        compactor: shortens a history that has grown, before a turn is compiled.
        approve: asks a person about calls that change something; without it they are refused.
        judges: further rules on each call.
        name: of the agent, for hand-overs.
        max_output: the most tokens of a reply.
        tool_tokens: the most tokens of all tool schemas; None: the policy's `budget.tools`.
        tool_timeout: seconds that a set of tools may take to say what it offers.
        record: keep each request's manifest, so that it can be asked about later.
        turn_ids: gives the ids of turns.
        options: how turns are compiled: `budget`, `window`, `reserve_output`, `tokenizer`, `caps`, `history_tokens`, …
            as in `ContextStore.compile`; caps and `history_tokens` are the policy's where nothing is said.

    Raises:
        ConfigError: an unknown intent, two sources or sets of one name, a tool with an unknown freshness class.
    """

    def __init__(
        self,
        store: ContextStore,
        model: Model,
        *,
        system: System | None = None,
        sources: Iterable[ContextSource] = (),
        tools: Iterable[Tool | ToolSource] = (),
        intent: TurnIntent | str | None = None,
        limits: RunLimits | None = None,
        memory: MemoryLike | None = None,
        compactor: Compactor | None = None,
        approve: Approve | None = None,
        judges: Iterable[Judge] = (),
        name: str = "agent",
        max_output: int | None = None,
        tool_tokens: int | None = None,
        tool_timeout: float = 10.0,
        record: bool = True,
        turn_ids: Callable[[], str] | None = None,
        **options: Any,
    ) -> None:
        self.store = store
        self.model = model
        self.memory = memory
        self.compactor = compactor
        self.approve = approve
        self.judges = tuple(judges)
        self.limits = limits or RunLimits()
        self.name = name
        self.max_output = max_output
        self.records = record
        self.tool_timeout = tool_timeout
        self.new_turn = turn_ids or _random_turn
        self._sources = tuple(sources) + (() if memory is None else (memory.source(),))
        given = tuple(tools)
        self._tools = tuple(one for one in given if isinstance(one, Tool))
        self._sets: tuple[ToolSource, ...] = tuple(one for one in given if not isinstance(one, Tool))
        self._tool_tokens = store.policy.budget.tools if tool_tokens is None else tool_tokens
        self._intent = self._named(intent)
        unknown = sorted(set(options) - _COMPILED)
        if unknown:
            raise ConfigError(
                f"no such option of an engine: {names(unknown)} (one of {names(sorted(_COMPILED), 20)})",
                path=unknown[0],
            )
        self.compile_options = options
        self.compile_options.setdefault("caps", store.policy.budget.caps())
        self.compile_options.setdefault("history_tokens", store.policy.budget.history)
        self._rules = self._registered(system)
        self._owned: list[Callable[[], None]] = []
        self._check()

    @classmethod
    def from_config(
        cls,
        path: str | Path,
        *,
        model: Model | None = None,
        tools: Iterable[Tool | ToolSource] = (),
        store: str | None = None,
        **more: Any,
    ) -> ContextEngine:
        """The engine of a `rung.toml`: its policy, system prompt, sources, store and model.

        Args:
            path: the file.
            model: another model than the one in `[model]`.
            tools: what the agent may call; tools are code and stand in no file.
            store: another place than `agent.store`: a file's path, or `postgresql://…`.
            more: further arguments of `ContextEngine`.

        Raises:
            ConfigError: the file is wrong, or names no model.
        """
        from rung.engine.configured import configured

        return configured(cls, Path(path), model=model, tools=tools, store=store, more=more)

    # running

    async def run(
        self,
        question: str,
        *,
        session: str | None = None,
        principal: Principal | None = None,
        intent: TurnIntent | str | None = None,
        limits: RunLimits | None = None,
    ) -> Outcome:
        """Answer a request in a session, on behalf of a principal.

        Args:
            question: the request, as the person wrote it.
            session: which conversation; there is none by default.
            principal: on whose behalf; nobody by default.
            intent: what the turn may use; None: the engine's own.
            limits: None: the engine's own.

        Raises:
            ScopeError: no session or no principal.
            InputError: an empty question.
            SourceError: a source that must not fail did.
            BudgetError: the request and what it requires do not fit.
            ModelAuthError, ModelRequestError: the deployment must mend this. Other faults of the model end the run
                with the status `failed`.
        """
        return await self._run(question, session, principal, intent, limits, None)

    def run_sync(
        self,
        question: str,
        *,
        session: str | None = None,
        principal: Principal | None = None,
        intent: TurnIntent | str | None = None,
        limits: RunLimits | None = None,
    ) -> Outcome:
        """`run` for code without an event loop. The model's connections are closed afterwards.

        Raises:
            InputError: an event loop runs in this thread already: await `run` there.
        """
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return asyncio.run(self._once(question, session, principal, intent, limits))
        raise InputError("an event loop runs here already (await engine.run(…))", field="run_sync")

    async def _once(
        self,
        question: str,
        session: str | None,
        principal: Principal | None,
        intent: TurnIntent | str | None,
        limits: RunLimits | None,
    ) -> Outcome:
        try:
            return await self._run(question, session, principal, intent, limits, None)
        finally:
            await close(self.model)

    async def stream(
        self,
        question: str,
        *,
        session: str | None = None,
        principal: Principal | None = None,
        intent: TurnIntent | str | None = None,
        limits: RunLimits | None = None,
    ) -> AsyncIterator[Event]:
        """The same turn as `run`, told as it goes; the last event is `Done` with the outcome.

        Leaving the loop early cancels the turn; its session stays in order.
        """
        events: asyncio.Queue[Event | None] = asyncio.Queue()
        task = asyncio.ensure_future(self._run(question, session, principal, intent, limits, events.put_nowait))
        task.add_done_callback(lambda _: events.put_nowait(None))
        try:
            while (event := await events.get()) is not None:
                yield event
            yield Done(outcome=await task)
        finally:
            if not task.done():
                task.cancel()
                await asyncio.gather(task, return_exceptions=True)

    async def _run(
        self,
        question: str,
        session: str | None,
        principal: Principal | None,
        intent: TurnIntent | str | None,
        limits: RunLimits | None,
        emit: Callable[[Event], None] | None,
    ) -> Outcome:
        view = self.view(session, principal)
        assert principal is not None
        if not question.strip():
            raise InputError("the question is empty (say what is asked)", field="question")
        budget = RunBudget(limits or self.limits)
        turn = self.new_turn()
        request = await kept(lambda: view.user(question, turn=turn))
        return await self.run_request(
            request, view=view, principal=principal, intent=intent, turn=turn, budget=budget, emit=emit
        )

    async def run_request(
        self,
        request: ContextItem[Any],
        *,
        view: ContextStore,
        principal: Principal,
        intent: TurnIntent | str | None,
        turn: str,
        budget: RunBudget,
        extra: Sequence[ContextItem[Any]] = (),
        emit: Callable[[Event], None] | None = None,
    ) -> Outcome:
        """The turn of a USER item that stands in the session already, under this turn's id."""
        narrowed = self.narrowed(intent, principal, extra)
        effective = msgspec.structs.replace(principal, scopes=narrowed.scopes, clearance=narrowed.clearance)
        return await Run(self, view, effective, narrowed, budget, turn, extra=extra, emit=emit).go(request)

    async def delegate(self, agent: ContextEngine, task: str, *, context: ToolContext, **options: Any) -> Outcome:
        """Hand work of a running turn to another agent; called from a tool, with the context that it was given.

        Args:
            agent: who does it.
            task: what, in the words of the handing agent; it arrives as TASK_STATE with its lineage.
            context: the tool's `ToolContext`.
            options: `scopes`, `clearance`, `limits`, `intent`, `request`, `session`: see
                `rung.engine.handover.hand_over`.
        """
        outcome: Outcome = await context.delegate(agent, task, **options)
        return outcome

    def as_tool(self, *, name: str | None = None, description: str, **options: Any) -> Tool:
        """This agent as a tool of another: it is given a task and gives back its outcome.

        The agent's own tools are judged by its own gate; `options` are those of `delegate`.
        """

        async def ask(task: str, context: ToolContext) -> dict[str, Any]:
            outcome: Outcome = await context.delegate(self, task, **options)
            return {
                "status": outcome.status,
                "reason": outcome.reason,
                "text": outcome.text,
                "missing": list(outcome.missing),
            }

        return tool(
            name=name or self.name,
            description=description,
            side_effect="write",
            approval="never",
            timeout=3_600.0,
        )(ask)

    # what a run asks for

    def view(self, session: str | None, principal: Principal | None) -> ContextStore:
        """The handle of a principal's session.

        Raises:
            ScopeError: one of them is missing; there are no defaults that visitors could come to share.
        """
        if principal is None:
            raise ScopeError("a run has no principal (pass principal=Principal(tenant=…))", reason="no_principal")
        if not session:
            raise ScopeError("a run has no session (pass session=…, one for each conversation)", reason="no_session")
        return self.store.scope(tenant=principal.tenant, subject=principal.subject, session=session)

    def instructions(self, view: ContextStore) -> Sequence[ContextItem[Any]]:
        """The instructions of a turn."""
        return self._rules(view)

    def narrowed(
        self, intent: TurnIntent | str | None, principal: Principal, extra: Sequence[ContextItem[Any]] = ()
    ) -> TurnIntent:
        """An intent within the principal's rights. An intent that lists no scopes has the principal's."""
        wanted = self._named(intent) or self._intent
        every = frozenset(source.name for source in self._sources)
        more = frozenset({TASK}) if extra else frozenset[str]()
        if wanted is None:
            return TurnIntent(name="run", sources=every | more, clearance=principal.clearance, scopes=principal.scopes)
        return TurnIntent(
            name=wanted.name,
            sources=wanted.sources | more,
            clearance=min(wanted.clearance, principal.clearance),
            scopes=(wanted.scopes & principal.scopes) if wanted.scopes else principal.scopes,
            budget=wanted.budget,
        )

    @property
    def sources(self) -> tuple[ContextSource, ...]:
        """Where context comes from. Of these a turn touches what its intent names; the rest stands in its manifest."""
        return self._sources

    async def resolve_tools(self, principal: Principal, intent: TurnIntent, request: str) -> Resolution:
        """The tools that a turn offers."""
        asked = await asyncio.gather(*(offers_of(one, principal, self.tool_timeout) for one in self._sets))
        offers = [
            *offered("", (one for one in self._tools if _for(one, principal)), trusted=True, pins={}),
            *(offer for found, _ in asked for offer in found if _for(offer.tool, principal)),
        ]
        allowed = [name for name in intent.sources if name.startswith("tool:")]
        if allowed:
            offers = [offer for offer in offers if _listed(f"tool:{offer.tool.name}", allowed)]
        if not offers and not any(rows for _, rows in asked):
            return Resolution()
        found = await asyncio.to_thread(
            resolve,
            offers,
            request,
            target=self.model.target,
            max_tokens=self._tool_tokens,
            tokenizer=self.compile_options.get("tokenizer") or "o200k_base",
        )
        failed = tuple(row for _, rows in asked for row in rows)
        return msgspec.structs.replace(found, rows=(*failed, *found.rows))

    # set-up

    def _named(self, intent: TurnIntent | str | None) -> TurnIntent | None:
        if not isinstance(intent, str):
            return intent
        known = self.store.policy.intents
        if intent not in known:
            raise ConfigError(
                f"the intent `{intent}` is unknown (one of {names(sorted(known)) or 'none'})", path="intent"
            )
        return known[intent]

    def _registered(self, system: System | None) -> Callable[[ContextStore], Sequence[ContextItem[Any]]]:
        if callable(system):
            return system
        if system is None:
            items: tuple[ContextItem[Any], ...] = ()
        elif isinstance(system, SystemPrompt):
            items = (self.store.add(Instruction, system.render(), source="system"),)
        elif isinstance(system, str):
            items = (self.store.instruct(system),)
        else:
            items = tuple(system)
        return lambda _: items

    def _check(self) -> None:
        seen: set[str] = set()
        for what, group in _named_parts(self._sources, self._sets):
            for named in group:
                if named.name in seen:
                    raise ConfigError(f"two sources are named `{named.name}` (rename the {what})", path=named.name)
                seen.add(named.name)
        known = self.store.policy.freshness
        static = [member for group in self._sets if isinstance(group, ToolSet) for member in group.members]
        for one in (*self._tools, *static):
            if one.freshness is not None and one.freshness not in known:
                raise ConfigError(
                    f"tool `{one.name}` names the unknown freshness class `{one.freshness}` "
                    f"(one of {names(sorted(known))})",
                    path=f"tools.{one.name}.freshness",
                )

    def own(self, release: Callable[[], None]) -> None:
        """Something that ends with this engine."""
        self._owned.append(release)

    async def aclose(self) -> None:
        """Close the model's connections, and what the engine itself has opened."""
        await close(self.model)
        self.close()

    def close(self) -> None:
        """Close what the engine itself has opened: of `from_config` the store and the indexes."""
        while self._owned:
            self._owned.pop()()

    async def __aenter__(self) -> ContextEngine:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, problem: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.aclose()

    def __repr__(self) -> str:
        return f"<ContextEngine {self.name} {self.model.name} tools={len(self._tools)} sources={len(self._sources)}>"


def _random_turn() -> str:
    return uuid4().hex


def _for(one: Tool, principal: Principal) -> bool:
    """Whether a tool is offered to a principal at all: what it may not call, it does not see."""
    return (one.tenants is None or principal.tenant in one.tenants) and one.scopes <= principal.scopes


def _listed(name: str, allowed: Iterable[str]) -> bool:
    return any(name == one or (one.endswith("*") and name.startswith(one[:-1])) for one in allowed)


def _named_parts(
    sources: Sequence[ContextSource], sets: Sequence[ToolSource]
) -> tuple[tuple[str, Sequence[ContextSource | ToolSource]], ...]:
    return (("source", sources), ("tool set", sets))
