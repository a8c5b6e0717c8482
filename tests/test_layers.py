"""Imports run one way, and a package that not everybody has is imported only where it is needed.

The source is read as syntax trees; nothing is imported. An import inside a function counts like any other, so
that a cycle cannot hide in one; an import for the type checker alone (`if TYPE_CHECKING`) does not run and is free.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "rung"

LAYERS: tuple[frozenset[str], ...] = (
    frozenset({"errors"}),
    frozenset({"records"}),
    frozenset({"policy", "tokens"}),
    frozenset({"ledger"}),
    frozenset({"assembly", "sources", "storage", "transforms"}),
    frozenset({"compiler"}),
    frozenset({"store"}),
    frozenset({"gather"}),
    frozenset({"knowledge"}),
    frozenset({"memory", "models", "summary", "tools"}),
    frozenset({"config"}),
    frozenset({"engine"}),
    frozenset({"check", "inspector", "integrations", "observe", "testing", "wire"}),
    frozenset({"cli"}),
    frozenset({"__main__"}),
)
"""From left to right. A part imports from layers before its own; parts of one layer do not know each other."""

RANK = {part: rank for rank, layer in enumerate(LAYERS) for part in layer}

ANYWHERE = frozenset({"msgspec"})
"""Imported by every part: small, quick to load, always installed."""

OWN_MODULES = {
    "jsonschema": ("rung.transforms.validators",),
    "libcst": ("rung.check.downlevel",),
    "markdown_it": ("rung.knowledge.markdown",),
    "numpy": ("rung.ledger.fingerprint",),
    "psycopg": ("rung.storage.postgres",),
    "psycopg_pool": ("rung.storage.postgres",),
    "typer": ("rung.cli.app",),
}
"""Packages that these modules import on loading; everywhere else the import stands inside a function."""


class Import(NamedTuple):
    """One import statement: who, what, where; whether it runs on loading, later, or never."""

    module: str
    name: str
    line: int
    when: str


def modules() -> Iterator[tuple[str, Path]]:
    for path in sorted(SOURCE.rglob("*.py")):
        parts = path.relative_to(SOURCE.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports_of(module: str, tree: ast.AST, *, is_package: bool) -> Iterator[Import]:
    package = module if is_package else module.rpartition(".")[0]

    def walk(node: ast.AST, when: str) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inner = when
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) and when == "loading":
                inner = "later"
            if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.dump(child.test):
                inner = "never"
            if isinstance(child, ast.Import):
                for alias in child.names:
                    yield Import(module, alias.name, child.lineno, inner)
            elif isinstance(child, ast.ImportFrom):
                base = child.module or ""
                if child.level:
                    above = package.split(".")[: len(package.split(".")) - child.level + 1]
                    base = ".".join([*above, *([child.module] if child.module else [])])
                # `from rung import store` names a part; from anywhere else the module alone tells the part.
                wanted = [f"rung.{alias.name}" for alias in child.names] if base == "rung" else [base]
                for name in wanted:
                    yield Import(module, name, child.lineno, inner)
            else:
                yield from walk(child, inner)

    return walk(tree, "loading")


def all_imports() -> list[Import]:
    return [
        found
        for module, path in modules()
        for found in imports_of(
            module, ast.parse(path.read_text(encoding="utf-8"), str(path)), is_package=path.name == "__init__.py"
        )
    ]


def part(module: str) -> str:
    pieces = module.split(".")
    return pieces[1] if len(pieces) > 1 else ""


IMPORTS = all_imports()


def wrong_way(found: list[Import]) -> list[str]:
    """The imports that run against the order, each as a line that says so."""
    wrong: list[str] = []
    for each in found:
        here, there = part(each.module), part(each.name)
        if not each.name.startswith("rung.") or here == there or each.when == "never":
            continue
        if here == "":
            wrong.append(f"{each.module}:{each.line} loads {each.name}: the package's face holds no import that runs")
        elif RANK[there] >= RANK[here]:
            wrong.append(f"{each.module}:{each.line} imports {each.name}: {here} stands before or beside {there}")
    return wrong


def test_every_part_has_a_place_in_the_order() -> None:
    parts = {part(module) for module, _ in modules()} - {""}
    assert parts <= set(RANK), f"give a place in LAYERS and in docs/architecture.md to {sorted(parts - set(RANK))}"


def test_imports_run_one_way() -> None:
    assert wrong_way(IMPORTS) == []


def test_every_import_of_rung_names_a_module_that_is_there() -> None:
    known = {module for module, _ in modules()}
    missing = [each for each in IMPORTS if each.name.startswith("rung.") and each.name not in known]
    assert missing == []


def test_optional_packages_load_only_where_they_are_needed() -> None:
    wrong = [
        f"{each.module}:{each.line} loads {each.name}"
        for each in IMPORTS
        if each.when == "loading"
        and (top := each.name.partition(".")[0]) not in sys.stdlib_module_names | ANYWHERE | {"rung", "__future__"}
        and not each.module.startswith(OWN_MODULES.get(top, ("?",)))
    ]
    assert wrong == [], "import it inside the function that needs it"


@pytest.mark.parametrize(
    ("module", "code", "is_wrong"),
    [
        ("rung.records.item", "from rung.ledger.ledger import Ledger", True),
        ("rung.records.item", "def f():\n    import rung.store", True),
        ("rung.records.item", "if TYPE_CHECKING:\n    from rung.store import ContextStore", False),
        ("rung.sources.simple", "from rung.assembly.messages import Prompt", True),
        ("rung.sources.simple", "from ..records import item", False),
        ("rung.sources.simple", "from .protocol import Fetch", False),
        ("rung.models.openai", "from rung.observe import spans", True),
        ("rung.cli.app", "from rung import models, check", False),
        ("rung.records.item", "from .. import store", True),
    ],
)
def test_the_scan_sees(module: str, code: str, is_wrong: bool) -> None:
    found = list(imports_of(module, ast.parse(code), is_package=False))
    assert bool(wrong_way(found)) is is_wrong


def test_the_document_draws_the_same_order() -> None:
    drawn = " → ".join(
        next(iter(layer)) if len(layer) == 1 else "{" + ", ".join(sorted(layer)) + "}" for layer in LAYERS[:-1]
    )
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    assert drawn in " ".join(text.split()), drawn
