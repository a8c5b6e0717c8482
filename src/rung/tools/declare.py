"""`Tool`: what a tool is called with, what it does to the world, who may call it, and how much it may return."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from importlib.util import find_spec
from string import Formatter
from typing import Any, Literal, Protocol, cast, overload

import msgspec

from rung.assembly.messages import ToolSchema
from rung.errors import ConfigError, missing_extra, names
from rung.records.canonical import canonical_json
from rung.records.labels import Sensitivity
from rung.tools.principal import Principal
from rung.tools.signature import declared

SideEffect = Literal["read", "write", "send"]
"""`read` changes nothing; `write` changes data; `send` reaches somebody outside."""

Bound = Literal["tenant", "subject", "session"]

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}\Z")
"""OpenAI, API reference, function `name`; Anthropic, Define tools: the same letters, at most 64."""

MAX_BYTES = 8_192
MAX_ROWS = 100
TIMEOUT = 30.0


class Delegate(Protocol):
    """What a tool can ask of the run that it is part of: see `rung.engine.ContextEngine.delegate`."""

    async def __call__(self, agent: Any, task: str, **options: Any) -> Any: ...


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """The run that a call belongs to. A parameter annotated with it is filled in and hidden from the model.

    Attributes:
        principal: on whose behalf.
        session, turn: the conversation and the turn in it.
        call_id: this call.
        delegate: hands work to another agent under this run's budget.
    """

    principal: Principal
    session: str
    turn: str
    call_id: str
    delegate: Delegate


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """A result with what is known about it; a tool that knows none of this returns the value alone.

    Attributes:
        value: text or any value that has a JSON form.
        observed_at: when the source saw it; None: the end of the call.
        key: what fact it states; None: the tool's own key.
        version: as the source counts.
    """

    value: Any
    observed_at: datetime | None = None
    key: str | None = None
    version: str | None = None


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """A declared tool. Make one from a function with `@tool`; code authorises, the model only asks.

    Attributes:
        name, description, parameters: what the model sees; `parameters` is a JSON Schema of type object.
        call: called with the arguments by name, sync (in a thread) or async.
        side_effect: `read`, `write` or `send`.
        scopes: what the principal must have.
        tenants: who may use it; None: each tenant.
        bind: parameters that are filled from the principal (`tenant`, `subject`) or the `session`, hidden from the
            model: a tool cannot be asked for somebody else's data.
        sensitivity: of its results; a principal below it may not call.
        approval: whether a call is put to the engine's approver: `ask`, `never`, or None: `ask` unless it only reads.
        max_bytes, max_rows, fields: the most of a result that enters the session; `fields` are paths such as
            `orders[].id`.
        freshness: a freshness class of the policy, from which the result's expiry is taken; None: the type's own.
        key: what fact a result states, with arguments in braces: `order:{order_id}`.
        timeout: seconds.
        pinned: it is offered in every turn.
        foreign: its description comes from a third party.
    """

    name: str
    description: str = ""
    parameters: Mapping[str, Any] = {}
    call: Callable[..., Any]
    side_effect: SideEffect = "read"
    scopes: frozenset[str] = frozenset()
    tenants: frozenset[str] | None = None
    bind: Mapping[str, Bound] = {}
    sensitivity: Sensitivity | None = None
    approval: Literal["ask", "never"] | None = None
    max_bytes: int = MAX_BYTES
    max_rows: int | None = MAX_ROWS
    fields: tuple[str, ...] = ()
    freshness: str | None = None
    key: str | None = None
    timeout: float = TIMEOUT
    pinned: bool = False
    foreign: bool = False
    arguments: type[msgspec.Struct] | None = None
    context: str | None = None

    def __post_init__(self) -> None:
        if not self.foreign and not NAME.match(self.name):
            raise ConfigError(
                f"`{self.name[:80]}` cannot name a tool (1 to 64 letters, digits, `_` or `-`)", path="tools"
            )
        for field, least in (("max_bytes", 256), ("max_rows", 1), ("timeout", 0.001)):
            value = getattr(self, field)
            if value is not None and value < least:
                raise ConfigError(
                    f"tool `{self.name}`: `{field}` is {value} (give {least} or more)",
                    path=f"tools.{self.name}.{field}",
                )
        if self.arguments is None and find_spec("jsonschema") is None:
            raise missing_extra("jsonschema", "schema")
        if self.key is not None:
            _check_key(self)

    @property
    def reads_only(self) -> bool:
        return self.side_effect == "read"

    @property
    def asks(self) -> bool:
        """Whether a call is put to an approver."""
        return self.approval == "ask" or (self.approval is None and not self.reads_only)

    @property
    def schema(self) -> ToolSchema:
        """The tool as the model sees it."""
        parameters: dict[str, Any] = {"properties": {}, **self.parameters, "type": "object"}
        return ToolSchema(name=self.name, description=self.description, parameters=canonical_json(parameters))

    def fact(self, arguments: Mapping[str, Any]) -> str | None:
        """The key of a result: the template with its arguments in place."""
        if self.key is None:
            return None
        made = self.key.format_map({name: _plain(arguments.get(name)) for name in _slots(self.key)})
        return made if len(made) <= 200 and made.isprintable() else None

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function itself: no gate, no limits. For tests and other code."""
        return self.call(*given, **named)


def _plain(value: object) -> str:
    return value if isinstance(value, str) else canonical_json(value)


def _slots(template: str) -> list[str]:
    return [field for _, field, _, _ in Formatter().parse(template) if field is not None]


def _check_key(made: Tool) -> None:
    place = f"tools.{made.name}.key"
    try:
        slots = _slots(made.key or "")
    except ValueError as problem:
        raise ConfigError(f"`{place}` is no template: {problem} (write `order:{{order_id}}`)", path=place) from None
    known = set(cast("Mapping[str, Any]", made.parameters.get("properties") or {}))
    unknown = sorted(set(slots) - known)
    if unknown:
        raise ConfigError(f"`{place}` names {names(unknown)}, which is no argument of the tool", path=place)


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...


@overload
def tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    side_effect: SideEffect = ...,
    scopes: Iterable[str] = ...,
    tenants: Iterable[str] | None = ...,
    bind: Mapping[str, Bound] | None = ...,
    sensitivity: Sensitivity | None = ...,
    approval: Literal["ask", "never"] | None = ...,
    max_bytes: int = ...,
    max_rows: int | None = ...,
    fields: Iterable[str] = ...,
    freshness: str | None = ...,
    key: str | None = ...,
    timeout: float = ...,
    pinned: bool = ...,
) -> Callable[[Callable[..., Any]], Tool]: ...


def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    side_effect: SideEffect = "read",
    scopes: Iterable[str] = (),
    tenants: Iterable[str] | None = None,
    bind: Mapping[str, Bound] | None = None,
    sensitivity: Sensitivity | None = None,
    approval: Literal["ask", "never"] | None = None,
    max_bytes: int = MAX_BYTES,
    max_rows: int | None = MAX_ROWS,
    fields: Iterable[str] = (),
    freshness: str | None = None,
    key: str | None = None,
    timeout: float = TIMEOUT,
    pinned: bool = False,
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a `Tool` from a function: its signature gives the schema, its docstring the descriptions.

    Args:
        name, description: None: the function's name and its docstring.
        side_effect, scopes, tenants, bind, sensitivity, approval, max_bytes, max_rows, fields, freshness, key,
            timeout, pinned: see `Tool`.

    Raises:
        ConfigError: a wrong name, a parameter without a JSON form, or a key that names no argument.
    """

    def made(wrapped: Callable[..., Any]) -> Tool:
        own = name if name is not None else getattr(wrapped, "__name__", "tool")
        for field, value in (("scopes", scopes), ("tenants", tenants), ("fields", fields)):
            if isinstance(value, str):
                raise ConfigError(f"tool `{own}`: `{field}` is one string (give a set of them)", path=f"tools.{own}")
        said = declared(wrapped, name=own, bound=frozenset(bind or {}), context_type=ToolContext)
        return Tool(
            name=own,
            description=said.description if description is None else description,
            parameters=said.parameters,
            call=wrapped,
            side_effect=side_effect,
            scopes=frozenset(scopes),
            tenants=None if tenants is None else frozenset(tenants),
            bind=dict(bind or {}),
            sensitivity=sensitivity,
            approval=approval,
            max_bytes=max_bytes,
            max_rows=max_rows,
            fields=tuple(fields),
            freshness=freshness,
            key=key,
            timeout=timeout,
            pinned=pinned,
            arguments=said.arguments,
            context=said.context,
        )

    return made if function is None else made(function)
