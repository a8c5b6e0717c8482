"""The ground that the evaluator stands on: a module's facts, layered variables, and reports of sinks."""

from __future__ import annotations

import ast
from collections.abc import Generator, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rung.check.names import Tables, class_of, path_of, root_of
from rung.check.rules import RULE_OF_KIND
from rung.check.tables import KINDS, TRUSTED_PATH
from rung.check.values import (
    NOTHING,
    PARAMETER,
    Mark,
    ParameterSink,
    Span,
    Summary,
    Taint,
    Value,
    join,
    span_of,
)


@dataclass(frozen=True, slots=True)
class Hit:
    """A finding before its columns are counted in characters."""

    rule: str
    span: Span
    sink: Span
    taint: Taint
    message: str


@dataclass(slots=True)
class Module:
    """What is known about the file under analysis; filled by the first pass, used by the second."""

    tables: Tables
    imports: dict[str, str]
    classes: frozenset[str]
    summaries: dict[str, Summary] = field(default_factory=dict[str, Summary])
    attributes: dict[str, dict[str, Value]] = field(default_factory=dict[str, dict[str, Value]])
    hits: dict[tuple[object, ...], Hit] = field(default_factory=dict[tuple[object, ...], Hit])


class Layer:
    """Variables in a branch: writes stay here, reads fall through. Copying nothing keeps the work linear."""

    __slots__ = ("below", "values")

    def __init__(self, below: Layer | None = None) -> None:
        self.below = below
        self.values: dict[str, Value] = {}

    def get(self, name: str) -> Value | None:
        layer: Layer | None = self
        while layer is not None:
            value = layer.values.get(name)
            if value is not None:
                return value
            layer = layer.below
        return None


class Scope:
    """One function (or the module's body) under evaluation."""

    def __init__(self, module: Module, below: Layer | None = None, owner: str = "", name: str = "") -> None:
        self.module = module
        self.layer = Layer(below)
        self.owner = owner
        self.name = name
        self.returned = NOTHING
        self.sinks: dict[tuple[object, ...], ParameterSink] = {}
        self.instruction_result = ""

    # Evaluation, given by the classes that build on this one.

    def eval(self, node: ast.expr) -> Value:
        raise NotImplementedError

    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        raise NotImplementedError

    # Variables.

    def read(self, key: str) -> Value | None:
        value = self.layer.get(key)
        if value is None and self.owner and key.startswith("self."):
            value = self.module.attributes.get(self.owner, {}).get(key[5:])
        return value

    def write(self, key: str, value: Value) -> None:
        self.layer.values[key] = value
        if self.owner and key.startswith("self.") and (value.taints or value.cls or value.slots):
            known = self.module.attributes.setdefault(self.owner, {})
            kept = tuple(taint for taint in value.taints if taint.kind != PARAMETER)
            fact = Value(taints=kept, cls=value.cls, slots=value.slots, many=value.many)
            known[key[5:]] = join(known.get(key[5:], NOTHING), fact)

    @contextmanager
    def branch(self) -> Generator[Layer]:
        """Writes go to a layer of their own for the time of the block."""
        layer = Layer(self.layer)
        self.layer = layer
        try:
            yield layer
        finally:
            assert layer.below is not None
            self.layer = layer.below

    def settle(self, layers: Iterable[Layer], *, total: bool) -> None:
        """Joins branches into the current layer. `total` says that one of them was surely taken."""
        kept = list(layers)
        keys = dict.fromkeys(key for layer in kept for key in layer.values)
        for key in keys:
            before = self.read(key)
            values = [layer.values.get(key, before) for layer in kept]
            if not total:
                values.append(before)
            joined = NOTHING
            for value in values:
                joined = join(joined, value if value is not None else NOTHING)
            self.write(key, joined)

    # Names.

    def paths(self, node: ast.expr) -> tuple[str, ...]:
        """An expression's path as written, by its imports, and by its receiver's class; in lower case."""
        return tuple(path.lower() for path in self.full_paths(node))

    def full_paths(self, node: ast.expr) -> tuple[str, ...]:
        path = path_of(node)
        root, rest = root_of(path)
        found = [path]
        local = self.layer.get(root) if root else None
        if local is not None and local.cls:
            found.append(local.cls + rest)
        elif local is None and root in self.module.imports:
            found.append(self.module.imports[root] + rest)
        if root == "self" and rest.startswith("."):
            name, tail = root_of(rest[1:])
            attribute = self.read(f"self.{name}")
            if attribute is not None and attribute.cls:
                found.append(attribute.cls + tail)
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Call):
            constructed = class_of(found[-1].rpartition("()")[0])
            if constructed:
                found.append(f"{constructed}.{node.attr}")
        return tuple(dict.fromkeys(found))

    def imported(self, node: ast.expr) -> str:
        """The path of an expression with its imported root spelt out."""
        path = path_of(node)
        root, rest = root_of(path)
        return self.module.imports.get(root, root) + rest

    def trusted_path(self, nodes: Iterable[ast.AST]) -> bool:
        """Whether a path is by its words the deployment's own: a prompt, a template, configuration."""
        words: list[str] = [self.name]
        self._path_words(nodes, words, 3)
        return TRUSTED_PATH.search(" ".join(words)) is not None

    def _path_words(self, nodes: Iterable[ast.AST], words: list[str], depth: int) -> None:
        for top in nodes:
            for node in ast.walk(top):
                if isinstance(node, ast.Constant) and isinstance(node.value, str):
                    words.append(node.value[:200])
                elif isinstance(node, ast.Attribute):
                    words.append(node.attr)
                elif isinstance(node, ast.Name):
                    words.append(node.id)
                    value = self.read(node.id)
                    if depth and value is not None and value.node is not None:
                        self._path_words((value.node,), words, depth - 1)

    # Reports.

    def report(self, rule: str, span: Span, sink: Span, taint: Taint, message: str) -> None:
        """Keeps a hit; of several on the same text and origin, the lowest rule id (the surest)."""
        key = (span, taint.kind, taint.what, taint.origin) if rule[4] != "2" else (span, rule)
        known = self.module.hits.get(key)
        if known is None or rule < known.rule:
            self.module.hits[key] = Hit(rule, span, sink, taint, message)

    def into_channel(self, value: Value, node: ast.AST, channel: str) -> None:
        """Text arrives where a model reads instructions."""
        here = span_of(node)
        for taint in value.taints:
            if taint.kind == PARAMETER:
                self._parameter_sink(taint, "", channel, here)
            elif taint.kind == "file" and taint.built is None:
                continue  # a whole file as the instruction is the deployment's own prompt file
            else:
                self._channel_hit(taint, here, channel)

    def _channel_hit(self, taint: Taint, here: Span, channel: str) -> None:
        message = f"{KINDS[taint.kind]} of `{taint.what}` reaches {channel}"
        done = taint.step(here, f"reaches {channel}")
        self.report(RULE_OF_KIND[taint.kind], taint.built or here, here, done, message)

    def into_named(self, value: Value, node: ast.AST, name: str) -> None:
        """A text is stored under a name that says it is an instruction."""
        for taint in value.taints:
            if taint.built is None:
                continue
            self.into_warning(taint, span_of(node), "RUNG301", f"`{name}`, an instruction by its name")

    def into_warning(self, taint: Taint, here: Span, rule: str, channel: str) -> None:
        """Text arrives in what is an instruction by its name (RUNG301) or its words (RUNG302)."""
        if taint.kind == PARAMETER:
            self._parameter_sink(taint, rule, channel, here)
            return
        message = f"{KINDS[taint.kind]} of `{taint.what}` is built into {channel}"
        done = taint.step(here, f"is built into {channel}")
        self.report(rule, taint.built or here, here, done, message)

    def _parameter_sink(self, taint: Taint, rule: str, channel: str, here: Span) -> None:
        # A file's text is reported only once it is built into other text: `built` travels in the rule's name.
        kept = rule or ("built" if taint.built is not None else "whole")
        marks = (*taint.steps, Mark(here, f"reaches {channel}"))
        sink = ParameterSink(taint.what, kept, channel, marks)
        self.sinks.setdefault((taint.what, kept, channel), sink)

    def through_parameter(self, sink: ParameterSink, value: Value, here: Span, function: str) -> None:
        """An argument arrives in a parameter that reaches a sink inside a function of this module."""
        for taint in value.taints:
            passed = taint.step(here, f"is passed to `{function}` as `{sink.parameter}`")
            if taint.kind == PARAMETER:
                marks = (*passed.steps, *sink.steps)
                key = (taint.what, sink.rule, sink.channel)
                self.sinks.setdefault(key, ParameterSink(taint.what, sink.rule, sink.channel, marks[:10]))
                continue
            if taint.kind == "file" and taint.built is None and sink.rule == "whole":
                continue
            for mark in sink.steps:
                passed = passed.step(mark.span, mark.note)
            if sink.rule.startswith("RUNG"):
                verb, rule = "is built into", sink.rule
            else:
                verb, rule = "reaches", RULE_OF_KIND[taint.kind]
            message = f"{KINDS[taint.kind]} of `{taint.what}` {verb} {sink.channel} through `{function}`"
            self.report(rule, taint.built or here, here, passed, message)

    # Shapes.

    def element(self, value: Value) -> Value:
        """What one gets by iterating over a value."""
        if value.elements is not None:
            joined = NOTHING
            for part in value.elements:
                joined = join(joined, part)
            return joined
        if value.fields is not None:
            return NOTHING
        return Value(taints=value.taints, runtime=value.runtime)

    def spread(self, value: Value) -> Mapping[str, Value]:
        """The keywords that `**value` gives, as far as they are known."""
        return value.fields or {}
