"""Verification, erasure, expiry and transfer, on each backend alike."""

from __future__ import annotations

from datetime import timedelta

import pytest

from rung.errors import ConflictError, IntegrityError, SchemaVersionError
from rung.ledger.backend import Backend, Document, Event, LogEntry
from rung.records.types import Assistant, Memory
from rung.storage.maintenance import Problem, erase, erase_subject, stats, sweep, vacuum, verify
from rung.storage.transfer import export, import_lines
from rung.testing.backend_contract import (
    NOW,
    TYPES,
    OpenHandle,
    add,
    key,
    make_item,
    opened,
    row,
    whole_items,
)


def _filled(backend: Backend) -> None:
    with backend.write(None) as tx:
        tx.insert([row(make_item("n1", tenant=None), "rules", "rules")])
        tx.log([LogEntry(at=NOW, kind="registration", body="n1")])
    with backend.write("a") as tx:
        tx.insert([row(item, f"c{n}", f"i{n}") for n, item in enumerate(whole_items())])
        tx.insert([row(make_item("somewhere else")), row(make_item("gone", "a secret", derived_from=("n1",)))])
        tx.next_seq("s 1", 9)
        tx.put(Document(kind="turn", id="t1", session="s 1", body='["whole-1"]'))
        tx.put(Document(kind="approval", id="t1", body="yes"))
        tx.put(Document(kind="approval", id="t1", body="no"))
        tx.emit(Event(at=NOW, source="orders", reason="changed"))
        tx.log([LogEntry(at=NOW, kind="registration", body=str(n)) for n in range(3)])
        tx.revoke(["whole-2"], NOW, "wrong")
        tx.erase(["gone"], NOW, "asked for")
    with backend.write("b") as tx:
        tx.insert([row(make_item("b1", tenant="b", derived_from=("n1",)))])


def test_a_store_that_nobody_touched_verifies(open_handle: OpenHandle) -> None:
    """Everything is counted, in every tenant, and nothing is found."""
    with opened(open_handle) as (backend,):
        _filled(backend)
        found = verify(backend)
        assert found.is_whole
        assert (found.items, found.tombstones, found.entries) == (len(whole_items()) + 3, 1, 4)
        counts = {(count.tenant, count.type): (count.items, count.erased) for count in stats(backend)}
        assert counts[("a", "tool_output")] == (2, 1)
        assert counts[("b", "tool_output")] == counts[(None, "tool_output")] == (1, 0)
        assert {count.tenant for count in stats(backend, ("b",))} == {"b"}
        vacuum(backend)
        assert verify(backend) == found


def test_a_parent_that_is_missing_is_named(open_handle: OpenHandle) -> None:
    """An item whose parent is neither stored nor a tombstone, or is another tenant's, is a problem."""
    with opened(open_handle) as (backend,):
        add(backend, make_item("b1", tenant="b"), tenant="b")
        add(
            backend,
            make_item("i1"),
            make_item("i2", derived_from=("i1", "never")),
            make_item("i3", derived_from=("b1",)),
        )
        assert verify(backend).problems == (
            Problem(code="parent", tenant="a", id="i2", detail="never"),
            Problem(code="parent", tenant="a", id="i3", detail="b1"),
        )


def test_erasing_a_subject_takes_what_was_derived_along(open_handle: OpenHandle) -> None:
    """A person's items and their descendants go; turns that saw them are reported; the rest still verifies."""
    with opened(open_handle) as (backend,):
        add(
            backend,
            make_item("p1", "my cat is Nova", subject="u1"),
            make_item("p2", "the cat of u1", derived_from=("p1",)),
            make_item("p3", derived_from=("p2", "q1")),
            make_item("q1", subject="u2"),
            make_item("r1", "You have a cat", type=Assistant, turn="t1"),
            make_item("r2", "Hello", type=Assistant, turn="t2"),
            make_item("m1", type=Memory, derived_from=("r1",)),
        )
        add(backend, make_item("b1", tenant="b", subject="u1", derived_from=("p1",)), tenant="b")
        with backend.write("a") as tx:
            tx.put(Document(kind="turn", id="t1", body='{"items":["p2"]}'))
            tx.put(Document(kind="turn", id="t2", body='{"items":["q1"]}'))
        first = erase_subject(backend, "a", "u1", at=NOW)
        assert (first.erased, first.turns) == (("p1", "p2", "p3"), ("t1",))
        assert sorted(backend.get(["p1", "p2", "p3", "q1", "r1", "m1"], ("a",))) == ["m1", "q1", "r1"]
        assert list(backend.get(["b1"], ("b",))) == ["b1"]
        assert list(backend.tombstones(("a",))) == ["p1", "p2", "p3"]
        assert verify(backend, ("a",)).is_whole
        again = erase(backend, "a", ["p2"], at=NOW, reason="asked for", through_turns=True)
        assert (sorted(again.erased), again.turns) == (["m1", "r1"], ("t1",))
        assert [item.id for item in backend.items(("a",))] == ["q1", "r2"]


def test_expired_items_are_swept_with_their_index(open_handle: OpenHandle) -> None:
    """What has expired, and what is older than its type is kept, is erased; its content is unknown then."""
    with opened(open_handle) as (backend,):
        with backend.write("a") as tx:
            tx.insert(
                [
                    row(
                        make_item(f"i{n}", expires_at=NOW + timedelta(hours=n), created=NOW + timedelta(hours=n)),
                        f"c{n}",
                    )
                    for n in range(4)
                ]
            )
            tx.insert([row(make_item(f"m{n}", type=Memory, created=NOW + timedelta(days=n))) for n in range(4)])
        add(backend, make_item("b1", tenant="b", expires_at=NOW), tenant="b")
        now = NOW + timedelta(hours=2)
        assert sweep(backend, now, grace=timedelta(hours=1)) == {"a": ["i0", "i1"], "b": ["b1"]}
        assert sweep(backend, now, tenants=("b", "a")) == {"a": ["i2"]}
        later = NOW + timedelta(days=3)
        assert sweep(backend, later, keep={"memory": timedelta(days=2)}) == {"a": ["i3", "m0", "m1"]}
        with backend.write("a") as tx:
            assert tx.origins([key(f"c{n}") for n in range(4)], ("a",)) == {}
            assert list(tx.texts_since(0, frozenset({"tool_output"}), ("a",))) == []
        assert {stone.reason for stone in backend.tombstones(("a",)).values()} == {"expired"}
        assert verify(backend).is_whole


def _contents(backend: Backend) -> list[object]:
    out: list[object] = []
    for tenant in (None, *backend.tenants()):
        only = (tenant,)
        rows = list(backend.rows(only))
        ids = [stored.item.id for stored in rows]
        out += [(stored.item, stored.content_key, stored.identity) for stored in rows]
        out += [backend.revoked(ids, only), backend.children(["least", "n1"], only)]
        out += [(stone.id, stone.digest, stone.reason) for stone in backend.tombstones(only).values()]
        out += list(backend.documents(None, only)) + list(backend.logged(only))
        out += [(event.source, event.item_id, event.reason) for event in backend.events(only)]
        out += [item.id for item in backend.session_items("s 1", only)]
    return out


def test_an_export_is_taken_in_whole(open_handle: OpenHandle, open_other: OpenHandle) -> None:
    """Items, keys, tombstones, documents, events and the log's links are the same in another store."""
    with opened(open_handle) as (source,), opened(open_other) as (target,):
        _filled(source)
        lines = list(export(source, NOW))
        taken = import_lines(target, lines, TYPES)
        assert (taken.items, taken.tombstones, taken.documents) == (len(whole_items()) + 3, 1, 2)
        assert _contents(target) == _contents(source)
        assert list(export(target, NOW))[1:] == lines[1:]
        assert verify(target).is_whole
        with target.write("a") as tx:
            assert tx.next_seq("s 1", 1) > 9
            assert tx.identities([key("i1")]) == {key("i1"): "whole-0"}
        with pytest.raises(ConflictError):
            import_lines(target, lines, TYPES)
        assert _contents(target)[1:] == _contents(source)[1:]


def test_an_altered_export_is_refused(open_handle: OpenHandle, open_other: OpenHandle) -> None:
    """Altered text, an altered or missing decision, another version or a broken line: nothing of it is kept."""
    with opened(open_handle) as (source,), opened(open_other) as (target,):
        _filled(source)
        lines = list(export(source, NOW, ("a",)))
        logged = [place for place, line in enumerate(lines) if '"line":"log"' in line]
        altered = {
            "text": [line.replace('"text":"text"', '"text":"test"') for line in lines],
            "log": [line.replace('"body":"1"', '"body":"7"') for line in lines],
            "gap": [line for place, line in enumerate(lines) if place != logged[1]],
            "cut": [*lines[:-1], lines[-1][:40]],
            "headless": lines[1:],
        }
        for name, given in altered.items():
            assert given != lines
            with pytest.raises(IntegrityError):
                import_lines(target, given, TYPES)
            assert target.tenants() == (), name
        newer = [lines[0].replace('"version":1', '"version":2'), *lines[1:]]
        with pytest.raises(SchemaVersionError):
            import_lines(target, newer, TYPES)
        assert import_lines(target, lines, TYPES).entries == 3
