"""mypy and pyright find the errors that the files of this folder mark, and no others.

A file here is never run, only checked, by each checker in its strict mode. A line that a checker must reject
ends in `# expect-error: mypy`, `# expect-error: pyright` or `# expect-error: mypy, pyright`; every other line
must pass both. A part of the public face gets a file of its own name; a new file is taken up by being here.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
FILES = sorted(path for path in HERE.glob("*.py") if not path.name.startswith(("test_", "__")))

_EXPECTED = re.compile(r"# expect-error: ([a-z, ]+)$")

Places = set[tuple[str, int]]


def expected(checker: str) -> Places:
    """The places that the files mark for a checker."""
    return {
        (path.name, number)
        for path in FILES
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if (mark := _EXPECTED.search(line)) and checker in mark[1].split(", ")
    }


def by_mypy() -> Places:
    names = [str(path) for path in FILES]
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--no-pretty",
        "--hide-error-context",
    ]
    told = subprocess.run([*command, *names], cwd=ROOT, capture_output=True, text=True, check=False)
    found = re.findall(r"^(.+?):(\d+): error: ", told.stdout, re.MULTILINE)
    assert told.returncode == (1 if found else 0), told.stdout + told.stderr
    places = {(Path(name), int(line)) for name, line in found}
    return {(path.name, line) for path, line in places if (ROOT / path).parent == HERE}


def by_pyright() -> Places:
    command = [sys.executable, "-m", "pyright", "--outputjson"]
    told = subprocess.run([*command, *map(str, FILES)], cwd=ROOT, capture_output=True, text=True, check=False)
    report = json.loads(told.stdout)
    return {
        (Path(each["file"]).name, each["range"]["start"]["line"] + 1)
        for each in report["generalDiagnostics"]
        if each["severity"] == "error"
    }


CHECKERS = {"mypy": by_mypy, "pyright": by_pyright}


@pytest.mark.parametrize("checker", CHECKERS)
def test_a_checker_rejects_what_is_marked_and_nothing_else(checker: str) -> None:
    found, wanted = CHECKERS[checker](), expected(checker)
    assert FILES
    assert wanted
    assert sorted(found - wanted) == [], "rejected, but not marked"
    assert sorted(wanted - found) == [], "marked, but accepted"
