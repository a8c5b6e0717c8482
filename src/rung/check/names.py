"""Dotted paths of expressions, what imports they stand for, and the tables compiled for matching them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable
from fnmatch import translate
from functools import lru_cache

from rung.check.config import CheckConfig
from rung.check.tables import CARRIERS, DECORATOR_SINKS, SANITIZERS, SINKS, SOURCES, Sink, Source

MOST_PARTS = 40
"""A longer chain of attributes and calls keeps its last parts only."""


def path_of(node: ast.expr) -> str:
    """The dotted path of an expression, calls as `()`, subscripts as `[]`, anything else as `?`."""
    parts: list[str] = []
    current = node
    while len(parts) < MOST_PARTS:
        if isinstance(current, ast.Attribute):
            parts.append("." + current.attr)
            current = current.value
        elif isinstance(current, ast.Call):
            parts.append("()")
            current = current.func
        elif isinstance(current, ast.Subscript):
            parts.append("[]")
            current = current.value
        elif isinstance(current, ast.Await):
            current = current.value
        elif isinstance(current, ast.Name):
            parts.append(current.id)
            break
        else:
            parts.append("?")
            break
    return "".join(reversed(parts))


def root_of(path: str) -> tuple[str, str]:
    """The first name of a path and the rest."""
    match = re.match(r"[^.(\[]+", path)
    end = match.end() if match else 0
    return path[:end], path[end:]


def collect_imports(nodes: Iterable[ast.AST]) -> dict[str, str]:
    """What each imported name stands for, over a whole file (imports inside functions too)."""
    found: dict[str, str] = {}
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname:
                    found[alias.asname] = alias.name
                else:
                    root = alias.name.split(".")[0]
                    found[root] = root
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                if alias.name != "*":
                    found[alias.asname or alias.name] = f"{node.module or ''}.{alias.name}".lstrip(".")
    return found


def class_of(path: str) -> str:
    """The class that a call constructs, by its capital letter: `a.Client.from_env` → `a.Client`."""
    parts = path.split(".")
    for place in range(len(parts) - 1, max(len(parts) - 3, -1), -1):
        name = parts[place].lstrip("_")
        if name[:1].isupper() and not name.isupper() and name.isidentifier():
            return ".".join(parts[: place + 1])
    return ""


class Globs:
    """Some glob patterns as one expression, with the answers kept: paths repeat a lot."""

    def __init__(self, patterns: Iterable[str]) -> None:
        parts = [translate(pattern.lower().replace("[]", "[[]]")) for pattern in patterns]
        self._expression = re.compile("|".join(parts)) if parts else None
        self._known: dict[str, bool] = {}

    def __call__(self, path: str) -> bool:
        known = self._known.get(path)
        if known is None:
            known = self._expression is not None and self._expression.match(path) is not None
            self._known[path] = known
        return known


class Tables:
    """The built-in tables and a configuration's additions, compiled."""

    def __init__(self, config: CheckConfig) -> None:
        sources = (*SOURCES, *config.sources)
        # A configured source comes first, so that it may reclassify a built-in one.
        kinds = list(dict.fromkeys(source.kind for source in (*config.sources, *SOURCES)))
        self.calls = self._by_kind(kinds, sources, "call")
        self.attributes = self._by_kind(kinds, sources, "attribute")
        self.annotations = self._by_kind(kinds, sources, "annotation")
        self.decorators = self._by_kind(kinds, sources, "decorator")
        self.sanitizers = Globs((*SANITIZERS, *config.sanitizers))
        self.carriers = Globs((*CARRIERS, *config.carriers))
        self.instruction_decorators = Globs(DECORATOR_SINKS)
        self.by_argument: dict[str, list[tuple[Globs, Sink]]] = {}
        self.by_position: list[tuple[Globs, Sink]] = []
        for sink in (*SINKS, *config.sinks):
            globs = Globs((sink.call,))
            if sink.argument:
                self.by_argument.setdefault(sink.argument, []).append((globs, sink))
            if sink.position is not None:
                self.by_position.append((globs, sink))
        self.any_position = Globs(sink.call for _, sink in self.by_position)

    @staticmethod
    def _by_kind(kinds: list[str], sources: Iterable[Source], field: str) -> list[tuple[str, Globs]]:
        found: list[tuple[str, Globs]] = []
        for name in kinds:
            patterns = [getattr(source, field) for source in sources if source.kind == name]
            if any(patterns):
                found.append((name, Globs(pattern for pattern in patterns if pattern)))
        return found


def kind_of(table: list[tuple[str, Globs]], paths: Iterable[str]) -> str:
    """The source kind whose patterns match one of the paths, or an empty string."""
    tried = tuple(paths)
    for name, globs in table:
        if any(globs(path) for path in tried):
            return name
    return ""


@lru_cache(maxsize=8)
def tables_for(config: CheckConfig) -> Tables:
    """The compiled tables of a configuration."""
    return Tables(config)
