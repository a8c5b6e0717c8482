"""Several processes share one ledger, and some of them are killed."""

from __future__ import annotations

import random
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from rung.ledger.backend import Backend
from rung.storage.chain import broken_links

from .postgres_server import PostgresServer
from .workers import (
    Address,
    opened,
    processes,
    register_at_once,
    start_server,
    together,
    write_for,
    write_until_killed,
)

BURSTS = 100


@pytest.fixture(params=("sqlite", "postgres"))
def address(request: pytest.FixtureRequest, tmp_path: Path) -> Address:
    """Where several processes find one ledger."""
    start_server()
    if request.param == "sqlite":
        return str(tmp_path / "store.db"), {}
    server: PostgresServer = request.getfixturevalue("postgres")
    return server.uri, {"schema": server.new_schema(), "connections": 4}


def _require_whole(backend: Backend, acknowledged: set[str]) -> None:
    """Nothing acknowledged is lost, and what is there is there as a whole."""
    documents = {document.id for document in backend.documents("turn", ("a",))}
    assert acknowledged <= documents
    logged = [entry.body for entry in backend.logged(("a",))]
    assert sorted(logged) == sorted(documents)
    places = Counter(item.id.rpartition("-")[0] for item in backend.session_items("s", ("a",)))
    assert places == dict.fromkeys(documents, 3)
    children = backend.children([f"{name}-0" for name in documents], ("a",))
    assert {parent: len(found) for parent, found in children.items()} == {f"{name}-0": 2 for name in documents}
    assert [item.seq for item in backend.session_items("s", ("a",))] == list(range(1, 3 * len(documents) + 1))
    assert broken_links(backend.logged(("a",))) == []
    assert {audited.problem for audited in backend.audit(("a",))} <= {None}


def test_killed_writers_lose_nothing_and_leave_nothing_half_done(address: Address) -> None:
    """Writers are killed at random moments of their bursts, four side by side; the next ones go on."""
    chance = random.Random(11)
    opened(address).close()
    acknowledged: set[str] = set()
    for wave in range(BURSTS // 4):
        writers = [_writer(address, 4 * wave + place) for place in range(4)]
        for _, reading in writers:
            acknowledged.add(reading.recv_bytes().decode())
        for worker, _ in chance.sample(writers, 4):
            time.sleep(chance.random() * 0.008)
            worker.kill()
        for worker, reading in writers:
            with suppress(EOFError, ConnectionResetError):
                while True:
                    acknowledged.add(reading.recv_bytes().decode())
            worker.join()
            reading.close()
        if wave % 5 == 4:
            backend = opened(address)
            _require_whole(backend, acknowledged)
            backend.close()
    assert len(acknowledged) >= BURSTS


def _writer(address: Address, burst: int) -> tuple[Any, Any]:
    reading, writing = processes.Pipe(duplex=False)
    worker = processes.Process(target=write_until_killed, args=(address, burst, writing))
    worker.start()
    writing.close()
    return worker, reading


def test_eight_processes_write_side_by_side(address: Address) -> None:
    """No item is lost or doubled, and none of the writers meets an error of the database."""
    results = together(write_for, [(address, worker, 1.5) for worker in range(8)])
    backend = opened(address)
    names = {name for written, _ in results for name in written}
    _require_whole(backend, names)
    assert len(list(backend.documents("turn", ("a",)))) == len(names)
    for number in range(max(len(shared) for _, shared in results)):
        told = {shared[number] for _, shared in results if number < len(shared)}
        assert len(told) == 1
        assert list(backend.get(list(told), ("a",))) == list(told)
    registered = {item_id for _, shared in results for item_id in shared}
    stored = [item.id for item in backend.items(("a",)) if item.id.startswith("shared-")]
    assert sorted(stored) == sorted(registered)
    backend.close()


def test_the_first_registration_wins_between_processes(address: Address) -> None:
    """Of four processes that register one thing at once, one writes it, and all are told the same id."""
    start = processes.Barrier(4)
    results = together(register_at_once, [(address, worker, start) for worker in range(4)])
    assert [len(set(told)) for told in zip(*results, strict=True)] == [1] * 20
    backend = opened(address)
    assert sorted(item.id for item in backend.items(("a",))) == sorted(results[0])
    backend.close()


def test_a_new_ledger_is_made_once_by_processes_that_open_it_at_once(address: Address) -> None:
    """Making the tables is no race: each of six processes opens, writes and closes."""
    results = together(write_for, [(address, worker, 0.0) for worker in range(6)])
    assert results == [([], [])] * 6
