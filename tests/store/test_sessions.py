"""Sessions: appends that expect a version, and what erasure takes along."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from tests.store.conftest import Opener

from rung import ContextStore, ContextTypeError, Draft, Media, ToolCall, ToolOutput, User
from rung.errors import ConflictError, InputError, StoreError
from rung.ledger.backend import Backend
from rung.storage.maintenance import erase
from rung.storage.memory import MemoryBackend
from rung.store import core


def turn(text: str) -> list[Draft]:
    return [Draft(type=User, content=text, source="user")]


def test_an_append_that_expects_another_version_writes_nothing(store: ContextStore) -> None:
    view = store.scope(session="s1")
    assert view.last_seq() == 0
    view.add_many(turn("m0"), expected=0)
    seen = view.last_seq()
    view.add_many(turn("a1"), expected=seen)
    with pytest.raises(ConflictError, match="another turn came first") as refused:
        view.add_many(turn("b1"), expected=seen)
    assert (refused.value.expected, refused.value.actual) == (seen, seen + 1)
    assert [item.reveal("test") for item in view.items()] == ["m0", "a1"]
    view.add_many(turn("b1"), expected=view.last_seq())
    assert [item.seq for item in view.items()] == [1, 2, 3]


def test_of_many_appends_that_expect_one_version_one_wins(store: ContextStore) -> None:
    view = store.scope(session="s1")
    outcomes: list[str] = []

    def attempt(name: str) -> None:
        try:
            view.add_many(turn(name), expected=0)
            outcomes.append("won")
        except ConflictError:
            outcomes.append("conflict")

    threads = [threading.Thread(target=attempt, args=(f"t{n}",)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcomes) == ["conflict"] * 7 + ["won"]
    assert len(list(view.items())) == 1


SECRET = "The customer's passport number is kept in the second drawer of the archive."


def test_erasure_takes_the_fingerprints_along(open_store: Opener) -> None:
    store = open_store()
    item = store.add(ToolOutput, SECRET, source="tool:notes")
    with pytest.raises(ContextTypeError):
        store.instruct("Note: " + SECRET)  # now it is in this process's index
    ledger, _ = core(store)
    backend: Backend = ledger.backend
    erase(backend, None, [item.id], at=store.now(), reason="asked to")
    assert store.instruct("Note: " + SECRET).id
    assert [entry.id for entry in backend.tombstones((None,)).values()] == [item.id]


@pytest.mark.parametrize("erased", ["the request", "the call", "the result", "the turn in progress"])
@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize("target", ["openai-chat", "anthropic"])
def test_what_was_erased_is_in_no_further_turn(open_store: Opener, erased: str, elsewhere: bool, target: str) -> None:
    store = open_store()
    rules = store.instruct("Answer.")
    view = store.scope(tenant="acme", session="s1")
    said = {
        "the request": view.user("An earlier question. " + SECRET),
        "the call": view.assistant("", parts=[ToolCall(id="c1", name="f", arguments=f'{{"about": "{SECRET}"}}')]),
        "the result": view.add(ToolOutput, SECRET, source="tool:f", call_id="c1"),
        "the answer": view.assistant("An answer."),
        "the turn in progress": view.user("And now? " + SECRET),
    }
    options: dict[str, Any] = {"history": "session", "target": target, "verify": "full"}
    assert str(view.compile([rules], **options).request).count(SECRET[-30:]) == 4
    ledger, _ = core(store)
    if elsewhere:  # a second store on the same storage: in memory the same backend, on a file another handle
        in_memory = ledger.backend.name == "memory"
        ledger, _ = core(ContextStore(backend=ledger.backend) if in_memory else open_store())
    erase(ledger.backend, "acme", [said[erased].id], at=store.now(), reason="asked to")
    view.user("Another question.")
    turn = view.compile([rules], **options)
    assert turn.request == seen_anew(store).compile([rules], **options).request
    # A result whose call is gone goes along.
    assert str(turn.request).count(SECRET[-30:]) == (2 if erased == "the call" else 3)
    assert said[erased].id not in turn.manifest.json()


def test_an_item_that_is_erased_while_it_is_read_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    store = ContextStore()
    item = store.add(ToolOutput, SECRET, source="tool:notes")
    backend = core(store)[0].backend
    unpacked = MemoryBackend._unpacked

    def meanwhile(self: MemoryBackend, *args: Any) -> Any:
        monkeypatch.undo()
        erase(backend, None, [item.id], at=store.now(), reason="asked to")  # as another thread would
        return unpacked(self, *args)

    monkeypatch.setattr(MemoryBackend, "_unpacked", meanwhile)
    backend.get([item.id], (None,))
    assert backend.get([item.id], (None,)) == {}


def test_a_session_is_its_tenants_alone(store: ContextStore) -> None:
    rules = store.instruct("Answer.")
    store.scope(session="s1").user("The deployment's own question.")
    view = store.scope(tenant="acme", session="s1")
    view.user("A question.")
    assert [part["content"] for part in view.compile([rules], history="session").request["messages"]] == [
        "Answer.",
        "A question.",
    ]


@pytest.mark.parametrize(
    "part",
    [
        ToolCall(id="c1", name="f", arguments={"a": 1}),  # type: ignore[arg-type]
        Media(mime="image/png", url="https://x.test/a.png", tokens=3.0),  # type: ignore[arg-type]
        {"id": "c1"},
        "c1",
    ],
)
def test_a_part_that_could_not_be_read_back_is_refused(store: ContextStore, part: Any) -> None:
    view = store.scope(session="s1")
    with pytest.raises(InputError, match="parts"):
        view.assistant("", parts=[part])
    assert list(view.items()) == []


def seen_anew(store: ContextStore) -> ContextStore:
    """The same session as a process sees it that has read nothing before."""
    ledger, reach = core(store.scope(tenant="acme", session="s1"))
    return ContextStore(backend=ledger.backend).scope(tenant=reach.tenant, session=reach.session)


def test_a_revocation_names_the_turns_and_follows_them_on_request(store: ContextStore) -> None:
    view = store.scope(session="s1")
    rules = store.instruct("Answer.")
    seen = view.add(ToolOutput, "The code is 4711.", source="tool:x", session="s1")
    view.user("What is the code?", turn="t1")
    turn = view.compile([rules, seen], history="session", verify="full")
    assert turn.manifest.exchange == "t1"
    view.record(turn)
    said = view.assistant("It is 4711.", turn="t1")
    assert view.shown_in(seen) == ["t1"]
    assert view.revoke(seen, reason="the tool was wrong") == [seen.id]
    assert not view.is_revoked(said)
    assert view.revoke(seen, reason="and what was said of it", through_turns=True) == [seen.id, said.id]
    assert view.is_revoked(said)


def test_a_write_is_used_once() -> None:
    """Entered again it would write again what it has written."""
    backend = MemoryBackend({})
    write = backend.write("acme")
    with write as tx:
        tx.next_seq("s", 3)
    with pytest.raises(StoreError, match="another one"), write:
        pass
    with backend.write("acme") as tx:
        assert tx.next_seq("s", 1) == 4


@pytest.mark.parametrize("key", [5, 0, True, b"k"])
def test_an_event_names_texts(store: ContextStore, key: Any) -> None:
    with pytest.raises(InputError, match="`key` is of kind"):
        store.invalidate(key=key)
