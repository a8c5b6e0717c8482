"""The backends under test. PostgreSQL is a real server; where none can be started, the tests fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from rung.ledger.backend import Backend
from rung.storage.memory import MemoryBackend
from rung.storage.postgres import PostgresBackend
from rung.storage.sqlite import SqliteBackend
from rung.testing.backend_contract import TYPES, OpenHandle

from .postgres_server import PostgresServer

BACKENDS = ("memory", "sqlite", "postgres")


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """One server for all tests; a store gets a schema of its own."""
    with PostgresServer() as server:
        yield server


def _opener(kind: str, folder: Path, request: pytest.FixtureRequest) -> OpenHandle:
    if kind == "memory":
        shared: dict[float, Backend] = {}

        def open_memory(*, busy_timeout: float = 30.0) -> Backend:
            return shared.setdefault(busy_timeout, MemoryBackend(TYPES, busy_timeout=busy_timeout))

        return open_memory

    if kind == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        schema = server.new_schema()

        def open_postgres(*, busy_timeout: float = 30.0) -> Backend:
            return PostgresBackend(
                server.uri, TYPES, schema=schema, busy_timeout=busy_timeout, connections=6, event_ttl=0.5
            )

        return open_postgres

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
