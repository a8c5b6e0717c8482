"""Faults that were reported of other systems, as small inputs; each test is named by its case."""

from __future__ import annotations

import itertools
import sqlite3
import threading
from contextlib import closing, suppress
from functools import partial
from pathlib import Path

import pytest

from rung.errors import ConflictError, InputError, ScopeError
from rung.ledger.backend import Document, LogEntry
from rung.records.canonical import canonical_json, canonical_text
from rung.records.item import ToolCall, body
from rung.records.types import Assistant, Evidence, Memory, User
from rung.storage.maintenance import Problem, verify
from rung.storage.sqlite import SqliteBackend
from rung.testing.backend_contract import (
    NOW,
    TYPES,
    OpenHandle,
    add,
    in_threads,
    make_item,
    opened,
    row,
    whole_items,
)

from .workers import start_server, together, write_small


def test_concurrency_01(open_handle: OpenHandle) -> None:
    """Two requests that read one history and both append: both turns are stored, in some order."""
    with opened(open_handle, 2) as handles:
        add(handles[0], make_item("m0", session="s1", seq=1))
        with handles[0].write("a") as tx:
            tx.next_seq("s1", 1)

        def append(place: int, names: tuple[str, str]) -> None:
            handles[place].session_items("s1", ("a",))
            with handles[place].write("a") as tx:
                first = tx.next_seq("s1", 2)
                tx.insert([row(make_item(n, session="s1", seq=first + i)) for i, n in enumerate(names)])

        in_threads([partial(append, 0, ("a1", "a2")), partial(append, 1, ("b1", "b2"))])
        found = [item.id for item in handles[0].session_items("s1", ("a",))]
        assert found in (["m0", "a1", "a2", "b1", "b2"], ["m0", "b1", "b2", "a1", "a2"])


def test_concurrency_01_expected_version(open_handle: OpenHandle) -> None:
    """Where each demands the version that it read, exactly one of two writers succeeds."""
    with opened(open_handle, 2) as handles:
        with handles[0].write("a") as tx:
            tx.put(Document(kind="session", id="s1", body="m0"))
        won: list[int] = []

        def append(place: int) -> None:
            head = handles[place].document("session", "s1", ("a",))
            assert head is not None
            both.wait(10)
            with suppress(ConflictError), handles[place].write("a") as tx:
                tx.put(Document(kind="session", id="s1", body=str(place)), expected=head.version)
                won.append(place)

        both = threading.Barrier(2)
        in_threads([partial(append, 0), partial(append, 1)])
        head = handles[0].document("session", "s1", ("a",))
        assert head is not None
        assert ([head.body], head.version) == ([str(place) for place in won], 2)


def test_concurrency_02(open_handle: OpenHandle) -> None:
    """Whichever of two turns of a session begins and ends first, each of them is contiguous."""
    turns = {"A": ("uA", "callA", "resA", "aA"), "B": ("uB", "aB")}
    with opened(open_handle, 2) as handles:
        for number, order in enumerate(itertools.permutations("AB")):
            session = f"s{number}"
            for name in order:
                with handles["AB".index(name)].write("a") as tx:
                    first = tx.next_seq(session, len(turns[name]))
                    for place, item in enumerate(turns[name]):
                        given = make_item(f"{number} {item}", session=session, seq=first + place, turn=name)
                        tx.insert([row(given)])
            found = [item.id[2:] for item in handles[0].session_items(session, ("a",))]
            assert found == [item for name in order for item in turns[name]]


def test_concurrency_03(tmp_path: Path) -> None:
    """Four processes write 200 items each to one file while four readers read: 800 items, no error."""
    start_server()
    address = str(tmp_path / "store.db")
    backend = SqliteBackend(address, TYPES)
    done = threading.Event()
    errors: list[BaseException] = []

    def read() -> None:
        last = 0
        try:
            while not done.is_set():
                found = len(backend.session_items("s", ("a",)))
                assert found >= last
                last = found
        except BaseException as problem:
            errors.append(problem)

    readers = [threading.Thread(target=read) for _ in range(4)]
    for reader in readers:
        reader.start()
    try:
        together(write_small, [((address, {"synchronous": "NORMAL"}), worker, 200) for worker in range(4)])
    finally:
        done.set()
        for reader in readers:
            reader.join()
    assert errors == []
    assert [item.seq for item in backend.session_items("s", ("a",))] == list(range(1, 801))
    with closing(sqlite3.connect(address)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    backend.close()


def test_concurrency_04(open_handle: OpenHandle) -> None:
    """Two messages of the same moment, the later one with the lower id, come back as they were written."""
    with opened(open_handle) as (backend,):
        add(
            backend,
            make_item("zz", type=User, session="s", seq=1, created=NOW),
            make_item("aa", type=Assistant, session="s", seq=2, created=NOW),
        )
        assert [item.id for item in backend.session_items("s", ("a",))] == ["zz", "aa"]
        assert [item.id for item in backend.items(("a",))] == ["zz", "aa"]


def test_serialization_01(open_handle: OpenHandle) -> None:
    """Every kind of item keeps its class and all of its fields, tool calls among them."""
    call = make_item("i1", "foo", type=Assistant, parts=(ToolCall(id="c", name="n", arguments="{}"),))
    with opened(open_handle, 2) as (writer, reader):
        add(writer, call, *whole_items())
        found = reader.get(["i1", *(item.id for item in whole_items())], ("a",))
        assert found == {item.id: item for item in (call, *whole_items())}
        assert {item.type for item in found.values()} >= {Assistant, User, Evidence, Memory}


def test_serialization_02(open_handle: OpenHandle) -> None:
    """A reply without text keeps its empty text and its call's id after a reload."""
    reply = make_item("i1", "", type=Assistant, session="s", seq=1, parts=(ToolCall(id="c1", name="n"),))
    with opened(open_handle, 2) as (writer, reader):
        add(writer, reply)
        [found] = reader.session_items("s", ("a",))
        assert (body(found), found.parts, found.digest) == ("", reply.parts, reply.digest)


def test_serialization_03(tmp_path: Path) -> None:
    """An item that is gone from the tables is named by the verification, not passed over."""
    backend = SqliteBackend(tmp_path / "store.db", TYPES)
    items = [make_item(f"i{number}", session="s", seq=number) for number in (1, 2, 3)]
    add(backend, *items)
    with backend.write("a") as tx:
        bodies = [canonical_json({"item": item.id, "digest": item.digest.hex()}) for item in items]
        tx.log([LogEntry(at=NOW, kind="registration", body=text) for text in bodies])
    with closing(sqlite3.connect(tmp_path / "store.db")) as connection, connection:
        connection.execute("DELETE FROM items WHERE id = 'i2'")
    assert verify(backend).problems == (Problem(code="missing", tenant="a", id="i2"),)
    backend.close()


@pytest.mark.parametrize("text", ["place \udc81 name", "icon \ud83d broken", "head\x00tail"])
def test_encoding_01_02_03(open_handle: OpenHandle, text: str) -> None:
    """A lone surrogate or NUL is refused by each backend alike; its replaced form is kept by each alike."""
    with opened(open_handle) as (backend,):
        broken = make_item("i1", "x")
        with pytest.raises(InputError):
            add(backend, type(broken)(**{**_fields(broken), "_body": text}))
        replaced, count = canonical_text(text, replace=True)
        assert count == 1
        item = make_item("i2", replaced)
        add(backend, item)
        found = backend.get(["i2"], ("a",))["i2"]
        assert body(found).encode("utf-8").decode("utf-8") == text[:5].replace("\x00", "\ufffd") + replaced[5:]
        assert found.digest == item.digest == found.computed_digest()


def _fields(item: object) -> dict[str, object]:
    return {name: getattr(item, name) for name in item.__struct_fields__}  # type: ignore[attr-defined]


def test_tenant_01(open_handle: OpenHandle) -> None:
    """What one user of a tenant has in a session, another tenant's search does not find."""
    with opened(open_handle) as (backend,):
        add(backend, make_item("i1", "my cat is Nova", tenant="t1", subject="uid1", session="s"), tenant="t1")
        assert list(backend.items(("t2", None), subject="uid1")) == []
        assert list(backend.items(("t1",), subject="uid2")) == []
        assert backend.session_items("s", ("t2", None)) == []


def test_tenant_02(open_handle: OpenHandle) -> None:
    """The same question of two tenants is two items, also from a warm cache."""
    with opened(open_handle) as (backend,):
        for tenant in ("A", "B"):
            with backend.write(tenant) as tx:
                tx.insert([row(make_item(f"q {tenant}", "what is my balance?", tenant=tenant), "q", "q")])
        for _ in range(2):
            assert list(backend.get(["q A", "q B"], ("A",))) == ["q A"]
            assert list(backend.get(["q A", "q B"], ("B",))) == ["q B"]


def test_tenant_03(open_handle: OpenHandle) -> None:
    """There is no session or tenant that is meant when none is named."""
    with opened(open_handle) as (backend,):
        add(backend, make_item("i1"), make_item("i2", session="", seq=1))
        assert [item.id for item in backend.session_items("", ("a",))] == ["i2"]
        assert backend.get(["i1"], (None,)) == backend.get(["i1"], ("",)) == {}
        with pytest.raises(ScopeError):
            add(backend, make_item("i3", tenant=None))
