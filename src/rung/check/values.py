"""What the linter knows about a value: which sources its text came from, and what shape it has."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

MOST_TAINTS = 6
"""How many origins a value keeps; more would not change whether it is reported."""
MOST_PARAMETERS = 16
"""How many parameters of its function a value may depend on; counted apart, so that they crowd out no source."""
PARAMETER = "parameter"
"""The kind of a taint that stands for a parameter of the function at hand."""
MOST_PLACES = 8
"""A tuple of at most this length keeps its places when branches meet."""
MOST_TEXT = 2_000
"""How many characters of a literal text are looked at."""
MOST_STEPS = 10
"""How many steps a flow keeps; the first ones, because the source explains the most."""
MOST_ELEMENTS = 64
"""Longer literals are known as a whole only."""


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of source: 1-based lines, 0-based UTF-8 byte columns, as in the syntax tree."""

    line: int
    col: int
    end_line: int
    end_col: int


def span_of(node: ast.AST) -> Span:
    """The span of a node that has a position."""
    line = getattr(node, "lineno", 1)
    col = getattr(node, "col_offset", 0)
    end_line = getattr(node, "end_lineno", None) or line
    end_col = getattr(node, "end_col_offset", None)
    return Span(line, col, end_line, col if end_col is None else end_col)


@dataclass(frozen=True, slots=True)
class Mark:
    """A step of a flow before columns are counted in characters."""

    span: Span
    note: str


@dataclass(frozen=True, slots=True)
class Taint:
    """Text of one origin: a source of some kind, or (`kind="parameter"`) a parameter of this function."""

    kind: str
    what: str
    origin: Span
    steps: tuple[Mark, ...] = ()
    built: Span | None = None

    def step(self, span: Span, note: str) -> Taint:
        """The same taint, one step further."""
        if len(self.steps) >= MOST_STEPS or any(mark.span == span for mark in self.steps):
            return self
        return replace(self, steps=(*self.steps, Mark(span, note)))

    @property
    def key(self) -> tuple[str, str, Span]:
        return (self.kind, self.what, self.origin)


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value.

    `text` is a known literal; `fields` and `elements` a known shape; `cls` its class by dotted name; `runtime`
    says that it was built from something that is no literal; `many` that it is a container; `slots` are the
    template variables that stand in a system message; `func` names a function of this module; `node` is where
    it was written, for judging file paths by their words.
    """

    taints: tuple[Taint, ...] = ()
    text: str | None = None
    fields: Mapping[str, Value] | None = None
    elements: tuple[Value, ...] | None = None
    cls: str = ""
    runtime: bool = False
    many: bool = False
    slots: frozenset[str] = frozenset()
    func: str = ""
    node: ast.expr | None = field(default=None, compare=False)

    def with_taints(self, taints: Iterable[Taint]) -> Value:
        return replace(self, taints=merge(self.taints, tuple(taints)))


NOTHING = Value()


def merge(left: tuple[Taint, ...], right: tuple[Taint, ...]) -> tuple[Taint, ...]:
    """Both lists of taints, one for each origin; what is already built into a text wins."""
    if not right or left is right:
        return left
    if not left and len(right) <= MOST_TAINTS:
        return right
    found: dict[tuple[str, str, Span], Taint] = {}
    parameters = 0
    for taint in (*left, *right):
        known = found.get(taint.key)
        if known is None:
            counted = taint.kind == PARAMETER
            if (parameters < MOST_PARAMETERS) if counted else (len(found) - parameters < MOST_TAINTS):
                found[taint.key] = taint
                parameters += counted
        elif known.built is None and taint.built is not None:
            found[taint.key] = taint
    return tuple(found.values())


def join(left: Value, right: Value) -> Value:
    """What is known when either value may be there."""
    if left is right or right is NOTHING:
        return left
    if left is NOTHING:
        return right
    return Value(
        taints=merge(left.taints, right.taints),
        text=left.text if left.text == right.text else None,
        fields=_join_fields(left.fields, right.fields),
        elements=_join_elements(left.elements, right.elements),
        cls=left.cls or right.cls,
        runtime=left.runtime or right.runtime,
        many=left.many or right.many,
        slots=left.slots | right.slots,
        func=left.func or right.func,
        node=left.node or right.node,
    )


def _join_fields(left: Mapping[str, Value] | None, right: Mapping[str, Value] | None) -> Mapping[str, Value] | None:
    if left is None or right is None:
        return None
    keys = [*left, *(key for key in right if key not in left)]
    if len(keys) > MOST_ELEMENTS:
        return None
    return {key: join(left.get(key, NOTHING), right.get(key, NOTHING)) for key in keys}


def _join_elements(left: tuple[Value, ...] | None, right: tuple[Value, ...] | None) -> tuple[Value, ...] | None:
    """Two tuples of one length keep their places: a function that returns pairs returns them in each branch."""
    if left is None or right is None or len(left) != len(right) or len(left) > MOST_PLACES:
        return None
    return tuple(join(one, other) for one, other in zip(left, right, strict=True))


def join_all(values: Iterable[Value]) -> Value:
    """The join of any number of values."""
    result = NOTHING
    for value in values:
        result = join(result, value)
    return result


def without_items(value: Value) -> Value:
    """The value without what it has of rung's items: an item's other parts are no text of it."""
    kept = tuple(taint for taint in value.taints if taint.kind != "item")
    return value if len(kept) == len(value.taints) else replace(value, taints=kept)


def taints_of(values: Iterable[Value]) -> tuple[Taint, ...]:
    """All taints of some values, one for each origin."""
    found: tuple[Taint, ...] = ()
    for value in values:
        found = merge(found, value.taints)
    return found


@dataclass(frozen=True, slots=True)
class ParameterSink:
    """A parameter of a function that reaches a sink inside it."""

    parameter: str
    rule: str
    channel: str
    steps: tuple[Mark, ...]


@dataclass(slots=True)
class Summary:
    """What a caller needs to know about a function of the same module."""

    parameters: tuple[str, ...] = ()
    result: Value = NOTHING
    sinks: tuple[ParameterSink, ...] = ()
    tool: str = ""
    method: bool = False
