"""What is kept, for how long, in which order it is shown, and how it is forgotten."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from rung import (
    ContextItem,
    ContextStore,
    Endorsement,
    Evidence,
    InputError,
    ToolOutput,
    TransformError,
    TurnIntent,
    compile_context,
)
from rung.cli.app import app
from rung.errors import UnknownItemError
from rung.memory import CATEGORIES, MemoryStore, Proposal, Remembered, explicit
from rung.records.item import body
from rung.storage.maintenance import verify
from rung.store import core
from rung.transforms.validators import Failure

from .conftest import Clock


@pytest.fixture
def view(store: ContextStore) -> ContextStore:
    return store.scope(tenant="acme", subject="u7", session="s1")


@pytest.fixture
def memory(view: ContextStore) -> MemoryStore:
    return MemoryStore(view)


def texts(items: Sequence[Any]) -> list[str]:
    return [body(getattr(item, "item", item)) for item in items]


def test_a_memory_says_who_said_it_and_what_it_is(view: ContextStore, memory: MemoryStore) -> None:
    order = view.add(ToolOutput, {"order": 1842, "gift": True}, source="tool:orders", key="order:1842")
    kept = memory.remember(
        view.promote(order, Evidence), "Order 1842 is a gift.", category="fact", confidence=0.8, id="gift"
    )
    record = memory.show("gift")
    assert (record.id, record.category, record.origin, record.confidence) == (kept.id, "fact", "tool:orders", 0.8)
    assert (kept.type.name, kept.source, kept.key, kept.subject) == ("memory", "memory", "order:1842", "u7")
    assert [item.type.name for item in view.ancestors(kept)] == ["evidence", "tool_output"]
    assert memory.show(kept.id[:8]).id == kept.id


def test_a_memory_lives_for_its_freshness_class(view: ContextStore, memory: MemoryStore, clock: Clock) -> None:
    kept = memory.remember(view.user("I prefer tea"), category="preference")
    soon = memory.remember(view.user("I am away today"), expires_at=clock.now + timedelta(hours=8))
    assert memory.show(kept.id).expires_at == clock.now + timedelta(days=30)
    assert memory.show(soon.id).expires_at == clock.now + timedelta(hours=8)
    clock.pass_(days=1)
    assert texts(memory.list()) == ["I prefer tea"]
    assert memory.show(soon.id).state == "expired"
    clock.pass_(days=30)
    assert memory.search("tea") == []
    assert [one.state for one in memory.list(all=True)] == ["stale", "expired"]


def test_what_is_said_again_is_kept_once_and_lives_on(view: ContextStore, memory: MemoryStore, clock: Clock) -> None:
    first = memory.remember(view.user("I prefer tea"), category="preference")
    clock.pass_(days=2)
    assert memory.remember(view.user("i PREFER tea."), category="preference").id == first.id
    clock.pass_(days=20)
    renewed = memory.remember(view.user("I prefer tea!"), category="preference")
    assert renewed.id != first.id
    assert [one.id for one in memory.list()] == [renewed.id]
    assert memory.show(first.id).superseded_by == renewed.id


def test_a_surer_word_replaces_the_same_word(view: ContextStore, memory: MemoryStore) -> None:
    memory.remember(view.user("I prefer tea"), confidence=0.4)
    memory.remember(view.user("I prefer tea"), confidence=0.9)
    assert [one.confidence for one in memory.list()] == [0.9]


def test_a_revoked_update_gives_way_and_a_forgotten_one_takes_the_old_along(
    view: ContextStore, memory: MemoryStore, clock: Clock
) -> None:
    memory.remember(view.user("My home is Bern"), key="home")
    clock.pass_(minutes=1)
    poisoned = view.user("My home is Mallory's")
    memory.remember(poisoned, key="home")
    view.revoke(poisoned, reason="not said by the person")
    assert texts(memory.list()) == ["My home is Bern"]
    clock.pass_(minutes=1)
    memory.remember(view.user("My home is Basel"), key="home")
    gone = memory.forget(memory.search("home")[0].item.id)
    assert len(gone.ids) == 2
    assert gone.erased
    assert memory.list() == [], "the older one does not come back"


def test_forgetting_erases_the_text_and_the_log_still_verifies(
    store: ContextStore, view: ContextStore, memory: MemoryStore
) -> None:
    kept = memory.remember(view.user("I prefer tea"))
    kept_too = memory.remember(view.user("I prefer windows to aisles"))
    memory.forget(kept.id, reason="asked for")
    memory.forget(kept_too.id, reason="asked for", keep_text=True)
    with pytest.raises(UnknownItemError):
        memory.show(kept.id)
    assert memory.show(kept_too.id).state == "revoked"
    assert memory.search("tea windows") == []
    assert verify(core(store)[0].backend).is_whole
    assert texts([view.get(item.id) for item in view.items() if item.type.name == "user"]) == [
        "I prefer tea",
        "I prefer windows to aisles",
    ], "what was said in the conversation stays"


async def test_memories_are_grouped_by_category_in_one_order(view: ContextStore) -> None:
    memory = MemoryStore(view, always=CATEGORIES)
    for category in ("feedback", "interaction", "fact", "preference", "standing"):
        memory.remember(view.user(f"a {category} about delivery"), category=category)  # type: ignore[arg-type]
    turn = await compile_context(view, [memory.source()], items=[view.user("delivery")], target="text")
    shown = [line.split('category="')[1].split('"')[0] for line in turn.text.splitlines() if "category=" in line]
    assert shown == ["standing requests", "customer preferences", "known facts", "previous interactions", "feedback"]


async def test_a_source_is_capped_by_count_tokens_and_score(view: ContextStore) -> None:
    memory = MemoryStore(view, limit=10)
    for number in range(30):
        memory.remember(view.user(f"parcel {number} went to the locker"))
    memory.remember(view.user("The weather was fine"))
    assert len(memory.search("parcel locker")) == 10
    assert all(hit.score >= 0.3 for hit in memory.search("parcel locker", limit=100))
    assert texts(memory.search("weather")) == ["The weather was fine"]
    turn = await compile_context(view, [memory.source()], items=[view.user("parcel locker")])
    assert sum(row.type == "memory" and row.state == "included" for row in turn.manifest.entries) == 10
    long = MemoryStore(view, name="notes", most_bytes=20_000)
    for number in range(4):
        long.remember(view.user(f"note {number} " + "about parcels and lockers " * 80))
    turn = await compile_context(view, [long.source()], items=[view.user("note about parcels")])
    assert 0 < turn.manifest.totals.context <= 1_000


async def test_a_memory_that_is_written_in_mid_session_leaves_the_prefix_alone(
    store: ContextStore, view: ContextStore, memory: MemoryStore
) -> None:
    rules = store.instruct("Answer briefly.")
    view.user("I prefer tea. What do you have?")
    view.assistant("Tea and coffee.")
    asked = view.user("Which tea?")
    before = await compile_context(view, [memory.source()], items=[rules, asked], history="session")
    memory.remember(asked, "Which tea?", category="interaction")
    after = await compile_context(view, [memory.source()], items=[rules, asked], history="session", previous=before)
    assert after.manifest.prefix is not None
    head = [message["content"] for message in before.request["messages"][:-1]]
    assert [message["content"] for message in after.request["messages"][: len(head)]] == head


async def test_a_turn_sees_its_own_persons_memories_and_only_in_its_intent(store: ContextStore) -> None:
    memory = MemoryStore(store)
    for subject, pet in (("u1", "cat"), ("u2", "dog")):
        view = store.scope(tenant="acme", subject=subject, session=f"s-{subject}")
        memory.scope(tenant="acme", subject=subject).remember(view.user(f"my pet is a {pet}"))
    view = store.scope(tenant="acme", subject="u2", session="new")
    asked = view.user("my pet")
    turn = await compile_context(view, [memory.source()], items=[asked], target="text")
    assert "is a dog" in turn.text
    assert "is a cat" not in turn.text
    barred = await compile_context(
        view, [memory.source()], TurnIntent("other", sources=frozenset({"orders"})), items=[asked]
    )
    assert barred.manifest.totals.context == 0
    nobody = store.scope(tenant="acme", session="anonymous")
    turn = await compile_context(nobody, [memory.source()], items=[nobody.user("my pet")])
    assert turn.manifest.totals.context == 0


async def test_a_standing_request_is_carried_word_for_word_in_every_turn(
    view: ContextStore, memory: MemoryStore
) -> None:
    said = view.user("Do not push to main until I say so. And refactor parser.py now.")
    memory.mark_standing(said, "Do not push to main until I say so.")
    turn = await compile_context(view, [memory.source()], items=[view.user("Something else entirely")], target="text")
    assert "Do not push to main until I say so." in turn.text
    assert "refactor" not in turn.text
    memory.forget(memory.standing()[0].id)
    turn = await compile_context(view, [memory.source()], items=[view.user("Something else again")], target="text")
    assert "push" not in turn.text


def test_an_approval_stands_for_what_was_kept_of_the_same_words(view: ContextStore, memory: MemoryStore) -> None:
    said = view.user("Do not push to main until I say so.")
    kept = memory.mark_standing(said)
    made = memory.mark_standing(said, endorsement=Endorsement(by="u7", reason="their own request"))
    assert [item.id for item in memory.standing()] == [made.id]
    assert memory.show(kept.id).state == "revoked"


async def test_an_approved_standing_request_is_an_instruction_until_it_is_forgotten(
    store: ContextStore, view: ContextStore, memory: MemoryStore, clock: Clock
) -> None:
    said = view.user("Do not push to main until I say so.")
    with pytest.raises(InputError):
        memory.mark_standing(view.assistant("I will not push."))
    with pytest.raises(InputError):
        memory.mark_standing(said, "Do not push to develop.")
    made = memory.mark_standing(said, endorsement=Endorsement(by="u7", reason="their own request"))
    assert made.type.name == "instruction"
    clock.pass_(days=365)
    other = store.scope(tenant="acme", subject="u7", session="s2")
    turn = await compile_context(other, [memory.source()], items=[other.user("Go on")])
    assert turn.request["messages"][0] == {"role": "system", "content": "Do not push to main until I say so."}
    assert [one.category for one in memory.list()] == ["standing"]
    memory.forget(made.id)
    turn = await compile_context(other, [memory.source()], items=[other.user("Go on")])
    assert turn.manifest.totals.instructions == 0


@pytest.mark.parametrize(
    ("said", "kept"),
    [
        ("My name is Ada.", [("fact", "user:name", "My name is Ada.")]),
        ("Hello! I prefer tea.", [("preference", None, "I prefer tea.")]),
        ("Please remember that order 1842 is a gift.", [("fact", None, "order 1842 is a gift.")]),
        ("Remember: never push to main.", [("standing", None, "never push to main.")]),
        ("Do not push to main until I say so.", [("standing", None, "Do not push to main until I say so.")]),
        ("From now on answer in German.", [("standing", None, "From now on answer in German.")]),
        ("I now live in Bern", [("fact", "user:home", "I now live in Bern")]),
        ("Never mind.", []),
        ("Is my name Ada?", []),
        ("Where is my order 1842?", []),
        ("Do not worry.", []),
        ("My name is " + "x" * 500, []),
    ],
)
def test_what_a_person_says_outright_is_found(
    store: ContextStore, said: str, kept: list[tuple[str, str | None, str]]
) -> None:
    view = store.scope(subject="u7")
    found = explicit([view.user(said), view.assistant("My name is Eve. I prefer coffee.")])
    assert [(one.category, one.key, one.text) for one in found] == kept


async def test_after_a_turn_the_applications_own_extract_is_asked_and_refusals_are_passed_over(
    store: ContextStore, view: ContextStore
) -> None:
    def no_health(proposal: Proposal) -> Failure | None:
        if "allergic" in proposal.text:
            return Failure(validator="no_health", code="health", detail="health is not kept")
        return None

    async def extract(items: Sequence[ContextItem[Any]]) -> list[Remembered]:
        return [Remembered(items=(item,)) for item in items]

    memory = MemoryStore(store, extract=extract, validators=[no_health])
    items = [view.user("I am allergic to nuts"), view.user("I like tea"), view.assistant("Noted.")]
    kept = await memory.after_turn(view, items)
    assert texts(kept) == ["I like tea"]
    assert {refusal.code for refusal in view.refusals()} == {"health", "no_transition"}
    assert await memory.after_turn(store.scope(tenant="acme"), items) == []
    assert await MemoryStore(store, extract=None).after_turn(view, items) == []


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda memory, item: memory.remember(item, "x" * 2_001), "too_large"),
        (lambda memory, item: memory.remember(item, " \n"), "empty"),
    ],
)
def test_what_is_too_long_or_empty_is_refused(view: ContextStore, memory: MemoryStore, call: Any, code: str) -> None:
    with pytest.raises(TransformError) as caught:
        call(memory, view.user("x" * 3_000))
    assert caught.value.failures[0].code == code


@pytest.mark.parametrize(
    "wrong",
    [
        {"category": "mood"},
        {"confidence": 1.5},
        {"id": "taken"},
    ],
    ids=lambda given: next(iter(given)),
)
def test_wrong_values_are_named(view: ContextStore, memory: MemoryStore, wrong: dict[str, Any]) -> None:
    memory.remember(view.user("a"), id="taken")
    with pytest.raises(InputError):
        memory.remember(view.user("b"), **wrong)


def test_invalidation_reaches_memories(view: ContextStore, memory: MemoryStore, clock: Clock) -> None:
    kept = memory.remember(view.user("the price is 10"), key="price")
    clock.pass_(minutes=1)
    view.invalidate(key="price")
    assert memory.search("price") == []
    assert memory.show(kept.id).state == "invalidated"


def test_the_command_line_lists_shows_and_forgets(tmp_path: Path) -> None:
    where = str(tmp_path / "agent.db")
    with ContextStore.open(where, clock=lambda: datetime.now(UTC)) as store:
        view = store.scope(tenant="acme", subject="u7")
        memory = MemoryStore(view)
        memory.remember(view.user("My name is X"), key="user:name")
        kept = memory.remember(view.user("My name is Y"), key="user:name")
    mine = ["--subject", "u7", "--tenant", "acme"]
    runner = CliRunner()

    def run(*words: str) -> str:
        done = runner.invoke(app, ["memory", *words], catch_exceptions=False)
        assert done.exit_code == 0, done.output
        return done.output

    assert "My name is Y" in run("list", where, *mine)
    assert "My name is X" not in run("list", where, *mine)
    assert "My name is X  [superseded]" in run("list", where, *mine, "--all")
    assert run("list", where, "--subject", "u8", "--tenant", "acme") == "0 memories\n"
    shown = run("show", where, kept.id[:8], *mine)
    assert "category       fact" in shown
    assert "from           user" in shown
    assert "2 items revoked and erased" in run("forget", where, kept.id, *mine, "--reason", "asked for")
    assert run("list", where, *mine, "--all") == "0 memories\n"
    with pytest.raises(UnknownItemError):
        run("show", where, kept.id, *mine)
