"""The backends under test. PostgreSQL is a real server; where none can be started, the tests fail."""

from __future__ import annotations

from pathlib import Path

import pytest

from rung.ledger.backend import Backend
from rung.storage.memory import MemoryBackend
from rung.storage.sqlite import SqliteBackend
from rung.testing.backend_contract import TYPES, OpenHandle

BACKENDS = ("memory", "sqlite")


def _opener(kind: str, folder: Path, request: pytest.FixtureRequest) -> OpenHandle:
    if kind == "memory":
        shared: dict[float, Backend] = {}

        def open_memory(*, busy_timeout: float = 30.0) -> Backend:
            return shared.setdefault(busy_timeout, MemoryBackend(TYPES, busy_timeout=busy_timeout))

        return open_memory

    def open_sqlite(*, busy_timeout: float = 30.0) -> Backend:
        return SqliteBackend(folder / "store.db", TYPES, busy_timeout=busy_timeout, synchronous="NORMAL")

    return open_sqlite


@pytest.fixture(params=BACKENDS)
def open_handle(request: pytest.FixtureRequest, tmp_path: Path) -> OpenHandle:
    """Opens handles on one fresh storage."""
    return _opener(request.param, tmp_path, request)


@pytest.fixture
def open_other(request: pytest.FixtureRequest, tmp_path: Path) -> OpenHandle:
    """Opens handles on another fresh storage of the same kind."""
    kind = request.node.callspec.params["open_handle"]
    (tmp_path / "other").mkdir()
    return _opener(kind, tmp_path / "other", request)
