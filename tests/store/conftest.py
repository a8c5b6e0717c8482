"""Stores that every test of this folder runs on: in memory, and on a SQLite file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rung import ContextStore

Opener = Callable[..., ContextStore]


@pytest.fixture(params=["memory", "sqlite"])
def open_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens a store; called again, it opens the same storage anew where that survives (SQLite)."""
    opened: list[ContextStore] = []

    def opener(**options: Any) -> ContextStore:
        where = ":memory:" if request.param == "memory" else tmp_path / "agent.db"
        store = ContextStore.open(where, **options)
        opened.append(store)
        return store

    yield opener
    for store in opened:
        store.close()


@pytest.fixture
def store(open_store: Opener) -> ContextStore:
    return open_store()
