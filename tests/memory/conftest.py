"""A store with a clock that the test moves, in memory and on a SQLite file."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from rung import ContextStore


class Clock:
    def __init__(self) -> None:
        self.now = datetime(2026, 8, 19, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_(self, **given: float) -> None:
        self.now += timedelta(**given)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path, clock: Clock) -> Iterator[ContextStore]:
    where = ":memory:" if request.param == "memory" else tmp_path / "agent.db"
    with ContextStore.open(where, clock=clock) as opened:
        yield opened
