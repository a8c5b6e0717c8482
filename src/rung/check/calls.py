"""Calls: sources, sinks, functions of the same module, and what carries text from arguments to result."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import replace

from rung.check.names import class_of, kind_of, path_of
from rung.check.scope import Scope
from rung.check.tables import ITEM_METHODS, NAMED_PROMPT, ROLES, SAFE_METHODS, STORE_RETURNS, WRITE_MODES
from rung.check.values import (
    NOTHING,
    PARAMETER,
    Mark,
    Span,
    Summary,
    Taint,
    Value,
    join_all,
    span_of,
    taints_of,
    without_items,
)

_SLOT = re.compile(r"(?<!\{)\{(\w+)\}(?!\})")
_GROWS = frozenset({"append", "extend", "insert", "add", "update", "appendleft", "put", "put_nowait"})
_ROLE_ENDS = (".SYSTEM", ".DEVELOPER")


class Arguments:
    """The evaluated arguments of a call."""

    __slots__ = ("keywords", "nodes", "positional")

    def __init__(self) -> None:
        self.positional: list[tuple[Value, ast.expr]] = []
        self.keywords: dict[str, Value] = {}
        self.nodes: dict[str, ast.expr] = {}

    @property
    def values(self) -> list[Value]:
        return [*(value for value, _ in self.positional), *self.keywords.values()]


class Calls(Scope):
    """Evaluates calls."""

    # Abstract here: the class that builds on this one gives them.

    def build(self, node: ast.expr, parts: Sequence[tuple[Value, ast.expr | None]], how: str, words: str = "") -> Value:
        raise NotImplementedError

    def derived(self, base: Value) -> Value:
        raise NotImplementedError

    def fill_slots(self, template: Value, filling: Value, node: ast.expr) -> None:
        raise NotImplementedError

    def eval_Call(self, node: ast.Call) -> Value:
        base = self.eval(node.func.value) if isinstance(node.func, ast.Attribute) else NOTHING
        method = node.func.attr if isinstance(node.func, ast.Attribute) else ""
        if not isinstance(node.func, (ast.Name, ast.Attribute)):
            self.eval(node.func)
        given = self._arguments(node)
        full = self.full_paths(node.func)
        paths = tuple(path.lower() for path in full)
        self._sinks(node, paths, given)
        tables = self.module.tables
        kind = kind_of(tables.calls, paths)
        if kind != "item" and any(tables.sanitizers(path) for path in paths):
            return self._made(node, full, given)
        made = self._constructs(node, method, base, given)
        if made is not None:
            return made
        if method in _GROWS and isinstance(node.func, ast.Attribute):
            self._grow(node.func.value, base, method, given)
        summary = self._summary(node.func)
        if summary is not None:
            return self._inside(node, summary, given)
        if kind and self._counts(kind, node, given):
            return self.source(kind, node, path_of(node.func), full)
        if any(tables.carriers(path) for path in paths):
            result = Value(taints=taints_of(given.values), runtime=any(value.runtime for value in given.values))
            if paths[0] == "enumerate" and given.positional:
                pair = (NOTHING, self.element(given.positional[0][0]))
                return replace(result, elements=(Value(taints=result.taints, elements=pair),), many=True)
            if paths[0] in ("list", "tuple", "sorted", "reversed") and given.positional:
                first = given.positional[0][0]
                return replace(result, elements=first.elements, many=True)
            return result
        if method not in ITEM_METHODS:
            base = without_items(base)
        if base.taints and method not in SAFE_METHODS and method:
            if method == "get" and base.fields is not None and given.positional:
                key = given.positional[0][0].text
                if key is not None:
                    return base.fields.get(key, NOTHING)
            return replace(self.derived(base), many=method in ("split", "splitlines", "readlines"))
        if base.slots and method in (
            "invoke",
            "ainvoke",
            "format",
            "format_messages",
            "format_prompt",
            "partial",
        ):
            self._fill(node, base, given)
        return self._made(node, full, given)

    def _arguments(self, node: ast.Call) -> Arguments:
        given = Arguments()
        for argument in node.args:
            given.positional.append((self.eval(argument), argument))
        for keyword in node.keywords:
            value = self.eval(keyword.value)
            if keyword.arg is None:
                for name, part in self.spread(value).items():
                    given.keywords[name] = part
                    given.nodes[name] = keyword.value
                if not value.fields and value.taints:
                    given.keywords["**"] = value
                    given.nodes["**"] = keyword.value
            else:
                given.keywords[keyword.arg] = value
                given.nodes[keyword.arg] = keyword.value
        return given

    # Sources.

    def source(self, kind: str, node: ast.expr, path: str, full: Sequence[str] = ()) -> Value:
        """A value that comes from an untrusted source here."""
        span = span_of(node)
        what = path if len(path) <= 60 else "…" + path[-59:]
        note = "comes from"
        taint = Taint(kind, what, span, (Mark(span, f"`{what}`: {note} a source of kind {kind}"),))
        return Value(taints=(taint,), cls=class_of(full[-1]) if full else "", node=node)

    def _counts(self, kind: str, node: ast.Call, given: Arguments) -> bool:
        if kind != "file":
            return True
        mode = given.keywords.get("mode")
        is_open = path_of(node.func).rpartition(".")[2] == "open"
        if is_open and mode is None:
            place = (
                0
                if isinstance(node.func, ast.Attribute)
                and not path_of(node.func).startswith(("io.", "codecs.", "aiofiles."))
                else 1
            )
            mode = given.positional[place][0] if len(given.positional) > place else None
        if mode is not None and mode.text is not None and WRITE_MODES & set(mode.text):
            return False
        return not self.trusted_path((node.func, *node.args))

    # Sinks.

    def _sinks(self, node: ast.Call, paths: tuple[str, ...], given: Arguments) -> None:
        tables = self.module.tables
        for name, value in given.keywords.items():
            for globs, sink in tables.by_argument.get(name, ()):
                if any(globs(path) for path in paths):
                    self._arrives(value, given.nodes[name], sink.channel, paths)
                    break
            else:
                self.named(name, value, given.nodes[name])
        if given.positional and any(tables.any_position(path) for path in paths):
            for globs, sink in tables.by_position:
                place = sink.position or 0
                if place < len(given.positional) and any(globs(path) for path in paths):
                    value, argument = given.positional[place]
                    self._arrives(value, argument, sink.channel, paths)
                    break
        self._role_sink(node, given)
        self._pairs(paths, given)
        if paths[-1].endswith("store.add") and len(given.positional) > 1:
            what = path_of(given.positional[0][1]).rpartition(".")[2]
            if what in ("Instruction", "Policy"):
                self._arrives(given.positional[1][0], given.positional[1][1], f"`store.add({what}, …)`", paths)

    def _arrives(self, value: Value, node: ast.expr, channel: str, paths: tuple[str, ...]) -> None:
        self.into_channel(value, node, channel)
        if channel == "`store.instruct`" and value.runtime and not value.taints:
            here = span_of(node)
            taint = Taint("literal", path_of(node), here, (Mark(here, "is not a literal"),))
            self.report("RUNG203", here, here, taint, "the text given to `store.instruct` is built at run time")
        elif channel == "`store.instruct`" and value.runtime:
            self._strict_parameters(value, node)

    def _strict_parameters(self, value: Value, node: ast.expr) -> None:
        if all(taint.kind == PARAMETER for taint in value.taints):
            here = span_of(node)
            taint = Taint("literal", value.taints[0].what, here, (Mark(here, "is not a literal"),))
            self.report("RUNG203", here, here, taint, "the text given to `store.instruct` is built at run time")

    def _role_sink(self, node: ast.Call, given: Arguments) -> None:
        role = given.keywords.get("role")
        text, role_node = (role.text, given.nodes["role"]) if role is not None else (None, None)
        content = given.keywords.get("content") or given.keywords.get("blocks")
        if role is None and len(given.positional) >= 2 and path_of(node.func).lower().endswith("message"):
            text, role_node = given.positional[0][0].text, given.positional[0][1]
        if content is None and role_node is not None and len(given.positional) >= (1 if role is not None else 2):
            content = given.positional[0 if role is not None else 1][0]
        if content is None or role_node is None:
            return
        named = text in ROLES or (
            isinstance(role_node, ast.Attribute) and path_of(role_node).upper().endswith(_ROLE_ENDS)
        )
        if named:
            self.into_channel(content, given.nodes.get("content", node), "a system message")

    def _pairs(self, paths: tuple[str, ...], given: Arguments) -> None:
        """LangChain's `[("system", text), …]`."""
        if not any(path.endswith((".from_messages", "chatprompttemplate", ".invoke", ".ainvoke")) for path in paths):
            return
        for value, node in given.positional[:1]:
            for element in value.elements or ():
                pair = element.elements
                if pair is not None and len(pair) == 2 and pair[0].text in ROLES:
                    self.into_channel(pair[1], node, "a system message")

    def named(self, name: str, value: Value, node: ast.AST) -> None:
        """A value is stored under a name; does the name say that it is an instruction?"""
        if value.taints and NAMED_PROMPT.search(name):
            self.into_named(value, node, name)

    def named_template(self, template: ast.expr, value: Value, node: ast.expr) -> None:
        """A template is filled; does its name say that it is an instruction?"""
        name = path_of(template).rpartition(".")[2]
        self.named(name.lower().replace("_template", "").replace("_tmpl", ""), value, node)

    # Constructs and growth.

    def _constructs(self, node: ast.Call, method: str, base: Value, given: Arguments) -> Value | None:
        func = node.func
        if not isinstance(func, ast.Attribute):
            return None
        if (
            method == "join"
            and len(given.positional) == 1
            and (base.text is not None or not path_of(func).startswith("os."))
        ):
            value, argument = given.positional[0]
            if not value.taints and value.elements is None:
                return Value(runtime=True)
            parts = [(part, argument) for part in value.elements] if value.elements is not None else [(value, argument)]
            made = self.build(node, parts, "`.join`")
            if value.elements is None and base.text is not None and not base.text.strip():
                made = _rejoined(made, value)
            return made
        if method == "format" and not base.slots:
            parts = [(base, func.value), *((value, argument) for value, argument in given.positional)]
            parts += [(value, given.nodes[name]) for name, value in given.keywords.items()]
            parts.append((Value(runtime=True), func.value))
            made = self.build(node, parts, "`.format`", base.text or "")
            self.named_template(func.value, made, node)
            return made
        if method in ("substitute", "safe_substitute", "render", "render_async"):
            values = given.values
            parts = [(value, func.value) for value in (base, *values)]
            made = self.build(node, parts, f"`.{method}`", base.text or "")
            self.named_template(func.value, made, node)
            return made
        if method == "replace" and len(given.positional) >= 2:
            new, argument = given.positional[1]
            if new.taints:
                made = self.build(node, [(base, func.value), (new, argument)], "`.replace`", base.text or "")
                self.named_template(func.value, made, node)
                return made
        return None

    def _grow(self, receiver: ast.expr, base: Value, method: str, given: Arguments) -> None:
        added = join_all(given.values)
        key = path_of(receiver)
        if not isinstance(receiver, (ast.Name, ast.Attribute)) or key.count(".") > 1:
            return
        if method == "append" and base.elements is not None and len(base.elements) < 64 and given.positional:
            elements: tuple[Value, ...] | None = (*base.elements, given.positional[0][0])
        else:
            elements = None
        if added.taints or base.elements is not None:
            grown = base.with_taints(added.taints)
            self.write(key, replace(grown, elements=elements, many=True))

    # Functions of this module, and everything else.

    def _summary(self, func: ast.expr) -> Summary | None:
        summaries = self.module.summaries
        if isinstance(func, ast.Name):
            local = self.read(func.id)
            name = local.func if local is not None and local.func else func.id
            return summaries.get(name)
        if isinstance(func, ast.Attribute) and isinstance(func.value, ast.Name):
            if func.value.id in ("self", "cls") and self.owner:
                return summaries.get(f"{self.owner}.{func.attr}")
            local = self.read(func.value.id)
            owner = local.cls if local is not None and local.cls else func.value.id
            if owner in self.module.classes:
                return summaries.get(f"{owner}.{func.attr}")
        return None

    def _inside(self, node: ast.Call, summary: Summary, given: Arguments) -> Value:
        here = span_of(node)
        name = path_of(node.func)
        if summary.tool:
            return self.source(summary.tool, node, name)
        bound: dict[str, Value] = dict(given.keywords)
        for parameter, (value, argument) in zip(summary.parameters, given.positional, strict=False):
            if isinstance(argument, ast.Starred):
                break
            bound.setdefault(parameter, value)
        for sink in summary.sinks:
            self.through_parameter(sink, bound.get(sink.parameter, NOTHING), here, name)
        result = self._received(summary.result, bound, here, name)
        if summary.result.elements is None:
            return result
        parts = tuple(self._received(part, bound, here, name) for part in summary.result.elements)
        return replace(result, elements=parts)

    def _received(self, given: Value, bound: dict[str, Value], here: Span, name: str) -> Value:
        """A part of a function's result, with the arguments of this call put in place of its parameters."""
        taints: list[Taint] = []
        for taint in given.taints:
            if taint.kind != PARAMETER:
                taints.append(taint.step(here, f"is returned by `{name}`"))
                continue
            for inner in bound.get(taint.what, NOTHING).taints:
                passed = inner.step(here, f"passes through `{name}`")
                taints.append(replace(passed, built=here if taint.built is not None else inner.built))
        result = taints_of((Value(taints=tuple(taints)),))
        return Value(taints=result, runtime=given.runtime, cls=given.cls, many=given.many)

    def _made(self, node: ast.Call, full: Sequence[str], given: Arguments) -> Value:
        for path in full:
            store = STORE_RETURNS.get(path.lower())
            if store:
                return Value(cls=store)
        cls = class_of(full[-1])
        slots = self._slots(node, full[-1], given)
        if cls or slots:
            last = full[-1].rpartition(".")[2]
            fields = dict(given.keywords) if last[:1].isupper() and given.keywords else None
            if full[-1].lower().endswith(("path", "template", "from_string")) and given.positional:
                first = given.positional[0][0]
                return Value(
                    cls=cls,
                    node=node,
                    text=first.text,
                    taints=first.taints if cls.endswith("Template") else (),
                )
            return Value(cls=cls, fields=fields, slots=slots, node=node)
        if full[-1] == "dict":
            return Value(taints=taints_of(given.values), fields=dict(given.keywords))
        return Value(node=node) if given.positional else NOTHING

    def _slots(self, node: ast.Call, path: str, given: Arguments) -> frozenset[str]:
        """The variables in the system messages of a LangChain prompt."""
        found: set[str] = set()
        if path.endswith((".from_messages", "ChatPromptTemplate")) and (given.positional or given.keywords):
            first = given.positional[0][0] if given.positional else join_all(given.keywords.values())
            for element in first.elements or ():
                pair = element.elements
                if pair is not None and len(pair) == 2 and pair[0].text in ROLES and pair[1].text:
                    found.update(_SLOT.findall(pair[1].text))
                found |= element.slots
        elif path.endswith("SystemMessagePromptTemplate.from_template") and given.values:
            found.update(_SLOT.findall(given.values[0].text or ""))
        return frozenset(found)

    def _fill(self, node: ast.Call, base: Value, given: Arguments) -> None:
        filling = given.positional[0][0] if given.positional else Value(fields=given.keywords)
        self.fill_slots(base, filling, node)


def _rejoined(made: Value, value: Value) -> Value:
    """Lines of one file put together again are still that file: nothing was built into other text."""
    whole = {taint.key for taint in value.taints if taint.built is None and taint.kind in ("file", PARAMETER)}
    taints = tuple(replace(taint, built=None) if taint.key in whole else taint for taint in made.taints)
    return replace(made, taints=taints)
