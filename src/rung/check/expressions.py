"""Expressions: what a value is made of, and the constructs that make one text of several."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from rung.check.calls import Calls
from rung.check.names import kind_of, path_of
from rung.check.tables import ITEM_TEXT, READS_AS_INSTRUCTIONS, ROLES, SAFE_ATTRIBUTES
from rung.check.values import (
    MOST_ELEMENTS,
    MOST_TEXT,
    NOTHING,
    Taint,
    Value,
    join,
    join_all,
    span_of,
    taints_of,
    without_items,
)


class Expressions(Calls):
    """Evaluates expressions. Every kind of node is visited once, so the work is linear in the source."""

    def eval(self, node: ast.expr) -> Value:
        visit: Callable[[ast.expr], Value] | None = getattr(self, f"eval_{type(node).__name__}", None)
        if visit is not None:
            return visit(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                self.eval(child)
        return NOTHING

    # Names, attributes, subscripts.

    def eval_Constant(self, node: ast.Constant) -> Value:
        return Value(text=node.value[:MOST_TEXT], node=node) if isinstance(node.value, str) else NOTHING

    def eval_Name(self, node: ast.Name) -> Value:
        return self.read(node.id) or NOTHING

    def eval_Attribute(self, node: ast.Attribute) -> Value:
        if isinstance(node.value, ast.Name):
            stored = self.read(f"{node.value.id}.{node.attr}")
            if stored is not None:
                return stored
        base = self.eval(node.value)
        kind = kind_of(self.module.tables.attributes, self.paths(node))
        if kind:
            return self.source(kind, node, path_of(node))
        if base.fields is not None:
            return base.fields.get(node.attr, NOTHING)
        if node.attr in SAFE_ATTRIBUTES:
            return NOTHING
        if node.attr not in ITEM_TEXT:
            base = without_items(base)
        return self.derived(base)

    def eval_Subscript(self, node: ast.Subscript) -> Value:
        base = self.eval(node.value)
        index = self.eval(node.slice)
        if base.fields is not None and index.text is not None:
            return base.fields.get(index.text, NOTHING)
        if base.elements is not None and isinstance(node.slice, ast.Constant):
            place = node.slice.value
            if isinstance(place, int) and -len(base.elements) <= place < len(base.elements):
                return base.elements[place]
        if base.elements is not None and not isinstance(node.slice, ast.Slice):
            return self.element(base)
        if index.text is not None and index.text.lower() in SAFE_ATTRIBUTES:
            return NOTHING
        return self.derived(base)

    def derived(self, base: Value) -> Value:
        """A part of a value: its origins stay, its shape is not known."""
        return Value(taints=base.taints, runtime=base.runtime) if base.taints or base.runtime else NOTHING

    def eval_Starred(self, node: ast.Starred) -> Value:
        return self.eval(node.value)

    def eval_Await(self, node: ast.Await) -> Value:
        return self.eval(node.value)

    def eval_NamedExpr(self, node: ast.NamedExpr) -> Value:
        value = self.eval(node.value)
        self.assign(node.target, value, node)
        return value

    def eval_IfExp(self, node: ast.IfExp) -> Value:
        self.eval(node.test)
        with self.branch():
            self.narrow(node.test)
            body = self.eval(node.body)
        with self.branch():
            self.narrow_not(node.test)
            return join(body, self.eval(node.orelse))

    def eval_BoolOp(self, node: ast.BoolOp) -> Value:
        return join_all([self.eval(value) for value in node.values])

    def eval_Compare(self, node: ast.Compare) -> Value:
        self.eval(node.left)
        for right in node.comparators:
            self.eval(right)
        return NOTHING

    def eval_Yield(self, node: ast.Yield) -> Value:
        if node.value is not None:
            self.returned = join(self.returned, self.eval(node.value))
        return NOTHING

    def eval_YieldFrom(self, node: ast.YieldFrom) -> Value:
        self.returned = join(self.returned, self.eval(node.value))
        return NOTHING

    # Containers.

    def eval_Dict(self, node: ast.Dict) -> Value:
        fields: dict[str, Value] = {}
        values: list[Value] = []
        known = True
        for key, part in zip(node.keys, node.values, strict=True):
            value = self.eval(part)
            values.append(value)
            if key is None:
                fields.update(self.spread(value))
                known = known and (value.fields is not None or not value.taints)
                continue
            name = self.eval(key).text
            if name is None:
                known = known and not value.taints
            else:
                fields[name] = value
                self.named(name, value, part)
        role = fields.get("role", NOTHING).text
        if role in ROLES:
            for key, part in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value in ("content", "parts", "text"):
                    self.into_channel(fields.get(str(key.value), NOTHING), part, f"a {role} message")
        fit = known and len(fields) <= MOST_ELEMENTS
        return Value(taints=taints_of(values), fields=fields if fit else None)

    def _sequence(self, parts: Sequence[ast.expr]) -> Value:
        values = [self.eval(part) for part in parts]
        fit = len(values) <= MOST_ELEMENTS and not any(isinstance(part, ast.Starred) for part in parts)
        return Value(taints=taints_of(values), elements=tuple(values) if fit else None, many=True)

    def eval_List(self, node: ast.List) -> Value:
        return self._sequence(node.elts)

    def eval_Tuple(self, node: ast.Tuple) -> Value:
        return self._sequence(node.elts)

    def eval_Set(self, node: ast.Set) -> Value:
        return self._sequence(node.elts)

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
        with self.branch():
            self.generators(node.generators)
            value = self.eval(node.elt)
        return Value(taints=value.taints, runtime=value.runtime, many=True)

    eval_ListComp = eval_SetComp = eval_GeneratorExp = _comprehension

    def eval_DictComp(self, node: ast.DictComp) -> Value:
        with self.branch():
            self.generators(node.generators)
            taints = taints_of((self.eval(node.key), self.eval(node.value)))
        return Value(taints=taints, many=True)

    def generators(self, parts: Iterable[ast.comprehension]) -> None:
        for part in parts:
            self.assign(part.target, self.element(self.eval(part.iter)), part.iter)
            for test in part.ifs:
                self.eval(test)
                self.narrow(test)

    # Abstract here: the class that builds on this one gives them.

    def narrow(self, test: ast.expr) -> None:
        raise NotImplementedError

    def narrow_not(self, test: ast.expr) -> None:
        raise NotImplementedError

    def eval_Lambda(self, node: ast.Lambda) -> Value:
        with self.branch() as layer:
            for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
                layer.values[argument.arg] = NOTHING
            return Value(taints=self.eval(node.body).taints)

    # Constructs.

    def build(self, node: ast.expr, parts: Sequence[tuple[Value, ast.expr | None]], how: str, words: str = "") -> Value:
        """One text made of several: items are reported here, other untrusted text is marked as built here.

        `words` are the literal words of the text, which tell whether it reads as instructions.
        """
        here = span_of(node)
        kept: list[Taint] = []
        for place, (value, part) in enumerate(parts):
            grows = place == 0 and how in ("`+`", "`+=`")
            for taint in value.taints:
                if taint.kind == "item":
                    self.formatted_item(taint, value, part if part is not None else node, how)
                elif grows and taint.built is not None:
                    kept.append(taint)  # more text after a prompt does not move the place where it went wrong
                else:
                    note = f"is built into text by {how}"
                    kept.append(replace(taint.step(here, note), built=here))
        texts = [value.text for value, _ in parts]
        runtime = any(text is None for text in texts)
        if not words:
            words = " ".join(text for text in texts if text)
        words = words[:MOST_TEXT]
        taints = taints_of((Value(taints=tuple(kept)),))
        if READS_AS_INSTRUCTIONS.search(words):
            for taint in taints:
                self.into_warning(taint, here, "RUNG302", "a text that reads as instructions")
        text = None if runtime else "".join(text for text in texts if text is not None)[:MOST_TEXT]
        return Value(taints=taints, text=text, runtime=runtime, node=node)

    def formatted_item(self, taint: Taint, value: Value, node: ast.expr, how: str) -> None:
        here = span_of(node)
        many = value.many
        thing = f"the items of `{taint.what}`" if many else f"the item `{taint.what}`"
        rule = "RUNG202" if many or how.startswith("`.join`") else "RUNG201"
        verb = "are" if many else "is"
        self.report(
            rule,
            here,
            here,
            taint.step(here, f"{verb} formatted by {how}"),
            f"{thing} {verb} formatted by {how}",
        )

    def eval_JoinedStr(self, node: ast.JoinedStr) -> Value:
        parts: list[tuple[Value, ast.expr | None]] = []
        for part in node.values:
            if isinstance(part, ast.FormattedValue):
                if part.format_spec is not None:
                    self.eval(part.format_spec)
                parts.append((self.eval(part.value), None))
            else:
                parts.append((self.eval(part), None))
        return self.build(node, parts, "an f-string")

    def eval_TemplateStr(self, node: ast.expr) -> Value:
        """A t-string keeps its parts apart, which is what `store.instruct` wants; its values stay values."""
        for child in ast.iter_child_nodes(node):
            inner = getattr(child, "value", None)
            if isinstance(inner, ast.expr):
                self.eval(inner)
        return Value(cls="string.templatelib.Template", node=node)

    def eval_BinOp(self, node: ast.BinOp) -> Value:
        if isinstance(node.op, ast.Add):
            return self._sum(node)
        left, right = self.eval(node.left), self.eval(node.right)
        if isinstance(node.op, ast.Mod):
            if left.text is not None or left.runtime or left.taints or isinstance(node.left, (ast.Name, ast.Attribute)):
                values = right.elements if right.elements is not None else (right,)
                if not right.taints and left.text is None:
                    return self.derived(left)
                parts = [(left, node.left), *((value, node.right) for value in values)]
                built = self.build(node, parts, "`%`", left.text or "")
                self.named_template(node.left, built, node)
                return built
        elif isinstance(node.op, ast.BitOr):
            return self.piped(left, right, node)
        elif isinstance(node.op, ast.Div):
            return Value(taints=left.taints, cls=left.cls, node=node)
        elif isinstance(node.op, ast.Mult):
            return Value(taints=merge_two(left, right), runtime=left.runtime)
        return NOTHING

    def _sum(self, node: ast.BinOp) -> Value:
        operands: list[ast.expr] = []
        current: ast.expr = node
        while isinstance(current, ast.BinOp) and isinstance(current.op, ast.Add):
            operands.append(current.right)
            current = current.left
        operands.append(current)
        operands.reverse()
        values = [self.eval(operand) for operand in operands]
        if any(value.many for value in values) and not any(value.text for value in values):
            known = [value.elements for value in values if value.elements is not None]
            elements = tuple(part for group in known for part in group) if len(known) == len(values) else None
            return Value(taints=taints_of(values), elements=elements, many=True)
        if not any(value.taints or value.text is not None or value.runtime for value in values):
            return NOTHING
        return self.build(node, list(zip(values, operands, strict=True)), "`+`")

    def piped(self, left: Value, right: Value, node: ast.BinOp) -> Value:
        """LangChain's pipe: a mapping flows into the slots of a prompt that stand in a system message."""
        if right.slots:
            self.fill_slots(right, self._runnables(node.left, left), node)
        taints = merge_two(left, right) if not (left.slots or right.slots) else ()
        return Value(taints=taints, slots=left.slots | right.slots, fields=None)

    def _runnables(self, node: ast.expr, filling: Value) -> Value:
        """In a pipe's mapping a retriever stands for what it will retrieve."""
        if not isinstance(node, ast.Dict) or filling.fields is None:
            return filling
        fields = dict(filling.fields)
        for key, part in zip(node.keys, node.values, strict=True):
            first = part
            while isinstance(first, ast.BinOp) and isinstance(first.op, ast.BitOr):
                first = first.left
            path = path_of(first)
            if isinstance(key, ast.Constant) and path.lower().endswith(("retriever", "as_retriever()")):
                fields[str(key.value)] = self.source("retrieval", first, path)
        return Value(fields=fields)

    def fill_slots(self, template: Value, filling: Value, node: ast.expr) -> None:
        for slot in sorted(template.slots):
            value = (filling.fields or {}).get(slot)
            if value is None:
                continue
            here = span_of(node)
            built = tuple(replace(taint, built=taint.built or here) for taint in value.taints)
            self.into_channel(Value(taints=built), node, f"the slot `{slot}` of a system message")


def merge_two(left: Value, right: Value) -> tuple[Taint, ...]:
    """The taints of both."""
    return taints_of((left, right))
