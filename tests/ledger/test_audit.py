"""The decision log: who answered for what, what is taken back, and what another policy would have decided."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rung import (
    ContextStore,
    ContextTypeError,
    Endorsement,
    Evidence,
    InputError,
    Instruction,
    InstructionSource,
    LaunderingError,
    PolicySet,
    ScopeError,
    Sensitivity,
    Summary,
    Template,
    ToolOutput,
    TransformError,
    default_policy,
    load_policy,
)
from rung.ledger.audit import EndorsementRecord, export_log
from rung.ledger.backend import LogEntry
from rung.ledger.content import text_digest
from rung.storage.chain import broken_links
from rung.storage.maintenance import erase, verify
from rung.store import core
from rung.transforms.replay import Difference, Replay, Unjudged

RULE = "Refunds above 100 EUR need the approval of a supervisor, always."


class Time:
    """Each look at it is a second later."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        self.now += timedelta(seconds=1)
        return self.now


@pytest.fixture(params=["memory", "sqlite"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[ContextStore]:
    where = ":memory:" if request.param == "memory" else tmp_path / "a.db"
    with ContextStore.open(where, clock=Time()) as opened:
        yield opened


# endorsements


def endorsed(store: ContextStore) -> tuple[Any, Any]:
    """A rule that a tool's page holds too, and that somebody answered for."""
    page = store.add(ToolOutput, RULE + " (from the handbook)", source="tool:wiki")
    with pytest.raises(LaunderingError):
        store.add(Instruction, RULE, source="handbook")
    word = Endorsement(by="ada", reason="it is our own handbook", covers=(page.id,))
    return page, store.add(Instruction, RULE, source="handbook", endorsement=word)


def test_an_endorsement_is_listed_with_who_why_and_what_it_covers(store: ContextStore) -> None:
    page, rule = endorsed(store)
    (given,) = store.endorsements()
    assert given == EndorsementRecord(
        number=given.number,
        at=given.at,
        kind="endorsement",
        item=rule.id,
        by="ada",
        reason="it is our own handbook",
        digest=text_digest(RULE),
        covers=(page.id,),
    )
    assert not given.is_revoked


def test_taking_an_endorsement_back_revokes_what_it_let_in(store: ContextStore) -> None:
    page, rule = endorsed(store)
    short = store.transform(rule, to=Instruction, content="Ask a supervisor about refunds.")
    (given,) = store.endorsements()
    assert store.revoke_endorsement(given.number, by="bob", reason="the page was forged") == [rule.id, short.id]
    assert [store.is_revoked(item) for item in (page, rule, short)] == [False, True, True]
    (after,) = store.endorsements()
    assert (after.revoked_by, after.revoked_because) == ("bob", "the page was forged")
    assert after.revoked_at is not None
    assert after.revoked_at > given.at
    with pytest.raises(ScopeError, match=f"{rule.id}: revoked"):
        store.compile([rule, store.user("May I?")], budget=500)
    assert verify(core(store)[0].backend).is_whole


@pytest.mark.parametrize(
    ("number", "by", "reason", "says"),
    [(99, "bob", "wrong", "no endorsement has the number 99"), (1, "", "wrong", "`by`"), (1, "bob", " ", "`reason`")],
)
def test_taking_back_names_what_is_missing(store: ContextStore, number: int, by: str, reason: str, says: str) -> None:
    with pytest.raises(InputError, match=says):
        store.revoke_endorsement(number, by=by, reason=reason)


def test_a_tenant_sees_no_other_tenants_endorsements(store: ContextStore) -> None:
    endorsed(store.scope(tenant="acme"))
    (given,) = store.scope(tenant="acme").endorsements()
    other = store.scope(tenant="globex")
    assert other.endorsements() == []
    with pytest.raises(InputError, match="no endorsement"):
        other.revoke_endorsement(given.number, by="bob", reason="not mine")


# declassification


def secret(store: ContextStore) -> Any:
    return store.add(
        ToolOutput,
        {"order": 1842, "status": "shipped"},
        source="tool:orders",
        sensitivity=Sensitivity.RESTRICTED,
        scopes={"orders:read", "staff"},
        subject="u7",
        key="order:1842",
        attrs={"title": "Order"},
    )


def test_declassifying_gives_a_new_item_for_a_wider_audience(store: ContextStore) -> None:
    item = secret(store)
    wider = store.declassify(
        item, sensitivity=Sensitivity.PERSONAL, scopes={"orders:read"}, by="ada", reason="the customer asks"
    )
    assert (wider.sensitivity, wider.scopes, wider.subject) == (Sensitivity.PERSONAL, {"orders:read"}, "u7")
    assert (item.sensitivity, item.scopes) == (Sensitivity.RESTRICTED, {"orders:read", "staff"})
    assert (wider.type, wider.media_type, wider.key, wider.attr("title")) == (
        ToolOutput, "application/json", "order:1842", "Order",
    )  # fmt: skip
    assert wider.reveal("compared") == item.reveal("compared")
    assert (wider.derived_from, wider.via) == ((item.id,), "declassify:")
    (given,) = store.endorsements()
    assert (given.kind, given.item, given.by, given.covers) == ("declassification", wider.id, "ada", (item.id,))
    assert given.digest == text_digest(item.reveal("compared"))
    assert verify(core(store)[0].backend).is_whole


def test_one_label_is_widened_and_the_other_stays(store: ContextStore) -> None:
    item = secret(store)
    assert store.declassify(item, scopes=(), by="ada", reason="r").sensitivity is Sensitivity.RESTRICTED
    lower = store.declassify(item, sensitivity=Sensitivity.PUBLIC, by="ada", reason="r")
    assert lower.scopes == {"orders:read", "staff"}


def test_a_declassification_is_taken_back_like_an_endorsement(store: ContextStore) -> None:
    item = secret(store)
    wider = store.declassify(item, scopes=(), by="ada", reason="r")
    (given,) = store.endorsements()
    store.revoke_endorsement(given.number, by="bob", reason="too wide")
    assert (store.is_revoked(wider), store.is_revoked(item)) == (True, False)


def test_what_is_derived_afterwards_has_the_wider_audience(store: ContextStore) -> None:
    wider = store.declassify(secret(store), sensitivity=Sensitivity.INTERNAL, scopes=(), by="ada", reason="r")
    short = store.transform(wider, to=Summary, content="It was shipped.")
    assert (short.sensitivity, short.scopes) == (Sensitivity.INTERNAL, frozenset())


NOT_WIDER: dict[str, tuple[dict[str, Any], str]] = {
    "the same": ({}, "has this audience already"),
    "a scope more": ({"scopes": {"orders:read", "other"}}, "a declassification widens"),
    "nobody": ({"scopes": (), "by": " "}, "`by` of a declassification is empty"),
    "no reason": ({"scopes": (), "reason": ""}, "`reason` of a declassification is empty"),
    "another text": ({"scopes": (), "digest": "00"}, "bound to another text"),
}


@pytest.mark.parametrize(("call", "says"), NOT_WIDER.values(), ids=NOT_WIDER)
def test_what_is_no_declassification_is_refused(store: ContextStore, call: dict[str, Any], says: str) -> None:
    item = secret(store)
    with pytest.raises(InputError, match=says):
        store.declassify(item, **({"by": "ada", "reason": "r"} | call))
    assert store.endorsements() == []


def test_a_stricter_label_is_no_declassification(store: ContextStore) -> None:
    item = store.add(ToolOutput, "x", source="tool:t")
    with pytest.raises(InputError, match="a declassification widens"):
        store.declassify(item, sensitivity=Sensitivity.RESTRICTED, by="ada", reason="r")


def test_nothing_revoked_is_declassified(store: ContextStore) -> None:
    item = secret(store)
    store.revoke(item, reason="wrong")
    with pytest.raises(ContextTypeError, match="is revoked"):
        store.declassify(item, scopes=(), by="ada", reason="r")


def test_declassifying_endorses_nothing(store: ContextStore) -> None:
    """A wider audience is no higher integrity."""
    item = store.add(ToolOutput, RULE, source="tool:wiki", scopes={"staff"})
    wider = store.declassify(item, scopes=(), by="ada", reason="r")
    assert wider.integrity == item.integrity
    with pytest.raises(LaunderingError):
        store.add(Instruction, RULE, source="handbook")


# export


def test_the_log_is_exported_as_lines_that_still_verify(store: ContextStore) -> None:
    endorsed(store)
    secret(store.scope(tenant="acme"))
    backend = core(store)[0].backend
    lines = list(export_log(backend, (None, "acme")))
    assert all("\n" not in line and RULE not in line for line in lines)
    rows = [json.loads(line) for line in lines]
    assert {row["kind"] for row in rows} == {"registration", "refusal", "endorsement"}
    for tenant in (None, "acme"):
        entries = [
            LogEntry(
                number=row["number"],
                tenant=row["tenant"],
                at=datetime.fromisoformat(row["at"]),
                kind=row["kind"],
                body=msgspec.json.encode(row["body"], order="sorted").decode(),
                link=bytes.fromhex(row["link"]),
            )
            for row in rows
            if row["tenant"] == tenant
        ]
        assert entries == list(backend.logged((tenant,)))
        assert broken_links(entries) == []


# replay


def policy(text: str, folder: Path) -> PolicySet:
    path = folder / "other.toml"
    path.write_text(text, encoding="utf-8")
    return load_policy(path)


def everything(store: ContextStore) -> dict[str, Any]:
    """One of each decision."""
    made: dict[str, Any] = {}
    made["rules"] = store.instruct("Answer from the order and from nothing else.")
    template = Template("Talk about {order} only, please.")
    made["order"] = store.add(ToolOutput, {"status": "shipped"}, source="tool:orders", key="order:1")
    made["fact"] = store.promote(made["order"], Evidence)
    made["filled"] = store.add(Instruction, template.fill(order=made["fact"]), source="system")  # type: ignore[call-overload]
    made["short"] = store.transform([made["fact"], made["order"]], to=Summary, content="It was shipped.")
    made["page"], made["rule"] = endorsed(store)
    made["wider"] = store.declassify(secret(store), scopes=(), by="ada", reason="r")
    channel = InstructionSource(name="registry", loader=lambda _: "Once more: " + RULE)
    store.declare(channel)
    made["channel"] = store.load_instruction("registry")
    made["failed"] = store.add(ToolOutput, {"error": "no such order"}, source="tool:orders")
    with pytest.raises(TransformError):
        store.promote(made["failed"], Evidence)
    with pytest.raises(ContextTypeError):
        store.promote(made["failed"], Instruction)
    return made


def test_the_same_policy_decides_the_same(store: ContextStore) -> None:
    everything(store)
    backend = core(store)[0].backend
    before = list(backend.logged((None,)))
    found = store.replay(default_policy())
    assert found.differences == ()
    assert found.unjudged == ()
    assert found.judged >= 15
    assert list(backend.logged((None,))) == before, "a replay writes nothing"


def told(found: Replay, made: dict[str, Any]) -> set[tuple[str | None, str, str]]:
    names = {item.id: name for name, item in made.items()}
    return {(names.get(each.item or ""), each.after, each.code) for each in found.differences}


def test_a_transition_that_is_not_listed_would_be_refused_with_all_that_came_of_it(
    store: ContextStore,
) -> None:
    made = everything(store)
    rules = default_policy()
    fewer = msgspec.structs.replace(
        rules, transitions=tuple(each for each in rules.transitions if each.target != "evidence")
    )
    assert told(store.replay(fewer), made) == {
        ("fact", "refused", "no_transition"),
        ("filled", "refused", "parent_refused"),
        ("short", "refused", "parent_refused"),
    }


def test_a_rule_that_only_observes_would_have_let_pass(store: ContextStore, tmp_path: Path) -> None:
    made = everything(store)
    loose = policy('[rules]\nvalidators = "observe"\norigin = "observe"\nlaundering = "warn"\n', tmp_path)
    found = store.replay(loose)
    assert {(each.after, each.target, each.rule) for each in found.differences} == {
        ("allowed", "evidence", "validators"),
        ("allowed", "instruction", "laundering"),
    }
    assert all(each.item is None for each in found.differences)
    assert told(found, made) == {(None, "allowed", "reported_failure"), (None, "allowed", "shared_run")}


def test_a_longer_shared_run_would_have_let_pass(store: ContextStore, tmp_path: Path) -> None:
    endorsed(store)
    (only,) = store.replay(policy("[limits]\nshared_run = 200\n", tmp_path)).differences
    assert (only.before, only.after, only.code) == ("refused", "allowed", "shared_run")


def test_a_smaller_limit_names_the_items_that_are_too_large(store: ContextStore, tmp_path: Path) -> None:
    small = store.add(ToolOutput, "x" * 10, source="tool:t")
    large = store.add(ToolOutput, "x" * 1_000, source="tool:t")
    (only,) = store.replay(policy("[limits]\nitem_bytes = 100\n", tmp_path)).differences
    assert (only.item, only.after, only.rule) == (large.id, "refused", "input")
    assert small.id not in only.message


def test_a_store_under_a_loose_policy_learns_what_a_strict_one_would_refuse(tmp_path: Path) -> None:
    loose = policy('[rules]\norigin = "observe"\nlaundering = "observe"\n', tmp_path)
    store = ContextStore(loose, clock=Time())
    page = store.add(ToolOutput, RULE, source="tool:wiki")
    rule = store.add(Instruction, RULE, source="handbook")
    (only,) = store.replay(default_policy()).differences
    assert only == Difference(
        number=only.number,
        at=only.at,
        item=rule.id,
        target="instruction",
        source="handbook",
        before="allowed",
        after="refused",
        rule="origin",
        code="shared_whole",
        message=only.message,
    )
    assert page.id in only.message


def test_an_erased_item_cannot_be_judged(store: ContextStore) -> None:
    item = store.add(ToolOutput, "x", source="tool:t")
    ledger = core(store)[0]
    erase(ledger.backend, None, [item.id], at=ledger.now(), reason="asked")
    found = store.replay(default_policy())
    assert found == Replay(judged=0, differences=(), unjudged=(Unjudged(number=1, why="erased"),))


def test_a_tenant_replays_its_own_log(store: ContextStore) -> None:
    store.scope(tenant="acme").add(ToolOutput, "x", source="tool:t")
    store.scope(tenant="globex").add(ToolOutput, "y", source="tool:t")
    store.instruct("Be kind to everybody who asks.")
    assert store.scope(tenant="acme").replay(default_policy()).judged == 2


@pytest.mark.parametrize("rule", ["origin", "laundering", "produces", "transition", "validators"])
def test_replaying_is_deterministic(store: ContextStore, tmp_path: Path, rule: str) -> None:
    everything(store)
    loose: Callable[[], PolicySet] = lambda: policy(f'[rules]\n{rule} = "observe"\n', tmp_path)  # noqa: E731
    assert store.replay(loose()) == store.replay(loose())
