"""What is particular to PostgreSQL: its own rules for tenants, cursors over unfinished writes, restarts."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import psycopg
import pytest

from rung.errors import InputError, SchemaVersionError, ScopeError, StoreBusyError, StoreError
from rung.ledger.backend import Event
from rung.storage import open_backend, postgres_schema
from rung.storage.maintenance import verify
from rung.storage.postgres import PostgresBackend
from rung.testing.backend_contract import NOW, TYPES, add, add_rows, in_threads, make_item, row

from .postgres_server import PostgresServer


@pytest.fixture
def schema(postgres: PostgresServer) -> str:
    return postgres.new_schema()


@pytest.fixture
def backend(postgres: PostgresServer, schema: str) -> Iterator[PostgresBackend]:
    opened = PostgresBackend(postgres.uri, TYPES, schema=schema, event_ttl=0.3)
    yield opened
    opened.close()


def _eventually(holds: Callable[[], bool], seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.01)


def test_a_cursor_never_passes_over_an_unfinished_write(backend: PostgresBackend) -> None:
    """Texts that are read from a cursor on stop before a write that runs, and none is missed afterwards."""
    written, ended = threading.Event(), threading.Event()

    def slow() -> None:
        with backend.write("a") as tx:
            tx.insert([row(make_item("first"))])
            written.set()
            ended.wait(10)

    def read(after: int, exclusive: bool = False) -> list[tuple[str, int]]:
        with backend.write("a", exclusive=exclusive) as tx:
            texts = tx.texts_since(after, frozenset({"tool_output"}), ("a", None))
            return [(text.item_id, text.ordinal) for text in texts]

    add(backend, make_item("zero"))
    thread = threading.Thread(target=slow)
    thread.start()
    written.wait(10)
    add(backend, make_item("second"))
    before = read(0)
    assert [item_id for item_id, _ in before] == ["zero"]
    ended.set()
    thread.join()
    after = read(before[-1][1])
    assert [item_id for item_id, _ in after] == ["first", "second"]
    assert read(before[-1][1], exclusive=True) == after


def test_untrusted_writes_of_a_tenant_run_side_by_side(backend: PostgresBackend) -> None:
    """A write that stays open holds up no other write of its tenant, except an exclusive one."""
    with backend.write("a") as tx:
        tx.insert([row(make_item("open"))])
        thread = threading.Thread(target=add, args=(backend, make_item("other")))
        thread.start()
        thread.join(10)
        assert list(backend.get(["open", "other"], ("a",))) == ["other"]


def test_writers_of_the_same_items_in_another_order_do_not_block_each_other(backend: PostgresBackend) -> None:
    """Identities are taken in one order, so two workers that take in the same documents never deadlock."""
    names = [f"document {number}" for number in range(200)]

    def take(worker: int, order: list[str]) -> None:
        rows = [row(make_item(f"{worker} {name}"), name[:16], name[-14:]) for name in order]
        ids = add_rows(backend, "a", *rows)
        assert [item_id[2:] for item_id in ids] == order

    in_threads([lambda: take(0, names), lambda: take(1, names[::-1]), lambda: take(2, names[100:] + names[:100])])
    assert sorted(item.id[2:] for item in backend.items(("a",))) == sorted(names)


def test_a_deadlock_of_callers_is_a_typed_error(postgres: PostgresServer, backend: PostgresBackend) -> None:
    """Two writes that take two sessions in opposite order: one of them ends with StoreBusyError."""
    errors: list[Exception] = []
    meet = threading.Barrier(2)

    def cross(one: str, other: str) -> None:
        try:
            with backend.write("a") as tx:
                tx.next_seq(one, 1)
                meet.wait(10)
                tx.next_seq(other, 1)
        except StoreBusyError as problem:
            errors.append(problem)

    in_threads([lambda: cross("s1", "s2"), lambda: cross("s2", "s1")])
    assert len(errors) == 1
    assert add(backend, make_item("i1")) == ["i1"]


@pytest.fixture
def bound(postgres: PostgresServer, schema: str) -> Iterator[str]:
    """The address of a role that row-level security binds."""
    PostgresBackend(postgres.uri, TYPES, schema=schema, install_rls=True).close()
    role = f"{schema}_worker"
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"CREATE ROLE {role} LOGIN")
        connection.execute(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA {schema} TO {role}")
        connection.execute(f"GRANT ALL ON ALL SEQUENCES IN SCHEMA {schema} TO {role}")
    yield postgres.uri.replace("postgres:@", f"{role}:@")
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"DROP OWNED BY {role}")
        connection.execute(f"DROP ROLE {role}")


def test_row_level_security_is_a_second_line(bound: str, postgres: PostgresServer, schema: str) -> None:
    """Whatever a query forgets, the database itself shows and takes rows of the named tenants only."""
    owner = PostgresBackend(postgres.uri, TYPES, schema=schema)
    for tenant in (None, "a", "b"):
        add(owner, make_item(f"i {tenant}", tenant=tenant), tenant=tenant)
    with psycopg.connect(bound, autocommit=True) as connection:

        def seen(tenants: str | None) -> list[str]:
            with connection.transaction():
                if tenants is not None:
                    connection.execute("SELECT set_config('app.tenant', %s, true)", (tenants,))
                rows = connection.execute(f"SELECT id FROM {schema}.items ORDER BY id").fetchall()
                return [found[0] for found in rows]

        assert seen(None) == []
        assert seen("[]") == []
        assert seen('["=a"]') == ["i a"]
        assert seen('["=a", "-"]') == ["i None", "i a"]
        assert seen('["=\\u001f", "=", "=a\\",\\"=b"]') == []
        connection.execute("SELECT set_config('app.tenant', '[\"=a\"]', false)")
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            connection.execute(f"INSERT INTO {schema}.sessions VALUES ('=b', 's', 1)")
    owner.close()


def test_a_worker_under_row_level_security_works(bound: str, schema: str) -> None:
    """A role that is bound reads and writes its tenants; what would need all of them is refused."""
    worker = PostgresBackend(bound, TYPES, schema=schema)
    with worker.write("a") as tx:
        seq = tx.next_seq("s", 2)
        tx.insert([row(make_item("i1", session="s", seq=seq), "c", "i")])
        tx.emit(Event(at=NOW, source="x"))
    add(worker, make_item("b1", tenant="b"), tenant="b")
    assert [item.id for item in worker.session_items("s", ("a", None))] == ["i1"]
    assert list(worker.get(["i1", "b1"], ("b", None))) == ["b1"]
    assert [event.source for event in worker.events(("a",))] == ["x"]
    with worker.write("a", exclusive=True) as tx:
        assert [text.item_id for text in tx.texts_since(0, frozenset({"tool_output"}), ("a", None))] == ["i1"]
        assert tx.erase(["i1"], NOW, "test") == ["i1"]
    assert verify(worker, ("a", "b")).is_whole
    with pytest.raises(ScopeError):
        worker.tenants()
    with pytest.raises(ScopeError):
        add_rows(worker, None, exclusive=True)
    worker.close()


def test_a_lost_message_costs_the_time_to_live_at_most(
    postgres: PostgresServer, schema: str, backend: PostgresBackend
) -> None:
    """Events and erasures that nobody was told of are found by looking."""
    last = add(backend, make_item("i1"))
    assert backend.events(("a",)) == []
    assert backend.events(("a",)) == []
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"INSERT INTO {schema}.events (tenant, at, source, reason) VALUES ('=a', 0, 'untold', 'x')")
        connection.execute(f"UPDATE {schema}.counters SET value = 1 WHERE name = 'events'")
    _eventually(lambda: [event.source for event in backend.events(("a",))] == ["untold"])
    assert list(backend.get(last, ("a",))) == last
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema}.items SET erased = 1")
        connection.execute(f"UPDATE {schema}.counters SET value = 1 WHERE name = 'erased'")
    _eventually(lambda: backend.get(last, ("a",)) == {})


def test_a_server_that_restarts_is_found_again(postgres: PostgresServer, schema: str, backend: PostgresBackend) -> None:
    """After a restart handles read, write and hear of events as before, without being opened again."""
    other = PostgresBackend(postgres.uri, TYPES, schema=schema, event_ttl=0.3)
    in_threads([lambda number=number: add(backend, make_item(f"before {number}")) for number in range(4)])
    assert len(list(other.items(("a",)))) == 4
    postgres.restart()
    assert list(backend.get(["before 1"], ("a",))) == ["before 1"]
    assert add(backend, make_item("after")) == ["after"]
    in_threads([lambda number=number: add(other, make_item(f"after {number}")) for number in range(4)])
    with backend.write("a") as tx:
        tx.emit(Event(at=NOW, source="after"))
    _eventually(lambda: [event.source for event in other.events(("a",))] == ["after"])
    _eventually(lambda: other._listener.is_current)
    started = time.monotonic()
    with backend.write("a") as tx:
        number = tx.emit(Event(at=NOW, source="told"))
    _eventually(lambda: [event.number for event in other.events(("a",), after=number - 1)] == [number])
    assert time.monotonic() - started < 10
    assert verify(other).is_whole
    other.close()


def test_a_schema_of_a_newer_version_is_refused(postgres: PostgresServer, schema: str) -> None:
    """A schema from a newer rung, or with somebody else's tables, is left alone."""
    PostgresBackend(postgres.uri, TYPES, schema=schema).close()
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema}.version SET version = 99")
        with pytest.raises(SchemaVersionError) as caught:
            PostgresBackend(postgres.uri, TYPES, schema=schema)
        assert caught.value.fields["found"] == 99
        connection.execute(f"CREATE SCHEMA {schema}_other CREATE TABLE items (x int)")
    with pytest.raises(SchemaVersionError, match="another program's"):
        PostgresBackend(postgres.uri, TYPES, schema=f"{schema}_other")


def test_migrations_go_forward(postgres: PostgresServer, schema: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer schema is reached by its steps, all or none."""
    backend = PostgresBackend(postgres.uri, TYPES, schema=schema)
    add(backend, make_item("i1"))
    backend.close()
    first = postgres_schema.MIGRATIONS
    broken = ("ALTER TABLE {s}.items ADD COLUMN note text", "SELECT * FROM nowhere")
    for step, expected in ((broken, 1), (broken[:1], 2)):
        with psycopg.connect(postgres.uri, autocommit=True) as connection:
            arguments: Any = (connection, schema, schema, 1)
            if expected == 1:
                with pytest.raises(psycopg.errors.UndefinedTable):
                    postgres_schema.prepare(*arguments, install_rls=False, migrations=(*first, step))
            else:
                postgres_schema.prepare(*arguments, install_rls=False, migrations=(*first, step))
            assert connection.execute(f"SELECT version FROM {schema}.version").fetchone() == (expected,)
    with psycopg.connect(postgres.uri, autocommit=True) as connection:
        connection.execute(f"UPDATE {schema}.version SET version = 1")
    backend = PostgresBackend(postgres.uri, TYPES, schema=schema)
    assert verify(backend).items == 1
    backend.close()


@pytest.mark.parametrize("name", ["", "1a", "a b", 'a"; DROP SCHEMA public; --', "a%s", "é", "a" * 64])
def test_a_name_of_a_schema_is_plain(postgres: PostgresServer, name: str) -> None:
    """A schema's name is a plain identifier; anything else is refused and never becomes a part of a statement."""
    with pytest.raises(InputError):
        PostgresBackend(postgres.uri, TYPES, schema=name)


def test_a_server_that_is_not_there_is_told_at_once() -> None:
    """An address where nobody listens is a StoreError, soon."""
    started = time.monotonic()
    with pytest.raises(StoreError):
        open_backend("postgresql://nobody@127.0.0.1:1/none", TYPES)
    assert time.monotonic() - started < 60
