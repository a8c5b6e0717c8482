"""What the tests of the engine share: an agent around a script, and its checks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rung import ContextStore
from rung.assembly.validate import check, validate
from rung.engine import ContextEngine, Outcome
from rung.testing.model import ScriptedModel
from rung.tools import Principal, Tool, tool

ACME = Principal(tenant="acme", subject="u7", scopes=frozenset({"orders:read"}))
RULES = "Answer from the current order."

Agent = Callable[..., ContextEngine]


@tool(scopes={"orders:read"}, key="order:{order_id}")
def order_lookup(order_id: str) -> dict[str, Any]:
    """Look up an order.

    Args:
        order_id: the number of the order.
    """
    return {"id": order_id, "status": "shipped"}


def agent(
    *script: Any, store: ContextStore | None = None, target: str = "openai-chat", **options: Any
) -> ContextEngine:
    """An engine whose model says this script; a request that the provider would refuse fails the test."""
    options.setdefault("tools", [order_lookup])
    options.setdefault("system", RULES)
    model = ScriptedModel(*script, target=target, check=check)
    return ContextEngine(store or ContextStore(), model, **options)


def sent(engine: ContextEngine) -> list[dict[str, Any]]:
    """The requests that the model was given."""
    model = engine.model
    assert isinstance(model, ScriptedModel)
    return model.requests


def compiles(engine: ContextEngine, outcome: Outcome, principal: Principal = ACME) -> None:
    """The session of an outcome compiles for every target, and each provider would take the request."""
    view = engine.view(outcome.session, principal)
    rules = engine.instructions(view)
    after = view.user("And now?", turn="probe")
    for target in ("openai-chat", "openai-responses", "anthropic", "text"):
        turn = view.compile([*rules, after], target=target, history="session", turn="probe", tools=_schemas(engine))
        assert validate(dict(turn.request), target) == []


def _schemas(engine: ContextEngine) -> tuple[Any, ...]:
    return tuple(one.schema for one in engine._tools)  # pyright: ignore[reportPrivateUsage]


def named(made: Tool, name: str) -> Tool:
    import msgspec

    return msgspec.structs.replace(made, name=name)
