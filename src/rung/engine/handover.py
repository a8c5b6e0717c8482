"""Handing work to another agent: rights, budget and lineage only narrow."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from rung.engine.limits import RunLimits
from rung.engine.outcome import Outcome
from rung.engine.recorder import kept
from rung.errors import ConfigError, ContextTypeError, InputError
from rung.ledger.reach import Provenance
from rung.policy.rules import TurnIntent
from rung.records.draft import Draft
from rung.records.item import ContextItem, body
from rung.records.labels import Sensitivity, combine
from rung.records.types import TaskState, User
from rung.store import ContextStore, core

if TYPE_CHECKING:
    from rung.engine.engine import ContextEngine
    from rung.engine.run import Run

TASK = "task"
"""The source of delegated work; an intent need not name it."""

REQUEST = "Do the delegated work that the task in your context describes, and report what you found."
"""What a sub-agent is asked: the deployment's own text. What the other agent wrote is the task, not the request."""


async def hand_over(
    run: Run,
    agent: ContextEngine,
    task: str,
    *,
    scopes: Iterable[str] | None = None,
    clearance: Sensitivity | None = None,
    limits: RunLimits | None = None,
    intent: TurnIntent | str | None = None,
    request: ContextItem[User] | None = None,
    session: str | None = None,
) -> Outcome:
    """Let another agent do a piece of this run's work, and wait for its outcome.

    The task enters the agent's session as TASK_STATE, derived from this run's request and from the reply that
    handed it over, so whatever the agent does with it can be traced. It never becomes a USER item: no text that a
    model wrote gains a person's authority.

    Args:
        agent: an engine on the same store.
        task: what to do, as the handing agent words it.
        scopes, clearance: narrower than this run's; None: the same.
        limits: None: the agent's own. Either way never more than what is left of this run's budget.
        intent: what the agent's turn may use; None: its own default.
        request: the person's own request, where the agent should see its words: a USER item of this run. It is
            copied with its lineage.
        session: where the agent works; None: a session of its own for this hand-over.

    Raises:
        ScopeError: a scope or clearance that this run does not have.
        ConfigError: the agent keeps its items in another store.
        InputError: an empty task, or a request that is no USER item.
    """
    ledger, _ = core(run.view)
    if core(agent.store)[0] is not ledger:
        raise ConfigError(
            "the agent keeps its items in another store, so the work would lose its lineage (open both engines on one)",
            path="store",
        )
    if not task.strip():
        raise InputError("the task is empty (say what is to be done)", field="task")
    if request is not None and request.type is not User:
        raise InputError("`request` is no USER item (leave it out, or pass the person's own)", field="request")
    principal = run.principal.narrowed(scopes=scopes, clearance=clearance)
    turn = agent.new_turn()
    person = run.engine.store.scope(tenant=principal.tenant, subject=principal.subject)
    view = person.scope(session=session or f"{run.session}/{agent.name}/{turn}"[-512:])
    asked, work = await kept(lambda: _enter(run, view, turn, task, request))
    return await agent.run_request(
        asked,
        view=view,
        principal=principal,
        intent=intent,
        turn=turn,
        budget=run.budget.child(limits or agent.limits),
        extra=(work,),
    )


def _enter(
    run: Run, view: ContextStore, turn: str, task: str, request: ContextItem[User] | None
) -> tuple[ContextItem[Any], ContextItem[Any]]:
    """The request and the task, in the agent's session."""
    ledger, reach = core(view)
    parents = run.recorder.speakers()
    for parent in parents:
        if ledger.policy.transition(parent.type.name, TaskState.name) is None:
            raise ContextTypeError(
                f"{parent.type.name} cannot be turned into task_state context (list the transition in the policy)",
                item_id=parent.id,
            )
    # What the handing model had in front of it is what its words may hold.
    labels = combine([run.recorder.front, *(parent.labels for parent in parents if parent.type is User)])
    work = Draft(type=TaskState, content=task, source=TASK, turn=turn, attrs={"by": run.engine.name})
    lineage = Provenance(parents=tuple(parent.id for parent in parents), via="delegate:", labels=labels)
    if request is None:
        asked, origin = Draft(type=User, content=REQUEST, source="engine", turn=turn), Provenance()
    else:
        asked = Draft(type=User, content=body(request), source=request.source, turn=turn)
        origin = Provenance(parents=(request.id,), via="delegate:", labels=request.labels)
    made = ledger.write([(asked, origin), (work, lineage)], reach, is_sealed=view.sealed)
    return made[0], made[1]
