"""Where a knowledge base may be kept. PostgreSQL is a real server; where none can be started, the tests fail."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rung.knowledge import KnowledgeBase
from storage.postgres_server import PostgresServer

OpenBase = Callable[..., KnowledgeBase]


@pytest.fixture(scope="session")
def knowledge_server() -> Iterator[PostgresServer]:
    """One server for all tests; a base gets a schema of its own."""
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["sqlite", "postgres"])
def open_base(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[OpenBase]:
    """Opens handles on one fresh base."""
    opened: list[KnowledgeBase] = []
    place: dict[str, Any] = {"path": tmp_path / "kb.db"}
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("knowledge_server")
        place = {"path": server.uri, "schema": server.new_schema()}

    def open_one(**options: Any) -> KnowledgeBase:
        opened.append(KnowledgeBase.open(**place, **options))
        return opened[-1]

    yield open_one
    for base in opened:
        base.close()
