"""Statements: how text moves through assignments, branches, loops and functions of one file."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from rung.check.expressions import Expressions
from rung.check.names import Tables, class_of, collect_imports, kind_of, path_of
from rung.check.scope import Hit, Layer, Module
from rung.check.tables import NARROW_CLASSES, NARROW_ROLES, SAFE_NAMES
from rung.check.values import MOST_PLACES, NOTHING, PARAMETER, Mark, Summary, Taint, Value, join, span_of, without_items

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Flow(Expressions):
    """Follows text through one function or one module body."""

    loops = 0

    def run(self, body: Sequence[ast.stmt]) -> bool:
        """Runs statements in order; True when the end of the block is never reached."""
        for statement in body:
            visit: Callable[[ast.stmt], bool | None] | None = getattr(self, f"do_{type(statement).__name__}", None)
            if visit is None:
                self._walk(statement)
            elif visit(statement):
                return True
        return False

    def _walk(self, statement: ast.stmt) -> None:
        for child in ast.iter_child_nodes(statement):
            if isinstance(child, ast.expr):
                self.eval(child)

    # Assignments.

    def assign(self, target: ast.expr, value: Value, node: ast.AST) -> None:
        if isinstance(target, ast.Name):
            self._store(target.id, target.id, value, node)
        elif isinstance(target, ast.Attribute):
            self.eval(target.value)
            self._store(path_of(target), target.attr, value, node)
        elif isinstance(target, (ast.Tuple, ast.List)):
            self._unpack(target, value, node)
        elif isinstance(target, ast.Starred):
            self.assign(target.value, value, node)
        elif isinstance(target, ast.Subscript):
            self._store_part(target, value, node)

    def _store(self, key: str, name: str, value: Value, node: ast.AST) -> None:
        if value.taints and SAFE_NAMES.search(name):
            value = replace(value, taints=())
        self.named(name, value, node)
        noted = tuple(taint.step(span_of(node), f"is stored in `{key}`") for taint in value.taints)
        if value.node is None and isinstance(node, (ast.Assign, ast.AnnAssign)) and node.value is not None:
            value = replace(value, node=node.value)
        self.write(key, replace(value, taints=noted) if noted else value)

    def _unpack(self, target: ast.Tuple | ast.List, value: Value, node: ast.AST) -> None:
        parts = value.elements
        fits = parts is not None and len(parts) == len(target.elts)
        for place, element in enumerate(target.elts):
            if fits and parts is not None and not isinstance(element, ast.Starred):
                self.assign(element, parts[place], node)
            else:
                self.assign(element, Value(taints=value.taints), node)

    def _store_part(self, target: ast.Subscript, value: Value, node: ast.AST) -> None:
        base = self.eval(target.value)
        key = self.eval(target.slice).text
        if key is not None:
            self.named(key, value, node)
            role = (base.fields or {}).get("role", NOTHING).text
            if key == "content" and role in ("system", "developer"):
                self.into_channel(value, node, f"a {role} message")
        holder = path_of(target.value)
        if not isinstance(target.value, (ast.Name, ast.Attribute)) or holder.count(".") > 1:
            return
        if base.fields is not None and key is not None and len(base.fields) < 64:
            fields = {**base.fields, key: value}
            self.write(holder, replace(base.with_taints(value.taints), fields=fields))
        elif value.taints:
            self.write(holder, replace(base.with_taints(value.taints), fields=None, elements=None))

    def do_Assign(self, node: ast.Assign) -> None:
        value = self.eval(node.value)
        for target in node.targets:
            self.assign(target, value, node)

    def do_AnnAssign(self, node: ast.AnnAssign) -> None:
        value = self.eval(node.value) if node.value is not None else NOTHING
        declared = self.annotated(node.annotation, path_of(node.target), node.target)
        if declared.cls and not value.cls:
            value = replace(value, cls=declared.cls)
        if any(taint.kind == "item" for taint in declared.taints):
            value = replace(value.with_taints(declared.taints), many=declared.many)
        self.assign(node.target, value, node)

    def do_AugAssign(self, node: ast.AugAssign) -> None:
        before = self.eval(_as_load(node.target))
        added = self.eval(node.value)
        if isinstance(node.op, ast.Add) and not (before.many or added.many):
            whole = _joined(node)
            value = self.build(whole, [(before, None), (added, node.value)], "`+=`")
        else:
            value = join(before, added)
        self.assign(node.target, value, node)

    def do_Expr(self, node: ast.Expr) -> None:
        self.eval(node.value)

    # Branches.

    def do_If(self, node: ast.If) -> bool:
        layers: list[Layer] = []

        def arm(narrow: Callable[[ast.expr], None], test: ast.expr, body: list[ast.stmt]) -> None:
            with self.branch() as layer:
                narrow(test)
                if not self.run(body):
                    layers.append(layer)

        while True:
            self.eval(node.test)
            arm(self.narrow, node.test, node.body)
            if len(node.orelse) != 1 or not isinstance(node.orelse[0], ast.If):
                break
            node = node.orelse[0]  # an `elif`; in a loop, because a chain of them may be long
        if node.orelse:
            arm(self.narrow_not, node.test, node.orelse)
        total = bool(node.orelse)
        self.settle(layers, total=total)
        return total and not layers

    def narrow(self, test: ast.expr) -> None:
        """What a condition says about a variable: a tool's message, or one of a fixed set of values."""
        if isinstance(test, ast.BoolOp) and isinstance(test.op, ast.And):
            for part in test.values:
                self.narrow(part)
        elif isinstance(test, ast.Call) and path_of(test.func) == "isinstance" and len(test.args) == 2:
            classes = test.args[1].elts if isinstance(test.args[1], ast.Tuple) else [test.args[1]]
            if any(NARROW_CLASSES.search(path_of(cls)) for cls in classes):
                self._is_tool_message(test.args[0])
        elif isinstance(test, ast.Compare) and len(test.ops) == 1:
            right = test.comparators[0]
            if isinstance(test.ops[0], ast.Eq) and isinstance(right, ast.Constant) and right.value in NARROW_ROLES:
                self._is_tool_message(_message_of(test.left))
            elif isinstance(test.ops[0], ast.In) and isinstance(test.left, ast.Name) and _fixed(right):
                self.write(test.left.id, NOTHING)

    def narrow_not(self, test: ast.expr) -> None:
        """What a failed condition says: what is no item here may be formatted."""
        if isinstance(test, ast.Call) and path_of(test.func) == "isinstance" and len(test.args) == 2:
            target = test.args[0]
            path = self.imported(test.args[1]).lower()
            if isinstance(target, ast.Name) and kind_of(self.module.tables.annotations, (path,)) == "item":
                self.write(target.id, without_items(self.read(target.id) or NOTHING))

    def _is_tool_message(self, node: ast.expr | None) -> None:
        if isinstance(node, ast.Name):
            known = self.read(node.id) or NOTHING
            tool = self.source("tool", node, node.id)
            self.write(node.id, Value(taints=join(known, tool).taints))

    def _loop(self, node: ast.For | ast.AsyncFor | ast.While, target: ast.expr | None, each: Value) -> None:
        # Twice, so that text written late in the body is seen early in the next round; once inside another
        # loop, because the outer one repeats it: the work stays linear in the source.
        self.loops += 1
        for _ in range(2 if self.loops == 1 else 1):
            with self.branch() as layer:
                if target is not None:
                    self.assign(target, each, target)
                self.run(node.body)
            self.settle((layer,), total=False)
        self.loops -= 1
        self.run(node.orelse)

    def do_For(self, node: ast.For | ast.AsyncFor) -> None:
        self._loop(node, node.target, self.element(self.eval(node.iter)))

    do_AsyncFor = do_For

    def do_While(self, node: ast.While) -> None:
        self.eval(node.test)
        self._loop(node, None, NOTHING)

    def do_With(self, node: ast.With | ast.AsyncWith) -> bool:
        for item in node.items:
            value = self.eval(item.context_expr)
            if item.optional_vars is not None:
                self.assign(item.optional_vars, value, item.context_expr)
        return self.run(node.body)

    do_AsyncWith = do_With

    def do_Try(self, node: ast.Try) -> bool:
        with self.branch() as body:
            ended = self.run(node.body) or self.run(node.orelse)
        layers = [] if ended else [body]
        # A handler starts from whatever the body had done when it failed.
        with self.branch() as started:
            started.values.update(body.values)
            for handler in node.handlers:
                with self.branch() as layer:
                    if handler.name:
                        layer.values[handler.name] = NOTHING
                    if not self.run(handler.body):
                        layers.append(layer)
        self.settle(layers, total=bool(layers))
        if self.run(node.finalbody):
            return True
        return not layers and ended and bool(node.handlers or ended)

    do_TryStar = do_Try

    def do_Match(self, node: ast.Match) -> None:
        subject = self.eval(node.subject)
        layers: list[Layer] = []
        for case in node.cases:
            with self.branch() as layer:
                taints = subject.taints
                if isinstance(case.pattern, ast.MatchClass) and NARROW_CLASSES.search(path_of(case.pattern.cls)):
                    self._is_tool_message(node.subject)
                    taints = self.source("tool", node.subject, path_of(node.subject)).taints
                for part in ast.walk(case.pattern):
                    name = getattr(part, "name", None) or getattr(part, "rest", None)
                    if isinstance(name, str):
                        layer.values[name] = Value(taints=taints)
                if case.guard is not None:
                    self.eval(case.guard)
                if not self.run(case.body):
                    layers.append(layer)
        self.settle(layers, total=False)

    def do_Return(self, node: ast.Return) -> bool:
        if node.value is not None:
            value = self.eval(node.value)
            self.returned = join(self.returned, value)
            if self.instruction_result:
                self.into_channel(value, node.value, self.instruction_result)
            else:
                self.named(self.name, value, node.value)
        return True

    def do_Raise(self, node: ast.Raise) -> bool:
        self._walk(node)
        return True

    # Functions and classes.

    def do_FunctionDef(self, node: _Function) -> None:
        for part in (*node.decorator_list, *node.args.defaults, *(d for d in node.args.kw_defaults if d)):
            self.eval(part)
        key = f"{self.name}.<locals>.{node.name}" if self.name else node.name
        function(self.module, node, self.layer, owner=self.owner, key=key)
        self.layer.values[node.name] = Value(func=key)

    do_AsyncFunctionDef = do_FunctionDef

    def do_ClassDef(self, node: ast.ClassDef) -> None:
        owner = f"{self.owner}.{node.name}" if self.owner else node.name
        with self.branch():
            for part in (*node.decorator_list, *node.bases):
                self.eval(part)
            body = [part for part in node.body if not isinstance(part, _Function)]
            self.run(body)
        self.methods(node, owner)

    def methods(self, node: ast.ClassDef, owner: str) -> None:
        for part in node.body:
            if isinstance(part, _Function):
                function(self.module, part, self.layer, owner=owner, key=f"{owner}.{part.name}")

    # Annotations.

    def annotated(self, annotation: ast.expr | None, name: str, node: ast.AST) -> Value:
        """What an annotation says about a parameter or a variable."""
        if annotation is None:
            return NOTHING
        many = False
        cls = ""
        for part in _annotation_parts(annotation):
            full = self.imported(part)
            last = full.rpartition(".")[2]
            if last.lower() in (
                "list",
                "sequence",
                "iterable",
                "tuple",
                "set",
                "dict",
                "mapping",
                "iterator",
            ):
                many = True
                continue
            if full in self.module.classes:
                cls = cls or full
                continue
            kind = kind_of(self.module.tables.annotations, (full.lower(),))
            if kind:
                span = span_of(node)
                mark = Mark(span, f"`{name}` is annotated `{last}`: a source of kind {kind}")
                return Value(taints=(Taint(kind, name, span, (mark,)),), many=many)
            cls = cls or class_of(full)
        return Value(cls="" if many else cls)


def function(module: Module, node: _Function, below: Layer, *, owner: str, key: str) -> None:
    """Evaluates one function and keeps its summary."""
    flow = Flow(module, below, owner, node.name)
    summary = Summary()
    decorators = [path_of(part).removesuffix("()") for part in node.decorator_list]
    paths = [path.lower() for path in decorators]
    if any(module.tables.instruction_decorators(path) for path in paths):
        flow.instruction_result = f"the instructions that `{node.name}` returns"
    summary.tool = kind_of(module.tables.decorators, paths)
    arguments = [*node.args.posonlyargs, *node.args.args]
    names: list[str] = []
    for place, argument in enumerate([*arguments, *node.args.kwonlyargs]):
        if place == 0 and owner and argument.arg in ("self", "cls"):
            summary.method = True
            continue
        if place < len(arguments):
            names.append(argument.arg)
        value = flow.annotated(argument.annotation, argument.arg, argument)
        span = span_of(argument)
        taint = Taint(PARAMETER, argument.arg, span)
        plain = argument.annotation is not None and path_of(argument.annotation) == "str"
        if not value.taints:
            value = Value(taints=(taint,), cls=value.cls, runtime=plain)
        flow.layer.values[argument.arg] = value
    for rest in (node.args.vararg, node.args.kwarg):
        if rest is not None:
            flow.layer.values[rest.arg] = NOTHING
    flow.run(node.body)
    summary.parameters = tuple(names)
    summary.result = _returned(flow.returned)
    summary.sinks = tuple(flow.sinks.values())
    module.summaries[key] = summary


def _returned(value: Value) -> Value:
    """What a caller may know: origins and the places of a short tuple; the rest belongs to the function."""
    parts = value.elements
    if parts is not None and len(parts) <= MOST_PLACES:
        parts = tuple(replace(part, node=None, fields=None, elements=None, func="") for part in parts)
        return replace(value, node=None, fields=None, elements=parts, func="")
    return replace(value, node=None, fields=None, elements=None, func="")


def analyse(tree: ast.Module, tables: Tables) -> list[Hit]:
    """All hits in a file. The first pass learns what functions and attributes carry, the second reports."""
    nodes = list(ast.walk(tree))
    classes = frozenset(node.name for node in nodes if isinstance(node, ast.ClassDef))
    module = Module(tables=tables, imports=collect_imports(nodes), classes=classes)
    del nodes
    for _ in range(2):
        module.hits.clear()
        flow = Flow(module)
        # Functions run after the module's statements: their bodies see its constants as they are at its end.
        later = [part for part in tree.body if isinstance(part, (*_FUNCTIONS, ast.ClassDef))]
        flow.run([part for part in tree.body if not isinstance(part, (*_FUNCTIONS, ast.ClassDef))])
        flow.run(later)
    return _surest(list(module.hits.values()))


def _surest(hits: list[Hit]) -> list[Hit]:
    """One hit for each place and rule, and no warning about a text that is reported where it reaches a channel."""
    passed = {
        (hit.taint.key, mark.span) for hit in hits if not hit.rule.startswith("RUNG3") for mark in hit.taint.steps
    }
    kept: list[Hit] = []
    seen: set[tuple[object, ...]] = set()
    for hit in hits:
        named = hit.rule.startswith("RUNG3")
        key = (hit.taint.key, hit.message) if named else (hit.rule, hit.span)
        if key not in seen and not (named and (hit.taint.key, hit.span) in passed):
            seen.add(key)
            kept.append(hit)
    return kept


_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


def _annotation_parts(annotation: ast.expr) -> Iterable[ast.expr]:
    """The names in an annotation, outermost first; quoted annotations are parsed."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except (SyntaxError, ValueError, RecursionError):
            return
    for part in ast.walk(annotation):
        if isinstance(part, ast.Name) or (isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name)):
            yield part


def _message_of(node: ast.expr) -> ast.expr | None:
    """The `m` of `m["role"]`, `m.role`, `m.type`, `m.get("role")`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        first = node.args[0] if node.args else None
        return node.func.value if isinstance(first, ast.Constant) and first.value in ("role", "type") else None
    if isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Constant):
        return node.value if node.slice.value in ("role", "type") else None
    if isinstance(node, ast.Attribute):
        return node.value if node.attr in ("role", "type") else None
    return None


def _fixed(node: ast.expr) -> bool:
    """A collection that is fixed in the source: a literal, or a constant by its name."""
    if isinstance(node, (ast.Set, ast.List, ast.Tuple)):
        return all(isinstance(part, ast.Constant) for part in node.elts)
    name = path_of(node).rpartition(".")[2]
    return isinstance(node, (ast.Name, ast.Attribute)) and name.isupper()


def _as_load(target: ast.Name | ast.Attribute | ast.Subscript) -> ast.expr:
    return target


def _joined(node: ast.AugAssign) -> ast.expr:
    """An expression with the place of an augmented assignment, for reporting it as one construct."""
    return ast.copy_location(ast.Name(id="", ctx=ast.Load()), node)
