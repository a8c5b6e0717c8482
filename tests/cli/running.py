"""The command line: in this process, and, where a process is the point, in one of its own."""

from __future__ import annotations

import contextlib
import io
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import pytest

from rung.cli import main

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "examples" / "support" / "rung.toml"
COMMAND = [sys.executable, "-W", "error", "-m", "rung"]


def rung(*words: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    """Run `rung` with these words in this process; standard output and error are no terminal."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    given = list(map(str, words))
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        contextlib.chdir(cwd or Path.cwd()),
        mock.patch.object(sys, "argv", ["rung", *given]),
        pytest.raises(SystemExit) as ended,
    ):
        main()
    code = ended.value.code
    assert isinstance(code, int)
    return subprocess.CompletedProcess(given, code, written(out), written(err))


def written(stream: io.TextIOWrapper) -> str:
    stream.flush()
    buffer = stream.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def process(
    *words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `rung` with these words in a process of its own; standard output and error are pipes."""
    return subprocess.run(
        [*COMMAND, *map(str, words)],
        cwd=cwd,
        env={**os.environ, **(env or {})},
        capture_output=True,
        text=True,
        encoding="utf-8",
        check=False,
        timeout=120,
    )


def one_line(told: str) -> str:
    """The one line on standard error; fails where there are more, or a traceback."""
    lines = told.splitlines()
    assert len(lines) == 1, told
    assert lines[0].startswith(("rung: ", "rung check: ")), told
    return lines[0]


def said(run: subprocess.CompletedProcess[str]) -> str:
    """The one line that a run says on standard error."""
    return one_line(run.stderr)
