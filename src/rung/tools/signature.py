"""From a function's signature and docstring to the JSON Schema of its arguments, and the check of a call."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from typing import Annotated, Any, get_type_hints

import msgspec

from rung.errors import ConfigError, names


class Declared(msgspec.Struct, frozen=True, kw_only=True):
    """What a signature says.

    Attributes:
        description: the docstring without its sections.
        parameters: the JSON Schema of the arguments, closed.
        arguments: the type that a call's arguments are converted to.
        context: the parameter that takes the `ToolContext`, or None.
    """

    description: str
    parameters: Mapping[str, Any]
    arguments: type[msgspec.Struct]
    context: str | None


def declared(function: Callable[..., Any], *, name: str, bound: frozenset[str], context_type: type[Any]) -> Declared:
    """Read a function.

    Args:
        function: sync or async; every parameter can be given by name.
        name: the tool's name, for messages.
        bound: parameters that are filled from the principal; the model neither sees nor sets them.
        context_type: a parameter annotated with it takes the run's context.

    Raises:
        ConfigError: a parameter without a JSON form, `*args`, or a bound name that does not exist.
    """
    said = _docstring(function)
    hints = _hints(function, name)
    fields: list[tuple[str, Any, Any] | tuple[str, Any]] = []
    context: str | None = None
    known: set[str] = set()
    for parameter in inspect.signature(function).parameters.values():
        known.add(parameter.name)
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise ConfigError(
                f"tool `{name}`: `{parameter.name}` cannot be given by name (declare each argument)", path=name
            )
        hint = hints.get(parameter.name, Any)
        if hint is context_type:
            context = parameter.name
            continue
        if parameter.name in bound:
            continue
        about = said.arguments.get(parameter.name)
        if about:
            hint = Annotated[hint, msgspec.Meta(description=about)]
        if parameter.default is parameter.empty:
            fields.append((parameter.name, hint))
        else:
            fields.append((parameter.name, hint, _default(parameter.default)))
    missing = sorted(bound - known)
    if missing:
        raise ConfigError(f"tool `{name}`: no parameter {names(missing)} to bind (correct `bind`)", path=name)
    try:
        arguments = msgspec.defstruct("Arguments", fields, kw_only=True, frozen=True, forbid_unknown_fields=True)
        _, components = msgspec.json.schema_components([arguments])
    except (TypeError, ValueError, NameError) as problem:
        raise ConfigError(
            f"tool `{name}`: a parameter has no JSON form: {problem} (annotate it with types that JSON can hold)",
            path=name,
        ) from None
    return Declared(description=said.text, parameters=_object(components), arguments=arguments, context=context)


class _Said(msgspec.Struct, frozen=True):
    text: str
    arguments: Mapping[str, str]


def _docstring(function: Callable[..., Any]) -> _Said:
    text = inspect.getdoc(function) or ""
    if not text:
        return _Said("", {})
    from docstring_parser import parse

    found = parse(text)
    parts = (found.short_description, found.long_description)
    return _Said(
        "\n\n".join(part.strip() for part in parts if part),
        {one.arg_name: " ".join(one.description.split()) for one in found.params if one.description},
    )


def _hints(function: Callable[..., Any], name: str) -> dict[str, Any]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as problem:
        raise ConfigError(
            f"tool `{name}`: its annotations cannot be read: {problem} (import the types that they name)", path=name
        ) from None


def _default(value: Any) -> Any:
    if type(value) in (list, dict, set):
        return msgspec.field(default_factory=partial(deepcopy, deepcopy(value)))
    return value


def _object(components: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of the arguments itself at the top, what it refers to under `$defs`."""
    rest = {name: schema for name, schema in components.items() if name != "Arguments"}
    top = {name: value for name, value in components["Arguments"].items() if name != "title"}
    if rest:
        top["$defs"] = rest
    top.setdefault("properties", {})
    return top
