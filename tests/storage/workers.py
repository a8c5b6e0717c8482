"""What other processes do in the tests: they write in bursts, side by side, or are killed while they write."""

from __future__ import annotations

import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from multiprocessing import forkserver
from typing import Any

from rung.ledger.backend import Backend, Document, LogEntry
from rung.storage import open_backend
from rung.testing.backend_contract import NOW, TYPES, make_item, row

Address = tuple[str, dict[str, Any]]
"""What `open_backend` takes, beside the types."""

processes = multiprocessing.get_context("forkserver")
"""Forks from a process that has imported this module and opened nothing: a start takes milliseconds."""


def start_server() -> None:
    """Start the process that the others are forked from, once. Only the tests call it, no import does."""
    # It imports what it is told to before it learns where to look for it, except in the environment.
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join(path for path in sys.path if path)
    try:
        processes.set_forkserver_preload([__name__, "rung.storage.sqlite", "rung.storage.postgres"])
        forkserver.ensure_running()
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


def opened(address: Address) -> Backend:
    """The backend at an address."""
    where, options = address
    return open_backend(where, TYPES, **options)


def write_whole(backend: Backend, name: str) -> None:
    """One write that touches every kind of row: three items of a session, a document and a log entry."""
    with backend.write("a") as tx:
        first = tx.next_seq("s", 3)
        tx.insert(
            [
                row(
                    make_item(
                        f"{name}-{place}",
                        f"text of {name}",
                        session="s",
                        seq=first + place,
                        derived_from=() if place == 0 else (f"{name}-0",),
                    ),
                    content=name[:16],
                    identity=f"{name}-{place}",
                )
                for place in range(3)
            ]
        )
        tx.put(Document(kind="turn", id=name, session="s", body="{}"), expected=0)
        tx.log([LogEntry(at=NOW, kind="turn", body=name)])


def write_until_killed(address: Address, burst: int, acknowledged: Any) -> None:
    """Write, and say after each write that it has ended; never stop."""
    backend = opened(address)
    for number in range(1_000_000):
        name = f"{burst}-{number}"
        write_whole(backend, name)
        acknowledged.send_bytes(name.encode())


def write_for(address: Address, worker: int, seconds: float, done: Any) -> None:
    """Write for so long, each time one thing that is this worker's own and one that all of them register."""
    backend = opened(address)
    names: list[str] = []
    shared: list[str] = []
    end = time.monotonic() + seconds
    number = 0
    while time.monotonic() < end:
        name = f"{worker}-{number}"
        write_whole(backend, name)
        names.append(name)
        with backend.write("a", exclusive=number % 10 == 0) as tx:
            shared += tx.insert([row(make_item(f"shared-{name}"), "shared", f"shared-{number}")])
        number += 1
    backend.close()
    done.put((names, shared))


def register_at_once(address: Address, worker: int, start: Any, done: Any) -> None:
    """Register the same things as every other worker, at the same moment."""
    backend = opened(address)
    ids: list[str] = []
    for number in range(20):
        start.wait()
        with backend.write("a", exclusive=number % 2 == 0) as tx:
            ids += tx.insert([row(make_item(f"{worker}-{number}"), f"c{number}", f"same-{number}")])
    backend.close()
    done.put(ids)


def write_after_a_fork(address: Address, done: Any) -> None:
    """Open, fork, and write in both processes."""
    backend = opened(address)
    write_whole(backend, "before")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            write_whole(backend, "child")
            code = 0 if len(backend.session_items("s", ("a",))) >= 6 else 2
        finally:
            os._exit(code)
    write_whole(backend, "parent")
    _, status = os.waitpid(child, 0)
    found = [item.id for item in backend.session_items("s", ("a",))]
    backend.close()
    done.put((os.waitstatus_to_exitcode(status), found))


def write_small(address: Address, worker: int, count: int, done: Any) -> None:
    """Write so many single items to one session."""
    backend = opened(address)
    for number in range(count):
        with backend.write("a") as tx:
            seq = tx.next_seq("s", 1)
            tx.insert([row(make_item(f"{worker}-{number}", session="s", seq=seq))])
    backend.close()
    done.put(count)


def together(target: Callable[..., None], arguments: list[tuple[Any, ...]]) -> list[Any]:
    """Run a worker per tuple of arguments at once; what each of them put."""
    done = processes.Queue()
    workers = [processes.Process(target=target, args=(*given, done)) for given in arguments]
    for worker in workers:
        worker.start()
    results = [done.get(timeout=30) for _ in workers]
    for worker in workers:
        worker.join()
    assert [worker.exitcode for worker in workers] == [0] * len(workers)
    return results
