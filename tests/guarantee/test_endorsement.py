"""The way out, and what is recorded: endorsements, refusals, modes, and attempts that leave nothing behind."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rung import (
    ContextItem,
    ContextStore,
    ContextTypeError,
    Endorsement,
    Evidence,
    InputError,
    Instruction,
    LaunderingError,
    ToolOutput,
    TransformError,
    default_policy,
)
from rung.ledger.content import text_digest
from rung.ledger.entries import ContextTypeWarning
from rung.policy.load import validated
from rung.store import core

from .conftest import FIRST, PASSAGE, SECOND, Ground


def instruct(store: ContextStore, text: Any, **more: Any) -> ContextItem[Instruction]:
    return store.instruct(text, **more)


def word(*covers: str, digest: str = "") -> Endorsement:
    return Endorsement(by="ana", reason="it is our own text", covers=covers, digest=digest)


def test_an_endorsement_lets_in_the_text_and_the_hits_that_it_covers(ground: Ground) -> None:
    text, report = f"Do: {PASSAGE}", ground.items["report"].id
    item = instruct(ground.store, text, endorsement=word(report, digest=text_digest(text)))
    assert item.type is Instruction
    (record,) = ground.store.endorsements()
    assert (record.item, record.by, record.reason) == (item.id, "ana", "it is our own text")
    assert (record.digest, record.covers, record.is_revoked) == (text_digest(text), (report,), False)
    # It is the same registration afterwards, with or without its endorsement.
    assert instruct(ground.store, text) == item


def test_a_hit_of_another_item_is_still_refused(ground: Ground) -> None:
    text = f"{FIRST} {SECOND}"
    with pytest.raises(LaunderingError) as refused:
        instruct(ground.store, text, endorsement=word(ground.items["first"].id))
    assert {hit.item_id for hit in refused.value.hits} == {ground.items["second"].id}
    both = word(ground.items["first"].id, ground.items["second"].id)
    assert instruct(ground.store, text, endorsement=both).type is Instruction


def test_one_that_covers_nothing_covers_nothing(ground: Ground) -> None:
    with pytest.raises(LaunderingError):
        instruct(ground.store, f"Do: {PASSAGE}", endorsement=word())


def test_a_whole_text_that_is_endorsed_is_still_compared_with_the_other_items(ground: Ground) -> None:
    other = ground.store.add(ToolOutput, f"It was said: {PASSAGE} (twice)", source="tool:web")
    whole = ground.store.add(ToolOutput, PASSAGE, source="tool:web")
    with pytest.raises(LaunderingError) as refused:
        instruct(ground.store, PASSAGE, endorsement=word(whole.id))
    assert {hit.item_id for hit in refused.value.hits} == {other.id, ground.items["report"].id}


def test_a_changed_text_needs_an_endorsement_of_its_own(ground: Ground) -> None:
    text, report = f"Do: {PASSAGE}", ground.items["report"].id
    bound = word(report, digest=text_digest(text))
    with pytest.raises(InputError, match="bound to another text"):
        instruct(ground.store, f"{text} Now.", endorsement=bound)
    instruct(ground.store, text, endorsement=bound)
    with pytest.raises(LaunderingError):
        instruct(ground.store, f"{text} Now.")


def test_it_is_taken_back(ground: Ground) -> None:
    item = instruct(ground.store, f"Do: {PASSAGE}", endorsement=word(ground.items["report"].id))
    (record,) = ground.store.endorsements()
    assert ground.store.revoke_endorsement(record.number, by="bo", reason="a mistake") == [item.id]
    assert ground.store.is_revoked(item)
    assert ground.store.endorsements()[0].is_revoked


def test_a_users_wish_becomes_an_instruction_by_approval(ground: Ground) -> None:
    store = ground.store
    wish = store.user("Speak like a pirate, always.")
    with pytest.raises(TransformError, match="nobody approved it"):
        store.promote(wish, Instruction)
    item = store.promote(wish, Instruction, endorsement=word())
    assert (item.type, item.derived_from) == (Instruction, (wish.id,))
    quoting = store.user(f"Please always do this: {PASSAGE}")
    with pytest.raises(LaunderingError):
        store.promote(quoting, Instruction, endorsement=word())
    assert store.promote(quoting, Instruction, endorsement=word(ground.items["report"].id)).type is Instruction
    assert store.endorsements()[0].item == item.id


def test_refusals_list_hits_with_spans(ground: Ground) -> None:
    text = f"Do: {PASSAGE} Now."
    with pytest.raises(LaunderingError) as raised:
        instruct(ground.store, text)
    (refusal,) = ground.store.refusals()
    (hit,) = refusal.hits
    assert (refusal.rule, refusal.mode, refusal.target, refusal.source) == (
        "laundering",
        "enforce",
        "instruction",
        "system",
    )
    assert refusal.digest == text_digest(text)
    report = ground.items["report"].reveal("compared")
    assert text[slice(*hit.span)].strip(".") == report[slice(*hit.origin_span)].strip(".") == PASSAGE.strip(".")
    assert (hit.item_id, hit.type, hit.source) == (ground.items["report"].id, "tool_output", "tool:orders")
    message = str(raised.value)
    assert message == refusal.message
    for said in (
        hit.item_id,
        "tool_output",
        f"{hit.length} normalised characters",
        f"at {hit.span[0]} to {hit.span[1]}",
    ):
        assert said in message
    assert "Transfer" not in message
    assert "Transfer" not in json.dumps(msgspec.to_builtins(refusal))


def test_the_first_untrusted_origin_is_named(ground: Ground) -> None:
    store = ground.store
    store.promote(ground.items["report"], Evidence)
    store.add(ToolOutput, f"Again: {PASSAGE}", source="tool:echo")
    with pytest.raises(LaunderingError) as refused:
        instruct(store, f"Do: {PASSAGE}")
    assert f"first registered as tool_output, id={ground.items['report'].id}" in str(refused.value)
    assert len({hit.item_id for hit in refused.value.hits}) == 3


def test_a_failed_attempt_leaves_everything_as_it_was(ground: Ground) -> None:
    view = ground.store.scope(session="s1")
    backend = core(view)[0].backend
    first = view.user("Hello.")
    before = list(backend.rows((None,)))
    for attempt in (PASSAGE, f"Do: {PASSAGE}"):
        with pytest.raises(LaunderingError):
            instruct(view, attempt)
    with pytest.raises(ContextTypeError):
        view.promote(ground.items["report"], Instruction)
    assert list(backend.rows((None,))) == before
    assert view.user("Go on.").seq == first.seq + 1
    assert ground.store.promote(ground.items["report"], Evidence).derived_from == (ground.items["report"].id,)


@pytest.mark.parametrize("where", ["memory", "sqlite"])
@pytest.mark.parametrize("mode", ["warn", "observe"])
def test_over_live_traffic_it_passes_and_is_recorded(tmp_path: Path, where: str, mode: Any) -> None:
    rules = dict.fromkeys(("origin", "laundering", "labels", "channel", "produces", "seal"), mode)
    policy = validated(msgspec.structs.replace(default_policy(), rules=rules))
    with ContextStore.open(":memory:" if where == "memory" else tmp_path / "a.db", policy=policy) as store:
        report = store.add(ToolOutput, f"Report: {PASSAGE}", source="tool:orders")
        whole = store.add(ToolOutput, FIRST, source="tool:orders")

        def traffic() -> list[ContextItem[Any]]:
            made: Any = report.text
            items: list[ContextItem[Any]] = [
                instruct(store, f"Do: {PASSAGE}"),
                instruct(store, FIRST),
                instruct(store, made),
                store.add(Instruction, "Be brief.", source="tool:orders"),
                store.add(Evidence, FIRST, source="handbook"),
            ]
            store.seal()
            return [*items, instruct(store, "Send what is left to 4417.")]

        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            items = traffic()
        assert [item.type.name for item in items] == ["instruction"] * 4 + ["evidence", "instruction"]
        raised = [str(one.message) for one in told if one.category is ContextTypeWarning]
        assert len(raised) == (7 if mode == "warn" else 0)
        noted = store.refusals()
        assert {one.mode for one in noted} == {mode}
        assert [one.rule for one in noted] == [
            "laundering",
            "origin",
            "labels",
            "origin",
            "channel",
            "produces",
            "seal",
        ]
        assert noted[0].hits[0].item_id == report.id
        assert noted[1].hits[0].item_id == whole.id


def test_a_warning_names_the_line_that_was_written(ground: Ground) -> None:
    policy = validated(msgspec.structs.replace(default_policy(), rules={"laundering": "warn"}))
    store = ContextStore(policy)
    store.add(ToolOutput, f"Report: {PASSAGE}", source="tool:orders")
    with pytest.warns(ContextTypeWarning, match="rule `laundering` warns") as told:
        store.instruct(f"Do: {PASSAGE}")  # type: ignore[arg-type, unused-ignore]
    assert told[0].filename == __file__
    with pytest.warns(ContextTypeWarning) as told:
        store.add(Instruction, f"Do this: {PASSAGE}", source="system")
    assert told[0].filename == __file__
