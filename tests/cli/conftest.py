from __future__ import annotations

from pathlib import Path

import pytest

from .running import rung


@pytest.fixture(scope="session")
def started(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder as `rung init` leaves it. Not to be changed: see `project`."""
    folder = tmp_path_factory.mktemp("started")
    assert rung("init", folder).returncode == 0
    return folder


@pytest.fixture
def project(started: Path, tmp_path: Path) -> Path:
    """A copy of it, to be changed."""
    for path in started.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(started)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    return tmp_path
