"""Offline questions: why a fact was not in, what changed, which items a row stands for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rung import ContextStore, Evidence, Manifest, Memory, ToolOutput, TurnIntent
from rung.compiler.manifest import REASONS, json_schema
from rung.observe import diff, expand, why
from rung.observe.questions import _STAGES

NOW = datetime(2026, 9, 1, tzinfo=UTC)


def store() -> ContextStore:
    return ContextStore(clock=lambda: NOW)


def test_why_tells_where_it_was_decided() -> None:
    made = store()
    kept = made.add(Memory, "kept", source="crm", key="k")
    stale = made.add(ToolOutput, "old", source="tool:x", key="t", observed_at=NOW - timedelta(hours=1))
    other = made.add(Evidence, "not for this turn", source="web")
    large = made.add(Memory, "word " * 900, source="crm")
    intent = TurnIntent("x", frozenset({"crm", "tool:x"}))
    turn = made.compile([made.instruct("x"), kept, stale, other, large, made.user("?")], intent=intent, budget=500)
    found = Manifest.from_json(turn.manifest.json())
    assert found == turn.manifest
    asked = {name: why(found, item=item.id).stage for name, item in
             {"kept": kept, "stale": stale, "other": other, "large": large}.items()}  # fmt: skip
    assert asked == {"kept": "shown", "stale": "freshness", "other": "routing", "large": "budget"}
    assert why(found, key="k").reason == "selected"
    assert why(found, key="never heard of").reason == "never_fetched"


def test_every_stage_speaks_of_a_published_reason() -> None:
    assert set(_STAGES) <= set(REASONS)


def test_diff_names_what_changed_at_another_budget() -> None:
    made = store()
    items = [made.add(Memory, f"{n} " + "word " * 40, source="crm") for n in range(4)]
    turn = made.compile([made.instruct("x"), *items, made.user("?")], budget=400)
    smaller = turn.what_if(budget=200)
    changes = diff(turn.manifest, smaller.manifest)
    assert changes
    assert {change.after for change in changes} == {"excluded: over_budget"}
    assert sum(change.tokens for change in changes) == smaller.tokens - turn.tokens + (
        turn.manifest.totals.framing - smaller.manifest.totals.framing
    )
    assert diff(turn.manifest, turn.manifest) == []


def test_expand_gives_the_items_of_a_stretch() -> None:
    made = store()
    view = made.scope(session="s")
    for n in range(30):
        view.user(f"question {n} " + "word " * 20)
        view.assistant(f"answer {n} " + "word " * 20)
    view.user("and now?")
    turn = view.compile([made.instruct("x")], history="session", budget=800)
    rows = [entry for entry in turn.manifest.entries if entry.place == "history"]
    assert len(rows) <= 4
    expanded = [item for row in rows for item in expand(view, row)]
    assert [len(expand(view, row)) for row in rows] == [row.count for row in rows]
    assert len({item.id for item in expanded}) == 60


def test_the_schema_of_a_manifest_is_published() -> None:
    schema = json_schema()
    assert "Manifest" in str(schema)


def test_a_manifest_of_another_kind_is_refused() -> None:
    with pytest.raises(ValueError, match="this is no manifest"):
        Manifest.from_json('{"schema": 1}')
