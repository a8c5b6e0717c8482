"""Sessions: appends that expect a version, and what erasure takes along."""

from __future__ import annotations

import threading

import pytest
from tests.store.conftest import Opener

from rung import ContextStore, ContextTypeError, Draft, ToolOutput, User
from rung.errors import ConflictError
from rung.ledger.backend import Backend
from rung.storage.maintenance import erase
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
