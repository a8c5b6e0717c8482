"""The contract of a `Backend`: one table of checks that every storage passes, also one of your own.

    from rung.testing.backend_contract import CHECKS, TYPES

    @pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
    def test_contract(check, tmp_path):
        check(lambda **options: MyBackend(tmp_path / "store", TYPES, **options))

A check is given a function that opens a further handle on one fresh storage; it must take `busy_timeout` in
seconds. For a storage that lives in one process it may return the same object each time. A check that fails
raises AssertionError and says the rule that was broken.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from itertools import pairwise
from typing import Any, Protocol

import msgspec

from rung.errors import ConflictError, InputError, IntegrityError, ScopeError, StoreBusyError, StoreError
from rung.ledger.backend import Backend, Document, Event, LogEntry, NewRow, Tenants, Tombstone
from rung.records.item import ContextItem, Media, Opaque, Slot, ToolCall, body, sealed
from rung.records.labels import Labels, Sensitivity
from rung.records.types import BUILTIN_TYPES, ContextType, Evidence, Memory, ToolOutput, User

TYPES: dict[str, type[ContextType]] = {declared.name: declared for declared in BUILTIN_TYPES}
"""The types that the checks write: give them to the backend."""

NOW = datetime(2026, 3, 1, 12, 30, 15, 123457, tzinfo=UTC)
LARGEST = 16 * 1024 * 1024
TEXTS = (
    "",
    "plain",
    "carriage\r\nreturn\rand\nline feed\r\n",
    " \t leading and trailing \u00a0\u2003",
    "four bytes: 🦊𝔘𐍈, joined: 👩‍👩‍👧, flag: 🇨🇭",
    "replaced \ufffd, byte order \ufeff, not a character \uffff\U0010ffff",
    "composed é and decomposed e\u0301 are two texts",
    "controls \x01\x1b\x7f\x85, quotes ' \" `, backslash \\, percent % _ $1 ?",
)
LOOKALIKES: tuple[str | None, ...] = (
    None, "", " ", "-", "=", "=a", "a", "A", "a ", "á", "a\u0301", "%", "_", "*", "None", "null", "a,b",
    "{a}", "a\x1f=b", "1",
)  # fmt: skip


class OpenHandle(Protocol):
    """Opens a further handle on the storage under test."""

    def __call__(self, *, busy_timeout: float = 30.0) -> Backend: ...


Check = Callable[[OpenHandle], None]


def make_item(
    item_id: str,
    text: str = "text",
    *,
    type: type[ContextType] = ToolOutput,
    tenant: str | None = "a",
    subject: str | None = None,
    source: str = "tool:lookup",
    created: datetime = NOW,
    **fields: Any,
) -> ContextItem[Any]:
    """A sealed item with the least that an item needs."""
    labels = Labels(tenant=tenant, subject=subject)
    return sealed(
        ContextItem(type=type, id=item_id, source=source, _body=text, labels=labels, created=created, **fields)
    )


def row(item: ContextItem[Any], content: str = "", identity: str = "") -> NewRow:
    """A row of an item; its content key and identity from short names."""
    return NewRow(
        item=item,
        content_key=content.encode().ljust(16, b"\0") if content else b"",
        identity=identity.encode().ljust(16, b"\0") if identity else None,
    )


def key(content: str) -> bytes:
    """The content key that `row` gives."""
    return content.encode().ljust(16, b"\0")


def add(backend: Backend, *items: ContextItem[Any], tenant: str | None = "a") -> list[str]:
    """Write items in one transaction."""
    with backend.write(tenant) as tx:
        return tx.insert([row(item) for item in items])


def equal(actual: object, expected: object, rule: str) -> None:
    """AssertionError with the rule unless both are equal."""
    if actual != expected:
        raise AssertionError(f"{rule}: got {actual!r:.2000}, expected {expected!r:.2000}")


@contextmanager
def refused(error: type[Exception], rule: str) -> Generator[None, None, None]:
    """AssertionError with the rule unless this error is raised."""
    try:
        yield
    except error:
        return
    raise AssertionError(f"{rule}: {error.__name__} was not raised")


@contextmanager
def opened(open_handle: OpenHandle, count: int = 1, busy_timeout: float = 30.0) -> Generator[list[Backend], None, None]:
    """Handles that are closed afterwards."""
    handles = [open_handle(busy_timeout=busy_timeout) for _ in range(count)]
    try:
        yield handles
    finally:
        for handle in handles:
            handle.close()


def in_threads(tasks: Sequence[Callable[[], None]]) -> None:
    """Run tasks at once; the first error of any of them is raised."""
    errors: list[BaseException] = []
    start = threading.Barrier(len(tasks))

    def run(task: Callable[[], None]) -> None:
        try:
            start.wait()
            task()
        except BaseException as problem:
            errors.append(problem)

    threads = [threading.Thread(target=run, args=(task,)) for task in tasks]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def whole_items() -> list[ContextItem[Any]]:
    """One item of each type with every field filled, and one with the least."""
    items = [make_item("least", type=declared, tenant="a") for declared in (User,)]
    zone = timezone(timedelta(hours=5, minutes=45))
    for number, declared in enumerate(BUILTIN_TYPES):
        items.append(
            sealed(
                ContextItem(
                    type=declared,
                    id=f"whole-{number}",
                    source="retriever `é` 🦊",
                    _body='{"total": 1.5, "note": "ü"}',
                    media_type="application/json",
                    labels=Labels(
                        tenant="a",
                        subject="u\u00fc7",
                        sensitivity=Sensitivity(number % 4),
                        scopes=frozenset({"orders:read", "b", "a"}),
                    ),
                    session="s 1",
                    turn="t1",
                    seq=number + 1,
                    created=NOW + timedelta(microseconds=number),
                    observed_at=datetime(1999, 12, 31, 23, 59, 59, 999999, tzinfo=zone),
                    expires_at=datetime(9999, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
                    key="order:1842",
                    version="v\u00b2",
                    integrity=70,
                    derived_from=("least", "somewhere else"),
                    via="promote:envelope,size",
                    parts=(
                        ToolCall(id="c1", name="look_up", arguments='{"id": 1, "who": "🦊"}'),
                        Media(mime="image/png", url="data:image/png;base64,AA==", digest="00ff", tokens=85),
                        Media(mime="audio/wav", url="https://example.org/a.wav"),
                        Opaque(provider="anthropic", json='{"type":"thinking","signature":"x\\u0000"}'),
                        Slot(name="order", item_id="least"),
                    ),
                    call_id="c0",
                    attrs=(("section", "2\r\n"), ("title", "Refunds \U0001f98a")),
                )
            )
        )
    return items


def items_come_back_as_they_were(open_handle: OpenHandle) -> None:
    """Every field of every kind of item is read back equal, by its own digest too."""
    with opened(open_handle, 2) as (writer, reader):
        items = whole_items()
        equal(add(writer, *items), [item.id for item in items], "insert gives the ids in order")
        for backend in (writer, reader):
            found = backend.get([item.id for item in items], ("a",))
            for item in items:
                equal(found[item.id], item, "an item is read back equal")
                equal(found[item.id].computed_digest(), item.digest, "what is read back has its digest")
                equal(found[item.id].type, item.type, "the type is a class, the same one")
        equal([item.id for item in writer.items(("a",))], [item.id for item in items], "items() has all")


def text_is_kept_to_the_character(open_handle: OpenHandle) -> None:
    """No text is normalised, trimmed or cut, up to 16 MiB."""
    large = ("0123456789abcdef" * 64 + "\r\n🦊") * (LARGEST // 1030)
    texts = (*TEXTS, large)
    with opened(open_handle, 2) as (writer, reader):
        add(writer, *(make_item(f"t{number}", text) for number, text in enumerate(texts)))
        for number, text in enumerate(texts):
            if body(reader.get([f"t{number}"], ("a",))[f"t{number}"]) != text:
                raise AssertionError(f"text number {number} is not kept to the character")
        with writer.write("a") as tx:
            read = [found.text for found in tx.texts_since(0, frozenset({"tool_output"}), ("a",))]
        if read != list(texts):
            raise AssertionError("texts_since gives texts to the character")


def what_cannot_be_kept_everywhere_is_refused(open_handle: OpenHandle) -> None:
    """NUL and lone surrogates are refused by each backend alike, wherever they stand; nothing is written."""
    with opened(open_handle) as (backend,):
        for bad in ("head\x00tail", "place \udc81 name", "icon \ud83d broken"):
            for field in ("text", "source", "key", "session", "tenant", "subject"):
                item = _holding(field, bad)
                with refused(InputError, f"{bad!r} as {field}"), backend.write(item.labels.tenant) as tx:
                    if field != "tenant":
                        tx.insert([row(make_item("good"))])
                    tx.insert([row(item)])
            with refused(InputError, f"{bad!r} as a document's id"), backend.write("a") as tx:
                tx.put(Document(kind="k", id=bad, body=""))
            with refused(InputError, f"{bad!r} in the log"), backend.write("a") as tx:
                tx.log([LogEntry(at=NOW, kind="k", body=bad)])
            with refused(InputError, f"{bad!r} in an event"), backend.write("a") as tx:
                tx.emit(Event(at=NOW, source=bad))
            with refused(InputError, f"{bad!r} as a session"), backend.write("a") as tx:
                tx.next_seq(bad, 1)
            equal(backend.get(["bad", "good", bad], ("a", bad)), {}, "nothing was written")
            equal(backend.session_items(bad, ("a",)), [], "such a name finds nothing")
            equal(list(backend.items(("a",), key=bad)), [], "such a key finds nothing")
            equal(backend.document("k", bad, ("a",)), None, "such an id finds nothing")


def _holding(field: str, bad: str) -> ContextItem[Any]:
    values = {"text": "good", "source": "x", "key": "k", "session": "s", "tenant": "a", "subject": "u", field: bad}
    return ContextItem(
        type=ToolOutput,
        id="bad",
        source=values["source"],
        _body=values["text"],
        labels=Labels(tenant=values["tenant"], subject=values["subject"]),
        session=values["session"],
        key=values["key"],
        created=NOW,
    )


def moments_keep_zone_and_microseconds(open_handle: OpenHandle) -> None:
    """A moment is the same one to the microsecond, whatever zone it was given in."""
    moments = [
        datetime(2026, 3, 29, 2, 30, 0, 1, tzinfo=timezone(timedelta(hours=-11))),
        datetime(1969, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
        datetime(1, 1, 2, 0, 0, 0, 1, tzinfo=UTC),
        datetime(9999, 12, 30, 0, 0, 0, 999999, tzinfo=timezone(timedelta(hours=14))),
    ]
    with opened(open_handle, 2) as (writer, reader):
        add(
            writer,
            *(
                make_item(f"m{number}", created=moment, observed_at=moment, expires_at=moment)
                for number, moment in enumerate(moments)
            ),
        )
        with writer.write("a") as tx:
            tx.log([LogEntry(at=moment, kind="test", body="{}") for moment in moments])
            for moment in moments:
                tx.emit(Event(at=moment))
        for number, moment in enumerate(moments):
            item = reader.get([f"m{number}"], ("a",))[f"m{number}"]
            equal((item.created, item.observed_at, item.expires_at), (moment,) * 3, "a moment is kept")
            equal(item.created.utcoffset(), timedelta(0), "what is read back is in UTC")
        equal([entry.at for entry in reader.logged(("a",))], moments, "a moment in the log is kept")
        equal([event.at for event in _events(reader, ("a",), 4)], moments, "a moment of an event is kept")


def session_order_is_the_sequence(open_handle: OpenHandle) -> None:
    """A session is ordered by its numbers; neither ids, nor timestamps, nor the order of writing matter."""
    shuffle = random.Random(7).sample(range(1, 301), 300)
    with opened(open_handle) as (backend,):
        for start in range(0, 300, 100):
            numbers = shuffle[start : start + 100]
            add(
                backend,
                *(
                    make_item(f"{(n * 7919) % 1000}-{n}", session="s", seq=n, created=NOW - timedelta(seconds=n))
                    for n in numbers
                ),
                make_item(f"other-{start}", session="s2", seq=start + 1),
                make_item(f"none-{start}"),
            )
        add(backend, make_item("neighbour", session="s", seq=5, tenant="b"), tenant="b")
        equal([item.seq for item in backend.session_items("s", ("a",))], list(range(1, 301)), "in order")
        page = backend.session_items("s", ("a",), after=17, limit=3)
        equal([item.seq for item in page], [18, 19, 20], "after and limit count sequence numbers")
        equal(backend.session_items("s", ("a",), after=300), [], "nothing after the last")
        equal(len(backend.session_items("s2", ("a",))), 3, "another session has its own items")


def sequences_count_per_session(open_handle: OpenHandle) -> None:
    """A session's numbers start at 1, are consecutive, its own in each tenant, and undone with a write."""
    with opened(open_handle, 2) as (backend, other):
        with backend.write("a") as tx:
            equal((tx.next_seq("s", 3), tx.next_seq("s", 1), tx.next_seq("t", 2)), (1, 4, 1), "numbers")
            equal((tx.next_seq(None, 1), tx.next_seq("", 1)), (1, 1), "no session and an empty name differ")
        with other.write("b") as tx:
            equal(tx.next_seq("s", 1), 1, "each tenant counts its own sessions")
        with refused(_Stop, "the error leaves the write"), backend.write("a") as tx:
            equal(tx.next_seq("s", 10), 5, "numbers go on")
            raise _Stop
        with other.write("a") as tx:
            equal(tx.next_seq("s", 1), 5, "numbers of an undone write are given again")


class _Stop(Exception):
    pass


def an_identity_is_taken_once(open_handle: OpenHandle) -> None:
    """A second row of the same identity is not written, and the first one's id is returned."""
    with opened(open_handle, 2) as (backend, other):
        with backend.write("a") as tx:
            ids = tx.insert(
                [
                    row(make_item("first"), "c", "same"),
                    row(make_item("second", derived_from=("p",)), "c", "same"),
                    row(make_item("third")),
                ]
            )
            equal(ids, ["first", "first", "third"], "within one call the first wins")
            equal(tx.insert([row(make_item("fourth"), "c", "same")]), ["first"], "within one write too")
            equal(tx.identities([key("same"), key("none")]), {key("same"): "first"}, "identities() knows it")
        with other.write("a") as tx:
            again = [
                row(make_item("fifth", derived_from=("p",)), "c", "same"),
                row(make_item("sixth"), "", "new"),
            ]
            equal(tx.insert(again), ["first", "sixth"], "through another handle too")
            equal(
                tx.insert([row(make_item("first"), "c", "same")]),
                ["first"],
                "the identity counts before the id",
            )
        with other.write("b") as tx:
            equal(tx.identities([key("same")]), {}, "an identity is known in its own tenant only")
            equal(tx.insert([row(make_item("b1", tenant="b"), "c", "same")]), ["b1"], "each tenant has its own")
        found = backend.get(["first", "second", "fourth", "fifth"], ("a",))
        equal(list(found), ["first"], "what lost is not stored")
        equal(backend.children(["p"], ("a",)), {}, "what lost is nobody's child")


def an_id_exists_once(open_handle: OpenHandle) -> None:
    """An id that exists is a ConflictError, and nothing of that insert is written, even if it is caught."""
    with opened(open_handle) as (backend,):
        add(backend, make_item("taken"))
        with refused(ConflictError, "an id exists"):
            add(backend, make_item("new"), make_item("taken"))
        with backend.write("a") as tx:
            tx.insert([row(make_item("before"))])
            with refused(ConflictError, "an id twice in one insert"):
                tx.insert([row(make_item("twin"), "", "x"), row(make_item("twin"))])
            with refused(ConflictError, "an id of this write"):
                tx.insert([row(make_item("more", derived_from=("p",))), row(make_item("before"))])
            tx.insert([row(make_item("after"))])
        found = backend.get(["new", "taken", "before", "twin", "more", "after"], ("a",))
        equal(sorted(found), ["after", "before", "taken"], "only whole inserts are stored")
        equal(backend.children(["p"], ("a",)), {}, "and no trace of the others")


def an_error_leaves_nothing(open_handle: OpenHandle) -> None:
    """A write that is left by an error leaves nothing of any kind behind, and the next one works."""
    with opened(open_handle, 2) as (backend, reader):
        add(backend, make_item("kept"))
        before = _everything(reader)
        with refused(_Stop, "the error leaves the write"), backend.write("a") as tx:
            tx.insert([row(make_item("gone", session="s", seq=1, derived_from=("kept",)), "c", "i")])
            tx.log([LogEntry(at=NOW, kind="test", body="{}")])
            tx.put(Document(kind="k", id="d", body="{}"))
            tx.revoke(["kept"], NOW, "test")
            tx.emit(Event(at=NOW, source="x"))
            tx.erase(["kept"], NOW, "test")
            raise _Stop
        equal(_everything(reader), before, "nothing is left")
        equal(_everything(backend), before, "nothing is left in the handle that wrote")
        with backend.write("a") as tx:
            equal(tx.origins([key("c")], ("a",)), {}, "no origin is left")
            equal(tx.insert([row(make_item("gone"), "c", "i")]), ["gone"], "the id and the identity are free")


def _everything(backend: Backend, tenants: Tenants = ("a",)) -> list[Any]:
    return [
        list(backend.items(tenants)),
        backend.session_items("s", tenants),
        backend.children(["kept"], tenants),
        list(backend.logged(tenants)),
        list(backend.documents("k", tenants)),
        backend.revoked(["kept"], tenants),
        backend.tombstones(tenants),
        list(backend.events(tenants)),
    ]


def origins_are_the_first_of_each_type(open_handle: OpenHandle) -> None:
    """Of known content: the first registration of each type in the tenants asked for, in order."""
    with opened(open_handle) as (backend,):
        add_rows(backend, None, row(make_item("n1", tenant=None, type=Memory), "c"))
        add_rows(
            backend,
            "a",
            row(make_item("a1", type=User, source="user"), "c"),
            row(make_item("a2"), "c"),
            row(make_item("a3", type=User), "c"),
            row(make_item("a4", type=Memory), "c"),
            row(make_item("a5"), "other"),
            row(make_item("a6")),
        )
        add_rows(backend, "b", row(make_item("b1", tenant="b", type=Evidence), "c"))
        with backend.write("a") as tx:
            tx.insert([row(make_item("a7", type=Evidence), "c")])
            found = tx.origins([key("c"), key("unknown"), b""], ("a", None))
            equal(list(found), [key("c")], "known content only")
            origins = found[key("c")]
            equal([o.item_id for o in origins], ["n1", "a1", "a2", "a7"], "first of each type, in order")
            equal(
                (origins[1].type, origins[1].source, origins[1].tenant, origins[0].tenant),
                ("user", "user", "a", None),
                "what an origin says",
            )
            equal(sorted({o.ordinal for o in origins}), [o.ordinal for o in origins], "ordinals rise")
            equal(
                [o.item_id for o in tx.origins([key("c")], ("a",))[key("c")]],
                ["a1", "a2", "a4", "a7"],
                "tenant",
            )
            equal([o.item_id for o in tx.origins([key("c")], ("b",))[key("c")]], ["b1"], "another tenant's")


def add_rows(backend: Backend, tenant: str | None, *rows: NewRow, exclusive: bool = False) -> list[str]:
    """Write rows in one transaction."""
    with backend.write(tenant, exclusive=exclusive) as tx:
        return tx.insert(rows)


def texts_are_read_once_in_order(open_handle: OpenHandle) -> None:
    """Reading texts from a cursor on gives each text of the types and tenants once, in order of writing."""
    with opened(open_handle, 2) as (backend, other):
        wanted = frozenset({"tool_output", "memory"})
        cursor = 0
        seen: list[str] = []
        for number in range(150):
            kind = (ToolOutput, Memory, User)[number % 3]
            add((backend, other)[number % 2], make_item(f"i{number}", f"text {number}", type=kind))
            if number % 40 == 0:
                add(other, make_item(f"n{number}", tenant=None), tenant=None)
                add(other, make_item(f"b{number}", tenant="b"), tenant="b")
            if number % 25 == 24:
                with backend.write("a", exclusive=True) as tx:
                    tx.insert([row(make_item(f"own{number}"))])
                    for text in tx.texts_since(cursor, wanted, ("a", None)):
                        if text.ordinal <= cursor:
                            raise AssertionError("ordinals rise")
                        cursor = text.ordinal
                        seen.append(text.item_id)
        expected = [f"i{n}" for n in range(150) if n % 3 != 2]
        equal([item_id for item_id in seen if item_id[0] == "i"], expected, "each text once, in order")
        equal([i for i in seen if i[0] == "n"], [f"n{n}" for n in range(0, 150, 40)], "the deployment's too")
        equal([i for i in seen if i[:3] == "own"], [f"own{n}" for n in range(24, 150, 25)], "and its own")
        with backend.write("a", exclusive=True) as tx:
            equal(list(tx.texts_since(cursor, wanted, ("a", None))), [], "nothing after the last")


def documents_count_versions(open_handle: OpenHandle) -> None:
    """A document's version counts its writes, and a write may demand the version that it expects."""
    with opened(open_handle, 2) as (backend, other):
        first = Document(kind="k", id="d", session="s", body='{"a": "ü🦊"}')
        with backend.write("a") as tx:
            equal(tx.put(first, expected=0), 1, "a new document has version 1")
            equal(tx.put(first), 2, "each write counts")
        with other.write("a") as tx:
            equal(tx.put(Document(kind="k", id="d", body="2"), expected=2), 3, "the expected version")
        for expected in (0, 2, 4):
            with refused(ConflictError, "another version"), other.write("a") as tx:
                tx.put(Document(kind="k", id="d", body="no"), expected=expected)
        try:
            with other.write("a") as tx:
                tx.put(Document(kind="k", id="d", body="no"), expected=7)
        except ConflictError as problem:
            equal((problem.fields["expected"], problem.fields["actual"]), (7, 3), "the error has both versions")
        stored = Document(kind="k", id="d", tenant="a", version=3, body="2")
        equal(backend.document("k", "d", ("a",)), stored, "what is read is what was written last")
        with refused(ConflictError, "a document that is not there"), other.write("a") as tx:
            tx.put(Document(kind="k", id="new", body="no"), expected=1)
        with backend.write("a") as tx:
            tx.put(Document(kind="k", id="c", session="s", body="c"))
            tx.put(Document(kind="k", id="B", session="s2", body="b"))
            tx.put(Document(kind="other", id="a", session="s", body="o"))
            equal(
                tx.put(Document(kind="k", id="e", version=9, body="e")),
                9,
                "an imported one keeps its version",
            )
        equal([d.id for d in other.documents("k", ("a",))], ["B", "c", "d", "e"], "in order of id")
        equal([d.id for d in other.documents("k", ("a",), session="s")], ["c"], "of a session")
        equal([d.id for d in other.documents(None, ("a",))], ["B", "a", "c", "d", "e"], "of every kind")
        equal(other.document("k", "missing", ("a",)), None, "no such document")


def the_log_is_a_chain(open_handle: OpenHandle) -> None:
    """Decisions are numbered in order and linked; an exported chain is taken in only as it was."""
    from rung.storage.chain import broken_links, link_of

    with opened(open_handle, 2) as (backend, other):
        for number in range(6):
            with (backend, other)[number % 2].write("ab"[number // 3]) as tx:
                entries = [LogEntry(at=NOW, kind=f"k{i}", body=f'{{"n":{number},"i":{i}}}') for i in range(3)]
                tx.log(entries[:2])
                tx.log(entries[2:])
        chain: list[LogEntry] = []
        for tenant in "ab":
            chain = list(other.logged((tenant,)))
            equal(len(chain), 9, "every entry is there")
            equal(broken_links(chain), [], "every link verifies")
            equal(chain[0].link, link_of(b"", chain[0]), "a chain starts from nothing")
            equal([e.number for e in chain], sorted({e.number for e in chain}), "numbers rise")
            equal([e.tenant for e in chain], [tenant] * 9, "a chain is of one tenant")
        whole = list(backend.logged(("a", "b")))
        equal([e.number for e in whole], sorted(e.number for e in whole), "two chains in order of number")
        equal(list(backend.logged(("a",), after=chain[-1].number)), [], "after")
        equal([e.kind for e in backend.logged(("b",), kinds=frozenset({"k1"}))], ["k1"] * 3, "kinds")
        altered = [msgspec.structs.replace(chain[0], body="{}"), *chain[1:]]
        equal(broken_links(altered), [altered[0]], "an altered entry is named")
        equal(broken_links(chain[:3] + chain[4:]), [chain[4]], "so is one that a removed entry came before")
        with refused(IntegrityError, "a foreign link"), backend.write("c") as tx:
            tx.log([msgspec.structs.replace(entry, tenant="c") for entry in chain])
        with refused(IntegrityError, "a chain from its middle"), backend.write("a") as tx:
            tx.log([msgspec.structs.replace(entry, tenant=None) for entry in chain[3:]])


def an_exported_log_is_taken_in_as_it_was(open_source: OpenHandle, open_target: OpenHandle) -> None:
    """A whole chain keeps its numbers and links in another storage, and goes on from there."""
    from rung.storage.chain import broken_links

    with opened(open_source) as (source,), opened(open_target) as (target,):
        with source.write("x") as tx:
            tx.log([LogEntry(at=NOW, kind="test", body="0")])
        with source.write("a") as tx:
            tx.log([LogEntry(at=NOW, kind="test", body=str(number)) for number in range(5)])
        chain = list(source.logged(("a",)))
        with target.write("a") as tx:
            tx.log(chain)
            tx.log([LogEntry(at=NOW, kind="test", body="after")])
        taken = list(target.logged(("a",)))
        equal(taken[:5], chain, "a chain is taken in as it was")
        equal(broken_links(taken), [], "and goes on")


def revoked_items_stay_readable(open_handle: OpenHandle) -> None:
    """Revoking marks items of the tenant, once: the first reason stays; the item is still read."""
    with opened(open_handle, 2) as (backend, other):
        add(backend, make_item("i1"), make_item("i2"))
        add(backend, make_item("b1", tenant="b"), tenant="b")
        with backend.write("a") as tx:
            tx.revoke(["i1", "b1", "unknown"], NOW, "first")
        with other.write("a") as tx:
            tx.revoke(["i1"], NOW, "second")
        equal(other.revoked(["i1", "i2", "b1", "unknown"], ("a", "b", None)), {"i1": "first"}, "revoked")
        equal(other.revoked(["i1"], ("b", None)), {}, "another tenant does not see it")
        equal(list(other.get(["i1"], ("a",))), ["i1"], "it stays readable")


def _events(backend: Backend, tenants: Tenants, count: int, after: int = 0, wait: float = 10.0) -> list[Event]:
    deadline = time.monotonic() + wait
    while True:
        found = backend.events(tenants, after=after)
        if len(found) >= count or time.monotonic() > deadline:
            return found
        time.sleep(0.005)


def events_reach_other_handles(open_handle: OpenHandle) -> None:
    """What one handle invalidates every other handle hears of, once, in order, without restarting."""
    with opened(open_handle, 3) as (writer, near, far):
        equal(near.events(("a", None)), [], "no events yet")
        event = Event(at=NOW, source="orders", key="order:1", version="v2", item_id="i", reason="changed")
        with writer.write("a") as tx:
            number = tx.emit(event)
            tx.emit(Event(at=NOW, source="second"))
        with far.write(None) as tx:
            tx.emit(Event(at=NOW, source="everywhere"))
        with far.write("b") as tx:
            tx.emit(Event(at=NOW, source="other tenant"))
        for backend in (near, far, writer):
            found = _events(backend, ("a", None), 3)
            equal([e.source for e in found], ["orders", "second", "everywhere"], "in order, own tenants only")
            equal(found[0], msgspec.structs.replace(event, number=number, tenant="a"), "an event is whole")
            equal([e.number for e in found], sorted({e.number for e in found}), "numbers rise")
        last = found[-1].number
        equal(near.events(("a", None), after=last), [], "nothing new")
        with writer.write("a") as tx:
            tx.emit(Event(at=NOW, source="late"))
        equal([e.source for e in _events(near, ("a", None), 1, after=last)], ["late"], "news arrive")


def tenants_never_cross(open_handle: OpenHandle) -> None:
    """Names that look alike, None and the empty one are distinct tenants to every query."""
    with opened(open_handle, 2) as (writer, reader):
        for number, tenant in enumerate(LOOKALIKES):
            with writer.write(tenant) as tx:
                equal(tx.next_seq("s", 2), 1, "sessions of two tenants are two sessions")
                equal(tx.origins([key("c")], (tenant,)), {}, "origins of another tenant are not seen")
                first = make_item(f"{number}-1", f"secret {number}", tenant=tenant, session="s", seq=1, key="k")
                second = make_item(f"{number}-2", tenant=tenant, session="s", seq=2, derived_from=("0-1", first.id))
                ids = tx.insert([row(first, "c", "i"), row(second)])
                equal(ids, [first.id, second.id], "identities of two tenants do not meet")
                tx.put(Document(kind="k", id="d", session="s", body=str(number)), expected=0)
                tx.log([LogEntry(at=NOW, kind="test", body=str(number))])
                tx.revoke([first.id, *(f"{n}-1" for n in range(number))], NOW, str(number))
                tx.emit(Event(at=NOW, source=str(number)))
                own = [text.text for text in tx.texts_since(0, frozenset({"tool_output"}), (tenant,))]
                equal(own, [f"secret {number}", "text"], "texts of another tenant are not seen")
                equal(tx.erase([f"{n}-1" for n in range(number)], NOW, "no"), [], "another's cannot be erased")
        every = [f"{number}-{place}" for number in range(len(LOOKALIKES)) for place in (1, 2)]
        equal(reader.tenants(), tuple(sorted(name for name in LOOKALIKES if name is not None)), "tenants()")
        for number, tenant in enumerate(LOOKALIKES):
            own, only = [f"{number}-1", f"{number}-2"], (tenant,)
            reader.get(every, LOOKALIKES)  # a cache that is warm with everybody's items
            equal(list(reader.get(every, only)), own, f"get of {tenant!r}")
            equal([item.id for item in reader.session_items("s", only)], own, f"session of {tenant!r}")
            equal([item.id for item in reader.items(only)], own, f"items of {tenant!r}")
            equal([item.id for item in reader.items(only, key="k")], own[:1], f"items by key of {tenant!r}")
            equal([stored.item.id for stored in reader.rows(only)], own, f"rows of {tenant!r}")
            equal(reader.children(["0-1"], only), {"0-1": (own[1],)}, f"children in {tenant!r}")
            equal(reader.revoked(every, only), {own[0]: str(number)}, f"revoked in {tenant!r}")
            equal([event.source for event in _events(reader, only, 1)], [str(number)], f"events of {tenant!r}")
            equal([entry.body for entry in reader.logged(only)], [str(number)], f"log of {tenant!r}")
            found = reader.document("k", "d", only)
            equal(None if found is None else found.body, str(number), f"document of {tenant!r}")
            equal([d.body for d in reader.documents("k", only, session="s")], [str(number)], "documents")
            equal([(c.tenant, c.items) for c in reader.census(only)], [(tenant, 2)], "census")
        equal(reader.get(every, ("nobody",)), {}, "an unknown tenant has nothing")
        equal(reader.get(every, ()), {}, "no tenant, no items")
        equal(list(reader.items(())), [], "no tenant, no list")


def a_write_belongs_to_one_tenant(open_handle: OpenHandle) -> None:
    """What names another tenant than the write's is refused, the deployment's own included."""
    with opened(open_handle) as (backend,):
        for tenant, other in (("a", "b"), ("a", None), (None, "a")):
            with refused(ScopeError, "an item of another tenant"):
                add(backend, make_item("x", tenant=other), tenant=tenant)
        with refused(ScopeError, "a document of another tenant"), backend.write("a") as tx:
            tx.put(Document(kind="k", id="d", tenant="b", body=""))
        with refused(ScopeError, "a log entry of another tenant"), backend.write("a") as tx:
            tx.log([LogEntry(at=NOW, tenant="b", kind="k", body="")])
        with refused(ScopeError, "an event of another tenant"), backend.write("a") as tx:
            tx.emit(Event(at=NOW, tenant="b"))
        equal(backend.tenants(), (), "nothing was written")


def items_are_found_by_what_they_are(open_handle: OpenHandle) -> None:
    """items() gives what matches every filter, in order of writing, from a place on, up to a limit."""
    with opened(open_handle) as (backend,):
        items = [
            make_item(
                f"i{number}",
                type=(ToolOutput, Evidence, User)[number % 3],
                source=f"s{number % 2}",
                key=f"k{number % 5}" if number % 7 else None,
                subject=f"u{number % 4}" if number % 2 else None,
                expires_at=NOW + timedelta(seconds=number) if number % 3 == 0 else None,
            )
            for number in range(200)
        ]
        for start in range(0, 200, 50):
            add(backend, *items[start : start + 50])
        add(backend, make_item("n", tenant=None, key="k1"), tenant=None)

        def expect(found: Iterable[ContextItem[Any]], keep: Callable[[int], bool], rule: str) -> None:
            equal([item.id for item in found], [f"i{n}" for n in range(200) if keep(n)], rule)

        expect(backend.items(("a",)), lambda n: True, "all, in order of writing")
        expect(backend.items(("a",), types=frozenset({"user", "evidence"})), lambda n: n % 3 > 0, "types")
        expect(backend.items(("a",), types=frozenset()), lambda n: False, "no types")
        expect(backend.items(("a",), source="s1"), lambda n: n % 2 == 1, "source")
        expect(backend.items(("a",), key="k3"), lambda n: n % 7 > 0 and n % 5 == 3, "key")
        expect(backend.items(("a",), subject="u1"), lambda n: n % 4 == 1, "subject")
        expect(
            backend.items(("a",), key="k3", types=frozenset({"user"}), source="s0"),
            lambda n: n % 7 > 0 and n % 5 == 3 and n % 3 == 2 and n % 2 == 0,
            "several filters",
        )
        expect(
            backend.items(("a",), expired_at=NOW + timedelta(seconds=90)),
            lambda n: n % 3 == 0 and n <= 90,
            "expiry",
        )
        expect(backend.items(("a",), limit=7), lambda n: n < 7, "limit")
        expect(backend.items(("a",), limit=0), lambda n: False, "limit of nothing")
        rows = list(backend.rows(("a",)))
        place = rows[99].ordinal
        expect(backend.items(("a",), after=place), lambda n: n > 99, "after an ordinal")
        expect((stored.item for stored in backend.rows(("a",), after=place)), lambda n: n > 99, "rows after")
        equal([i.id for i in backend.items(("a", None), key="k1")][-1], "n", "the deployment's too")


def lineage_is_known_both_ways(open_handle: OpenHandle) -> None:
    """Children are found from any of their parents, each once, in order of writing."""
    with opened(open_handle, 2) as (backend, other):
        add(backend, make_item("p"), make_item("q"))
        add(other, make_item("z", derived_from=("p", "q", "p")), make_item("m", derived_from=("p",)))
        add(backend, make_item("a", derived_from=("q", "z")))
        equal(backend.children(["none"], ("a",)), {}, "no children")
        expected = {"p": ("z", "m"), "q": ("z", "a"), "z": ("a",)}
        equal(backend.children(["p", "q", "z", "m"], ("a",)), expected, "children")
        add(other, make_item("late", derived_from=("p",)))
        equal(backend.children(["p"], ("a",)), {"p": ("z", "m", "late")}, "children that came later")


def erased_items_leave_tombstones(open_handle: OpenHandle) -> None:
    """Erasing removes what an item said and everything it was found by, through every handle."""
    with opened(open_handle, 2) as (backend, other):
        secret = make_item(
            "i1",
            "a secret",
            session="s",
            seq=1,
            key="k",
            subject="u",
            attrs=(("title", "t"),),
            derived_from=("p",),
        )
        add_rows(
            backend,
            "a",
            row(secret, "c", "i"),
            row(make_item("i2", derived_from=("i1",), session="s", seq=2)),
            row(make_item("i3"), "c"),
        )
        add_rows(backend, "b", row(make_item("b1", tenant="b"), "c"))
        equal(sorted(other.get(["i1", "i2"], ("a",))), ["i1", "i2"], "read before")
        with backend.write("a") as tx:
            gone = tx.erase(["i1", "unknown", "b1", "i1"], NOW, "asked for")
            equal(gone, ["i1"], "the ids that were erased")
        with backend.write("a") as tx:
            equal(tx.erase(["i1"], NOW, "again"), [], "once only")
            equal(
                [o.item_id for o in tx.origins([key("c")], ("a",))[key("c")]],
                ["i3"],
                "the next is the origin",
            )
            equal(tx.identities([key("i")]), {}, "the identity is free")
            read = [text.item_id for text in tx.texts_since(0, frozenset({"tool_output"}), ("a",))]
            equal(read, ["i2", "i3"], "its text is gone")
        _events(other, ("a",), 1)
        deadline = time.monotonic() + 10
        while other.get(["i1"], ("a",)) and time.monotonic() < deadline:
            time.sleep(0.01)
        for handle in (backend, other):
            equal(list(handle.get(["i1", "i2"], ("a",))), ["i2"], "it is not read any more")
            equal([i.id for i in handle.session_items("s", ("a",))], ["i2"], "nor in its session")
            equal([i.id for i in handle.items(("a",))], ["i2", "i3"], "nor in a list")
            equal(
                list(handle.items(("a",), key="k")) + list(handle.items(("a",), subject="u")),
                [],
                "nor by its keys",
            )
            equal(handle.children(["i1", "p"], ("a",)), {"i1": ("i2",), "p": ("i1",)}, "its lineage stays")
            equal([(e.item_id, e.reason) for e in handle.events(("a",))], [("i1", "erased")], "an event tells")
            equal(handle.tombstones(("b", None)), {}, "a tombstone is its tenant's")
            stone = handle.tombstones(("a",), ["i1", "i2"])["i1"]
            expected = Tombstone(
                ordinal=stone.ordinal,
                id="i1",
                type="tool_output",
                source="tool:lookup",
                tenant="a",
                created=NOW,
                derived_from=("p",),
                digest=secret.digest,
                at=NOW,
                reason="asked for",
            )
            equal(stone, expected, "what remains")
            equal(handle.tombstones(("a",)), {"i1": expected}, "all tombstones")
            audited = [(found.id, found.problem) for found in handle.audit(("a",))]
            equal(audited, [("i2", None), ("i3", None)], "what is left verifies")
            equal([(c.items, c.erased) for c in handle.census(("a",))], [(2, 1)], "the census counts it apart")
        with backend.write("a") as tx:
            tx.insert([row(make_item("i5"), "new", "new")])
            equal(tx.erase(["i5", "i3"], NOW, "at once"), ["i5", "i3"], "also what the same write brought in")
            equal(tx.origins([key("new"), key("c")], ("a",)), {}, "the write itself sees it")
            equal(tx.insert([row(make_item("i6"), "c", "new")]), ["i6"], "and may take the identity")
        equal(list(other.tombstones(("a",))), ["i1", "i3", "i5"], "tombstones in order of writing")
        add_rows(backend, "a", row(make_item("i4"), "c", "i"))
        with refused(ConflictError, "the id of an erased item stays taken"):
            add(backend, make_item("i1"))
        backend.vacuum()


def tombstones_are_taken_in(open_handle: OpenHandle) -> None:
    """Tombstones of an export are written with their lineage, among the items in order."""
    with opened(open_handle, 2) as (backend, other):
        stones = [
            Tombstone(
                id=f"t{number}",
                type="tool_output",
                source="x",
                tenant="a",
                created=NOW,
                derived_from=("p",),
                digest=b"d" * 32,
                at=NOW,
                reason="r",
            )
            for number in range(3)
        ]
        with backend.write("a") as tx:
            tx.insert([row(make_item("i1"))])
            tx.restore(stones[:2])
            tx.restore(stones[2:])
            tx.insert([row(make_item("i2"))])
        found = list(other.tombstones(("a",)).values())
        equal([msgspec.structs.replace(stone, ordinal=0) for stone in found], stones, "kept, in order")
        equal(other.children(["p"], ("a",)), {"p": ("t0", "t1", "t2")}, "with their lineage")
        with refused(ConflictError, "an id that exists"), backend.write("a") as tx:
            tx.restore([msgspec.structs.replace(stones[0], id="i1")])


def a_handle_that_is_altered_alters_nothing(open_handle: OpenHandle) -> None:
    """What is stored is the backend's own: an item that was given cannot reach in afterwards."""
    with opened(open_handle) as (backend,):
        item = make_item("i1", parts=(Slot(name="n", item_id="x"),))
        kept = msgspec.structs.replace(
            item, labels=msgspec.structs.replace(item.labels), parts=(Slot(name="n", item_id="x"),)
        )
        add(backend, item)
        vars(ContextItem)["source"].__set__(item, "forged")
        vars(Labels)["tenant"].__set__(item.labels, "b")
        vars(Slot)["item_id"].__set__(item.parts[0], "forged")
        equal(backend.get(["i1"], ("a",)), {"i1": kept}, "the stored item is as it was")


def an_exclusive_write_runs_alone(open_handle: OpenHandle) -> None:
    """While an exclusive write of a tenant is open, no other write of the tenant or the deployment ends."""
    for tenant, others in (("a", ("a", None)), (None, ("a", "b", None))):
        with opened(open_handle, 2) as (backend, other):
            ended: list[str] = []

            def write_there(name: str | None, prefix: str, ended: list[str], other: Backend) -> None:
                add(other, make_item(f"{prefix}{name}", tenant=name), tenant=name)
                ended.append("other")

            threads: list[threading.Thread] = []
            with backend.write(tenant, exclusive=True) as tx:
                for name in others:
                    threads.append(threading.Thread(target=write_there, args=(name, f"{tenant}-", ended, other)))
                    threads[-1].start()
                time.sleep(0.15)
                tx.insert([row(make_item(f"{tenant}-own", tenant=tenant))])
                ended.append("exclusive")
            for thread in threads:
                thread.join()
            equal(ended, ["exclusive", *["other"] * len(others)], "nobody ended before")


def an_exclusive_write_sees_what_came_before(open_handle: OpenHandle) -> None:
    """Of a protected and an untrusted write of one content, at once, the later one sees the earlier one."""
    with opened(open_handle, 2) as (backend, other):
        for attempt in range(25):
            content = f"c{attempt}"
            seen: list[bool] = []

            def protected(content: str = content, seen: list[bool] = seen) -> None:
                with backend.write("a", exclusive=True) as tx:
                    origins = tx.origins([key(content)], ("a", None))
                    texts = [text.item_id for text in tx.texts_since(0, frozenset({"tool_output"}), ("a", None))]
                    seen.append(bool(origins))
                    equal(f"u-{content}" in texts, bool(origins), "origins and texts agree")
                    if not origins:
                        tx.insert([row(make_item(f"p-{content}", type=Evidence), content)])

            def untrusted(content: str = content) -> None:
                add_rows(other, "a", row(make_item(f"u-{content}"), content))

            in_threads([protected, untrusted] if attempt % 2 else [untrusted, protected])
            with backend.write("a", exclusive=True) as tx:
                first = tx.origins([key(content)], ("a",))[key(content)][0].item_id
            equal(first, f"u-{content}" if seen[0] else f"p-{content}", "whoever came first is the origin")


def waiting_is_bounded(open_handle: OpenHandle) -> None:
    """A write that cannot begin in time raises StoreBusyError, and works afterwards."""
    with opened(open_handle, 2, busy_timeout=0.2) as (backend, other):
        problems: list[Exception] = []

        def wait() -> None:
            try:
                add(other, make_item("late"))
            except StoreBusyError as problem:
                problems.append(problem)

        with backend.write("a", exclusive=True):
            thread = threading.Thread(target=wait)
            thread.start()
            thread.join(20)
        equal(len(problems), 1, "the wait ends with a typed error")
        equal(add(other, make_item("late")), ["late"], "and the next write works")


def one_write_in_a_thread(open_handle: OpenHandle) -> None:
    """A second write inside an open one would wait for itself: it is refused at once."""
    with opened(open_handle) as (backend,):
        with backend.write("a") as tx:
            tx.insert([row(make_item("outer"))])
            with refused(StoreError, "a write within a write"), backend.write("a"):
                pass
            equal(backend.get(["outer"], ("a",)), {}, "readers see what has ended only")
        equal(list(backend.get(["outer"], ("a",))), ["outer"], "the outer write is whole")


def the_first_registration_wins(open_handle: OpenHandle) -> None:
    """Of many threads that register one identity at once, one writes, and all are told the same id."""
    with opened(open_handle, 2) as handles:
        for attempt in range(8):
            ids: list[str] = []

            def register(number: int, attempt: int = attempt, ids: list[str] = ids) -> None:
                new = row(make_item(f"{attempt}-{number}"), "c", f"same {attempt}")
                ids.extend(add_rows(handles[number % 2], "a", new))

            in_threads([partial(register, number) for number in range(12)])
            equal(len(set(ids)), 1, "all are told the same id")
            stored = handles[0].get([f"{attempt}-{number}" for number in range(12)], ("a",))
            equal(list(stored), [ids[0]], "and that one is stored")


def turns_stay_together(open_handle: OpenHandle) -> None:
    """Of turns that are written to one session at once, none is lost and each is contiguous."""
    with opened(open_handle, 2) as handles:

        def write_turns(number: int) -> None:
            for turn in range(5):
                with handles[number % 2].write("a") as tx:
                    size = 2 + (number + turn) % 3
                    first = tx.next_seq("s", size)
                    tx.insert(
                        [
                            row(
                                make_item(
                                    f"{number}-{turn}-{n}",
                                    session="s",
                                    seq=first + n,
                                    turn=f"{number}-{turn}",
                                )
                            )
                            for n in range(size)
                        ]
                    )

        in_threads([partial(write_turns, number) for number in range(8)])
        items = handles[0].session_items("s", ("a",))
        expected = sum(2 + (number + turn) % 3 for number in range(8) for turn in range(5))
        equal([item.seq for item in items], list(range(1, expected + 1)), "no number is lost or doubled")
        turns = [item.turn for item in items]
        changes = sum(1 for one, other in pairwise(turns) if one != other)
        equal(changes, 39, "each turn is contiguous")


def many_threads_never_see_another_tenant(
    open_handle: OpenHandle, *, threads: int = 64, sessions: int = 3, tenants: int = 50
) -> None:
    """Threads that write and read sessions of many tenants at once find their own and nothing else."""
    with opened(open_handle, 2) as handles:

        def work(number: int) -> None:
            backend = handles[number % 2]
            for turn in range(sessions):
                tenant = f"t{(number * 31 + turn) % tenants}"
                other = f"t{(number * 31 + turn + 1) % tenants}"
                session = f"shared-{turn}"
                with backend.write(tenant) as tx:
                    seq = tx.next_seq(session, 2)
                    origins = tx.origins([key("same")], (tenant,)).get(key("same"), ())
                    equal({o.tenant for o in origins} <= {tenant}, True, "origins are the tenant's")
                    one = make_item(f"{number}-{turn}-1", f"of {tenant}", tenant=tenant, session=session, seq=seq)
                    two = make_item(
                        f"{number}-{turn}-2", f"of {tenant}", tenant=tenant, session=session, seq=seq + 1,
                        derived_from=("shared parent", one.id),
                    )  # fmt: skip
                    ids = tx.insert([row(one, "same", f"shared {turn}"), row(two, "same")])
                    tx.log([LogEntry(at=NOW, kind="test", body=tenant)])
                for item in backend.session_items(session, (tenant,)):
                    equal(
                        (item.labels.tenant, body(item)),
                        (tenant, f"of {tenant}"),
                        "a session is the tenant's",
                    )
                equal(backend.get([*ids, two.id], (other,)), {}, "another tenant does not get it")
                equal(list(backend.get([two.id], (tenant,))), [two.id], "its own is there at once")
                if turn % 32 == 0:
                    for children in backend.children(["shared parent"], (tenant,)).values():
                        for item in backend.get(children, (tenant, other)).values():
                            equal(item.labels.tenant, tenant, "children are the tenant's")
                    equal({e.tenant for e in backend.logged((tenant,))}, {tenant}, "the log is the tenant's")

        in_threads([partial(work, number) for number in range(threads)])
        from rung.storage.chain import broken_links

        written = 0
        for tenant in handles[0].tenants():
            equal(broken_links(handles[1].logged((tenant,))), [], "each chain verifies")
            written += sum(1 for item in handles[1].items((tenant,)) if item.derived_from)
        equal(written, threads * sessions, "nothing is lost")


def closing_is_final_and_harmless(open_handle: OpenHandle) -> None:
    """Closing twice is allowed; another handle goes on."""
    backend, other = open_handle(), open_handle()
    add(backend, make_item("i1"))
    backend.close()
    backend.close()
    if other is not backend:
        equal(list(other.get(["i1"], ("a",))), ["i1"], "another handle goes on")
    other.close()


CHECKS: tuple[Check, ...] = (
    items_come_back_as_they_were,
    text_is_kept_to_the_character,
    what_cannot_be_kept_everywhere_is_refused,
    moments_keep_zone_and_microseconds,
    session_order_is_the_sequence,
    sequences_count_per_session,
    an_identity_is_taken_once,
    an_id_exists_once,
    an_error_leaves_nothing,
    origins_are_the_first_of_each_type,
    texts_are_read_once_in_order,
    documents_count_versions,
    the_log_is_a_chain,
    revoked_items_stay_readable,
    events_reach_other_handles,
    tenants_never_cross,
    a_write_belongs_to_one_tenant,
    items_are_found_by_what_they_are,
    lineage_is_known_both_ways,
    erased_items_leave_tombstones,
    tombstones_are_taken_in,
    a_handle_that_is_altered_alters_nothing,
    an_exclusive_write_runs_alone,
    an_exclusive_write_sees_what_came_before,
    waiting_is_bounded,
    one_write_in_a_thread,
    the_first_registration_wins,
    turns_stay_together,
    many_threads_never_see_another_tenant,
    closing_is_final_and_harmless,
)
"""Every check of one storage; `an_exported_log_is_taken_in_as_it_was` takes two."""
