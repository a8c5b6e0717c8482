"""The guarantee between threads, after a restart, between processes and on PostgreSQL: either the instruction was
first, or it is refused."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from tests.storage.postgres_server import PostgresServer
from tests.storage.workers import processes, start_server

from rung import ContextItem, ContextStore, ContextTypeError, Instruction, LaunderingError, ToolOutput
from rung.ledger.reach import Reach
from rung.storage import open_backend
from rung.store import core

from .conftest import PASSAGE

TENANT = "acme"
THREADS, ROUNDS = 32, 3

Opener = Callable[[], ContextStore]


def said(place: str) -> str:
    """A text of at least N characters that no other place shares a run of N with."""
    return f"At {place}, {place} is told that {place} must send {place} and {place} to the coat of {place}."


def word(number: int) -> str:
    """A word for a number."""
    return "".join("abcdefghkp"[int(digit)] * 2 for digit in f"{number:04d}")


def tell(store: ContextStore, text: str) -> str:
    return store.add(ToolOutput, f"Result: {text} (end)", source="tool:web").id


def launder(store: ContextStore, text: Any) -> str | None:
    try:
        return store.instruct(f"Always: {text}").id
    except LaunderingError:
        return None


def ordered(store: ContextStore) -> dict[str, int]:
    """Of each item its place in the order of writing."""
    backend = core(store)[0].backend
    return {row.item.id: row.ordinal for row in backend.rows(Reach(tenant=store.tenant).tenants)}


def require(store: ContextStore, told: dict[str, str], taken: dict[str, str | None]) -> None:
    """Whatever was taken stood before the result that says the same."""
    places = ordered(store)
    assert set(told) == set(taken)
    for text, instruction in taken.items():
        assert instruction is None or places[instruction] < places[told[text]]
        # And from now on it is refused, if it was not the first.
        assert (launder(store, text) is None) == (instruction is None)


@pytest.fixture(scope="module")
def postgres() -> Iterator[PostgresServer]:
    with PostgresServer() as server:
        yield server


@pytest.fixture(params=["memory", "sqlite", "postgres"])
def opener(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Opener]:
    """Opens handles on one storage, each with an index of its own."""
    opened: list[ContextStore] = []
    backend: Any = None
    options: dict[str, Any] = {}
    where: Any = ":memory:" if request.param == "memory" else tmp_path / "agent.db"
    if request.param == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        where, options = server.uri, {"schema": server.new_schema(), "connections": 8}

    def open_one() -> ContextStore:
        nonlocal backend
        from rung.records.types import BUILTIN_TYPES

        types = {kind.name: kind for kind in BUILTIN_TYPES}
        if request.param != "memory" or backend is None:
            backend = open_backend(where, types, **options)
        store = ContextStore(backend=backend)
        opened.append(store)
        return store.scope(tenant=TENANT)

    yield open_one
    for store in opened:
        store.close()


def test_threads_that_tell_and_threads_that_launder(opener: Opener) -> None:
    stores = [opener(), opener()]
    texts = [said(word(number)) for number in range(THREADS * ROUNDS)]
    start = threading.Barrier(THREADS)

    def work(number: int) -> list[tuple[str, str, str | None]]:
        mine = texts[number * ROUNDS : (number + 1) * ROUNDS]
        others = texts[-(number + 1) * ROUNDS :][:ROUNDS]
        start.wait()
        # Half of the threads tell first, half launder first; each text is laundered by one and told by another.
        if number % 2:
            told = [tell(stores[number % 2], text) for text in mine]
            taken = [launder(stores[(number + 1) % 2], text) for text in others]
        else:
            taken = [launder(stores[number % 2], text) for text in others]
            told = [tell(stores[(number + 1) % 2], text) for text in mine]
        return [("told", text, made) for text, made in zip(mine, told, strict=True)] + [
            ("taken", text, made) for text, made in zip(others, taken, strict=True)
        ]

    with ThreadPoolExecutor(THREADS) as pool:
        done = [entry for entries in pool.map(work, range(THREADS)) for entry in entries]
    told = {text: str(made) for kind, text, made in done if kind == "told"}
    require(stores[0], told, {text: made for kind, text, made in done if kind == "taken"})
    for text, made in ((text, made) for kind, text, made in done if kind == "taken"):
        # The other index comes to the same answer.
        assert (launder(stores[1], text) is None) == (made is None)


def test_many_items_of_many_threads_are_all_compared(opener: Opener) -> None:
    store, other = opener(), opener()
    launder(store, said("yyyyyyyy"))

    def work(number: int) -> None:
        for round_ in range(4):
            tell(store if round_ % 2 else other, said(word(1_000 + number * 4 + round_)))

    with ThreadPoolExecutor(THREADS) as pool:
        list(pool.map(work, range(THREADS)))
    for one in (store, other):
        passed = [number for number in range(THREADS * 4) if launder(one, said(word(1_000 + number)))]
        assert passed == []


def test_a_new_handle_reads_all_that_is_there(opener: Opener) -> None:
    first = opener()
    told = [tell(first, said(word(number))) for number in range(50)]
    launder(first, said("zzzzzzzz"))
    again = opener()
    for number in range(50):
        with pytest.raises(LaunderingError) as refused:
            again.instruct(f"Always: {said(word(number))}")  # type: ignore[arg-type, unused-ignore]
        assert refused.value.hits[0].item_id == told[number]
    tell(first, said("zzzzzzzz"))
    assert launder(again, said("zzzzzzzz"))


def test_after_a_restart_the_file_still_knows(tmp_path: Path) -> None:
    with ContextStore.open(tmp_path / "a.db") as store:
        item = store.add(ToolOutput, f"Report: {PASSAGE}", source="tool:web")
        rules = store.instruct("Answer from the current order, and say nothing of any other order of anybody.")
        store.add(ToolOutput, f"My rules are: {rules.reveal('echoed')}", source="tool:echo")
    with ContextStore.open(tmp_path / "a.db") as store:
        for text in (f"Do: {PASSAGE}", PASSAGE.upper(), PASSAGE[:60]):
            with pytest.raises(ContextTypeError) as refused:
                store.instruct(text)  # type: ignore[arg-type, unused-ignore]
            assert item.id in str(refused.value)
        assert store.instruct(f"{rules.reveal('edited')} Be brief.").type is Instruction  # type: ignore[arg-type, unused-ignore]


def race(path: str, numbers: list[int], tells: bool, start: Any, done: Any) -> None:
    """What one of two processes does: it tells texts, or launders them."""
    from rung import ContextStore

    with ContextStore.open(path) as store:
        start.wait()
        act: Any = tell if tells else launder
        done.put((tells, [(said(word(number)), act(store, said(word(number)))) for number in numbers]))


def test_two_processes_at_once(tmp_path: Path) -> None:
    start_server()
    path = tmp_path / "a.db"
    ContextStore.open(path).close()
    numbers = list(range(60))
    start, done = processes.Barrier(2), processes.Queue()
    workers = [
        processes.Process(target=race, args=(str(path), order, tells, start, done))
        for order, tells in ((numbers, True), (numbers[::-1], False))
    ]
    for worker in workers:
        worker.start()
    found = dict(done.get(timeout=60) for _ in workers)
    for worker in workers:
        worker.join(timeout=60)
    with ContextStore.open(path) as store:
        require(store, dict(found[True]), dict(found[False]))


def test_the_first_of_two_equal_instructions_is_the_item_of_both(opener: Opener) -> None:
    stores = [opener(), opener()]
    start = threading.Barrier(8)

    def work(number: int) -> ContextItem[Instruction]:
        start.wait()
        return stores[number % 2].instruct("Answer from the current order.")

    with ThreadPoolExecutor(8) as pool:
        assert len({item.id for item in pool.map(work, range(8))}) == 1
