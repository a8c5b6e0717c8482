"""Every example runs: the Python of README and docs, the TOML, the commands, and the doctests of the source.

The blocks of one page run in order, in one namespace, in an empty folder; a page may await at its top level.
A block ```` ```toml policy ```` is a whole policy, ```` ```toml config ```` a whole rung.toml; every other one is TOML.
"""

from __future__ import annotations

import ast
import asyncio
import doctest
import inspect
import re
import shlex
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from types import CodeType, FunctionType, ModuleType
from typing import Any, NamedTuple

import pytest
import typer.main

from rung.cli.app import app
from rung.config import load_configuration
from rung.policy.load import policy_from

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```([a-z]+)(?: ([a-z]+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Block(NamedTuple):
    page: Path
    line: int
    language: str
    kind: str
    text: str


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page, text.count("\n", 0, found.start(3)) + 1, found[1], found[2] or "", found[3])
        for found in _FENCE.finditer(text)
    ]


def named(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def compiled(block: Block) -> CodeType:
    """The block's code, with the line numbers of its page in tracebacks."""
    code: CodeType = compile(
        "\n" * (block.line - 1) + block.text, str(block.page), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    )
    return code


def run_page(python: list[Block], module: ModuleType) -> None:
    with asyncio.Runner() as loop:
        for block in python:
            code = compiled(block)
            if code.co_flags & inspect.CO_COROUTINE:
                loop.run(FunctionType(code, vars(module))())
            else:
                exec(code, vars(module))


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_examples_of_a_page_run_from_top_to_bottom(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    python = [block for block in blocks(page) if block.language == "python"]
    assert all(block.kind == "" for block in python), "every Python block runs; none is marked"
    module = ModuleType("rung_page")
    monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.chdir(tmp_path)
    run_page(python, module)


@pytest.mark.parametrize("page", PAGES, ids=named)
def test_the_settings_of_a_page_are_valid(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language != "toml":
            continue
        tables = tomllib.loads(block.text)
        if block.kind == "policy":
            policy_from(tables, origin=f"{page.name}:{block.line}")
        elif block.kind == "config":
            for source in tables.get("sources", {}).values():
                if "path" in source:
                    (tmp_path / source["path"]).mkdir(parents=True, exist_ok=True)
            (tmp_path / "rung.toml").write_text(block.text, encoding="utf-8")
            load_configuration(tmp_path / "rung.toml")


# commands


def commands() -> Iterator[tuple[str, str]]:
    for page in PAGES:
        for block in blocks(page):
            if block.language == "console":
                for line in block.text.splitlines():
                    if line.startswith("$ "):
                        yield f"{named(page)}:{line[2:40]}", line[2:]


def targets() -> set[str]:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):(?!=)", makefile, re.MULTILINE))


def check_rung(words: list[str]) -> None:
    """A command line of `rung` names a command that is there, with options that it has."""
    command: Any = typer.main.get_command(app)
    while words and words[0] in getattr(command, "commands", {}):
        command = command.commands[words.pop(0)]
    assert not hasattr(command, "commands") or words == ["--version"], f"no such command: {words[:1]}"
    known = {option for param in command.params for option in (*param.opts, *param.secondary_opts)} | {"--help"}
    wrong = [word for word in words if word.startswith("-") and word.partition("=")[0] not in known]
    assert wrong == [], f"{command.name} has no {wrong}"


@pytest.mark.parametrize("line", [pytest.param(line, id=name) for name, line in commands()])
def test_a_command_of_a_page_exists(line: str) -> None:
    words = shlex.split(line.partition(" #")[0])
    if words[0] == "make":
        assert {word for word in words[1:] if "=" not in word} <= targets()
    elif words[0] == "rung" or words[0].endswith("/rung"):
        check_rung(words[1:])
    else:
        assert words[0] in ("git", "cd", "pip", "psql"), f"`{words[0]}` is not a command that a reader has"


# the source's own examples


def modules_with_examples() -> list[str]:
    return [
        ".".join(path.relative_to(ROOT / "src").with_suffix("").parts).removesuffix(".__init__")
        for path in sorted((ROOT / "src" / "rung").rglob("*.py"))
        if ">>> " in path.read_text(encoding="utf-8")
    ]


@pytest.mark.parametrize("module", modules_with_examples())
def test_the_examples_of_a_docstring_hold(module: str) -> None:
    result = doctest.testmod(import_module(module), optionflags=doctest.ELLIPSIS)
    assert result.attempted > 0
    assert result.failed == 0


def test_links_between_pages_lead_somewhere() -> None:
    broken = [
        f"{named(page)}: {link}"
        for page in PAGES
        for link in re.findall(r"\]\((?!https?:|#|mailto:)([^)#\s]+)", page.read_text(encoding="utf-8"))
        if not (page.parent / link).exists()
    ]
    assert broken == []
