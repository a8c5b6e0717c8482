"""The real command line, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SUPPORT = ROOT / "examples" / "support" / "rung.toml"
COMMAND = [sys.executable, "-W", "error", "-m", "rung"]


def rung(
    *words: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run `rung` with these words; standard output and error are pipes, never a terminal."""
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
