"""What is particular to the SQLite file: its versions, its bytes, and what somebody else did to it."""

from __future__ import annotations

import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import pytest

from rung.errors import InputError, IntegrityError, SchemaVersionError, StoreBusyError, StoreError
from rung.ledger.backend import LogEntry
from rung.records.canonical import canonical_json
from rung.storage import open_backend, sqlite_connections, sqlite_schema
from rung.storage.maintenance import verify
from rung.storage.memory import MemoryBackend
from rung.storage.sqlite import SqliteBackend
from rung.storage.sqlite_schema import MIGRATIONS
from rung.testing.backend_contract import NOW, TYPES, add, equal, make_item, row

from .workers import start_server, together, write_after_a_fork

FIRST_RELEASE = Path(__file__).parent / "data" / "schema-1.db"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "store.db"


def _open(path: Path, **options: float) -> SqliteBackend:
    return SqliteBackend(path, TYPES, synchronous="NORMAL", **options)  # type: ignore[arg-type]


def _raw(path: Path, statement: str, values: tuple[object, ...] = ()) -> list[tuple[object, ...]]:
    with closing(sqlite3.connect(path)) as connection, connection:
        return connection.execute(statement, values).fetchall()


def test_a_file_of_the_first_schema_opens(path: Path) -> None:
    """A file that schema version 1 made opens in this version, whole, and is written on."""
    shutil.copy(FIRST_RELEASE, path)
    backend = _open(path)
    assert backend.tenants() == ("a", "b")
    assert [item.seq for item in backend.session_items("s", ("a",))] == [1, 2, 3]
    assert list(backend.tombstones(("a",))) == ["gone"]
    assert verify(backend).is_whole
    with backend.write("a") as tx:
        assert tx.next_seq("s", 1) == 4
        assert tx.insert([row(make_item("again"), "c1", "i1")]) == ["i1"]
    backend.close()


def test_migrations_go_forward_after_a_backup(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A newer schema is reached by its steps; the file as it was is kept beside it."""
    shutil.copy(FIRST_RELEASE, path)
    before = _raw(path, "SELECT id, text FROM items ORDER BY ordinal")
    step = ("ALTER TABLE items ADD COLUMN note TEXT", "UPDATE items SET note = 'migrated'")
    monkeypatch.setattr(sqlite_connections, "MIGRATIONS", (*MIGRATIONS, step))
    backend = _open(path)
    assert verify(backend).is_whole
    backend.close()
    newest = len(MIGRATIONS) + 1
    assert _raw(path, "PRAGMA user_version") == [(newest,)]
    assert _raw(path, "SELECT DISTINCT note FROM items") == [("migrated",)]
    backup = Path(f"{path}.v1.bak")
    assert _raw(backup, "SELECT id, text FROM items ORDER BY ordinal") == before
    assert _raw(backup, "PRAGMA user_version") == [(1,)]
    monkeypatch.undo()
    with pytest.raises(SchemaVersionError) as caught:
        _open(path)
    assert (caught.value.fields["found"], caught.value.fields["supported"]) == (newest, len(MIGRATIONS))


def test_a_migration_that_fails_changes_nothing(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step that breaks half way leaves the file at its version."""
    shutil.copy(FIRST_RELEASE, path)
    step = ("UPDATE items SET text = 'broken'", "SELECT * FROM nowhere")
    monkeypatch.setattr(sqlite_connections, "MIGRATIONS", (*MIGRATIONS, step))
    with pytest.raises(StoreError):
        _open(path)
    monkeypatch.undo()
    backend = _open(path)
    assert verify(backend).is_whole
    backend.close()


def test_another_programs_file_is_left_alone(path: Path) -> None:
    """A database that is not ours, and a file that is no database, are refused and not written to."""
    _raw(path, "CREATE TABLE theirs (x)")
    before = path.read_bytes()
    with pytest.raises(SchemaVersionError, match="another program's"):
        _open(path)
    assert _raw(path, "SELECT name FROM sqlite_schema") == [("theirs",)]
    assert len(path.read_bytes()) == len(before)
    path.write_bytes(b"This is a text, and long enough to be taken for the head of a database. " * 20)
    with pytest.raises(StoreError):
        _open(path)


def test_what_somebody_altered_is_named(path: Path) -> None:
    """Altered text, columns, records, and log entries, and removed items, each by its id and a code."""
    backend = _open(path)
    with backend.write("a") as tx:
        items = [make_item(f"i{number}", f"text {number}") for number in range(8)]
        tx.insert([row(item) for item in items])
        tx.log(
            [
                LogEntry(at=NOW, kind="registration", body=canonical_json({"item": i.id, "digest": i.digest.hex()}))
                for i in items
            ]
        )
    assert verify(backend).is_whole
    assert _raw(path, "PRAGMA application_id")[0][0] == sqlite_schema.APPLICATION_ID
    _raw(path, "UPDATE items SET text = 'altered' WHERE id = 'i1'")
    _raw(path, "UPDATE items SET type = 'evidence' WHERE id = 'i2'")
    _raw(path, "UPDATE items SET record = x'00' WHERE id = 'i3'")
    _raw(path, "UPDATE items SET text = CAST(x'ff80' AS TEXT) WHERE id = 'i4'")
    _raw(path, "UPDATE items SET tenant = '=b' WHERE id = 'i5'")
    _raw(path, "DELETE FROM items WHERE id = 'i6'")
    _raw(path, "UPDATE log SET body = '{}' WHERE number = 8")
    found = {(problem.tenant, problem.id): problem.code for problem in verify(backend).problems}
    assert found == {
        ("a", "i1"): "digest",
        ("a", "i2"): "columns",
        ("a", "i3"): "unreadable",
        ("a", "i4"): "unreadable",
        ("b", "i5"): "columns",
        ("a", "i5"): "missing",
        ("a", "i6"): "missing",
        ("a", "8"): "link",
    }
    with pytest.raises(IntegrityError, match="i5"):
        backend.get(["i5"], ("b",))
    with pytest.raises(IntegrityError, match="i3"):
        backend.get(["i3"], ("a",))
    backend.close()


def test_a_parent_of_another_type_that_no_policy_knows_is_named(path: Path) -> None:
    """An item whose type is not among the types is an error that names it, and can still be erased."""
    backend = _open(path)
    add(backend, make_item("i1"))
    backend.close()
    narrow = SqliteBackend(path, {})
    with pytest.raises(IntegrityError, match="tool_output"):
        narrow.get(["i1"], ("a",))
    with narrow.write("a") as tx:
        assert tx.erase(["i1"], NOW, "test") == ["i1"]
    assert narrow.get(["i1"], ("a",)) == {}
    narrow.close()


def test_erased_text_is_gone_from_the_file(path: Path) -> None:
    """After an erasure and a vacuum no byte of the text is left, neither in the file nor beside it."""
    backend = _open(path)
    secret = "the secret is 7f3a-99"
    add(backend, *(make_item(f"i{number}", f"{secret} {number} " * 300) for number in range(20)))
    files = [path, Path(f"{path}-wal")]
    assert any(secret.encode() in file.read_bytes() for file in files if file.exists())
    with backend.write("a") as tx:
        tx.erase([f"i{number}" for number in range(20)], NOW, "asked for")
    backend.vacuum()
    assert not any(secret.encode() in file.read_bytes() for file in path.parent.iterdir())
    assert verify(backend).is_whole
    backend.close()


def test_a_wait_for_another_process_is_bounded(path: Path) -> None:
    """While another connection holds the file, a write ends with StoreBusyError in time; reads go on."""
    backend = _open(path, busy_timeout=0.2)
    add(backend, make_item("i1"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        started = time.monotonic()
        with pytest.raises(StoreBusyError) as caught:
            add(backend, make_item("i2"))
        assert time.monotonic() - started < 20
        assert caught.value.fields["waited"] == 0.2
        assert list(backend.get(["i1"], ("a",))) == ["i1"]
        other.execute("ROLLBACK")
    equal(add(backend, make_item("i2")), ["i2"], "and then it works")
    backend.close()


def test_a_handle_works_on_both_sides_of_a_fork(path: Path) -> None:
    """A process that was forked with an open handle writes, and so does its parent; nothing is lost."""
    start_server()
    [(code, found)] = together(write_after_a_fork, [((str(path), {}),)])
    assert code == 0
    assert sorted(name.rpartition("-")[0] for name in found) == sorted(["before", "child", "parent"] * 3)


def test_a_closed_handle_says_so(path: Path) -> None:
    """Using a closed handle is a StoreError."""
    backend = _open(path)
    backend.close()
    with pytest.raises(StoreError, match="closed"):
        backend.get(["i1"], ("a",))
    with pytest.raises(StoreError, match="closed"), backend.write("a"):
        pass


@pytest.mark.parametrize(
    ("address", "expected"),
    [(":memory:", MemoryBackend), ("store.db", SqliteBackend), ("sqlite://store.db", SqliteBackend)],
)
def test_an_address_names_a_backend(
    address: str, expected: type, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A path is a SQLite file; `:memory:` keeps nothing."""
    monkeypatch.chdir(tmp_path)
    backend = open_backend(address, TYPES)
    assert type(backend) is expected
    backend.close()


@pytest.mark.parametrize("address", ["mysql://host/x", "http://host", "redis://"])
def test_an_address_of_another_scheme_is_refused(address: str) -> None:
    """An unknown scheme is an InputError that names the known ones."""
    with pytest.raises(InputError, match="postgresql"):
        open_backend(address, TYPES)


@pytest.mark.parametrize("path", ["", ":memory:", "file:x.db"])
def test_a_store_without_a_file_is_refused(path: str) -> None:
    """SQLite in memory would be another database for each connection."""
    with pytest.raises(InputError):
        SqliteBackend(path, TYPES)
