"""Made `data/schema-1.db` when schema version 1 was released; kept to show what is in it."""

from __future__ import annotations

import sys

from rung.ledger.backend import Document, Event, LogEntry
from rung.storage.sqlite import SqliteBackend
from rung.testing.backend_contract import NOW, TYPES, make_item, row, whole_items


def main(path: str) -> None:
    backend = SqliteBackend(path, TYPES)
    with backend.write(None) as tx:
        tx.insert([row(make_item("n1", tenant=None), "rules", "rules")])
    with backend.write("a") as tx:
        first = tx.next_seq("s", 3)
        tx.insert(
            [row(make_item(f"i{n}", f"text {n}", session="s", seq=first + n), f"c{n}", f"i{n}") for n in range(3)]
        )
        tx.insert([row(item) for item in whole_items()])
        tx.insert([row(make_item("somewhere else")), row(make_item("gone", "a secret", derived_from=("n1",)))])
        tx.put(Document(kind="turn", id="t1", session="s", body="{}"))
        tx.emit(Event(at=NOW, source="orders"))
        tx.log([LogEntry(at=NOW, kind="registration", body=str(n)) for n in range(3)])
        tx.revoke(["i2"], NOW, "wrong")
        tx.erase(["gone"], NOW, "asked for")
    with backend.write("b") as tx:
        tx.insert([row(make_item("b1", tenant="b", derived_from=("n1",)))])
    backend.vacuum()
    backend.close()


if __name__ == "__main__":
    main(sys.argv[1])
