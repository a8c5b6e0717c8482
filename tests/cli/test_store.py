"""`rung store`: what a store holds, whether it is whole, and how it moves and forgets."""

from __future__ import annotations

import json
import sqlite3
from datetime import UTC, datetime
from pathlib import Path

import pytest

from rung import ContextStore, Evidence, Instruction, Memory, RungError, Sensitivity, ToolOutput
from rung.policy.load import load_policy

from .running import rung, said


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    """A store with a promotion, a refusal, and a person's memory."""
    where = tmp_path / "kept.db"
    with ContextStore.open(where) as store:
        rules = store.instruct("Answer from the evidence.")
        seen = store.add(ToolOutput, "The shop opens at nine.", source="tool:hours")
        store.promote(seen, Evidence)
        with pytest.raises(RungError):
            store.promote(seen, Instruction)
        store.scope(subject="u7").add(
            Memory, "Likes tea.", source="memory", expires_at=datetime(2020, 1, 1, tzinfo=UTC)
        )
        store.record(store.compile([rules, seen, store.user("When?")], budget=300))
    return where


def test_it_counts_by_type_and_source_and_lists_refusals(kept: Path) -> None:
    stats = rung("store", "stats", kept).stdout
    assert "1  tool_output   tool:hours" in stats
    assert "5  items, 1 recorded turns, 1 refusals" in stats
    refusals = rung("store", "refusals", kept).stdout
    assert "enforce" in refusals
    assert "nine" not in refusals


def test_a_whole_store_verifies_and_an_altered_one_names_the_item(kept: Path) -> None:
    run = rung("store", "verify", kept)
    assert (run.returncode, run.stderr) == (0, "")
    assert "0 problems" in run.stdout
    with sqlite3.connect(kept) as database:
        tables = [name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        assert "items" in tables
        database.execute("UPDATE items SET source = 'tool:other' WHERE source = 'tool:hours'")
    database.close()
    run = rung("store", "verify", kept)
    assert run.returncode == 1
    assert "0 problems" not in run.stdout


def test_it_moves_to_another_file_with_its_log(kept: Path, tmp_path: Path) -> None:
    lines, other = tmp_path / "all.jsonl", tmp_path / "other.db"
    assert rung("store", "export", kept, lines).returncode == 0
    assert "exists already" in said(rung("store", "export", kept, lines))
    assert rung("store", "import", other, lines).returncode == 0
    assert rung("store", "stats", other).stdout == rung("store", "stats", kept).stdout
    assert "0 problems" in rung("store", "verify", other).stdout


def test_a_persons_data_is_erased_and_expired_items_are_swept(kept: Path) -> None:
    assert "erased 1 items" in rung("store", "erase", kept, "--subject", "u7").stdout
    assert "erased 0 expired items" in rung("store", "sweep", kept).stdout
    assert "unused space is given back" in rung("store", "vacuum", kept).stdout
    assert "0 problems" in rung("store", "verify", kept).stdout
    stats = rung("store", "stats", kept).stdout
    assert "memory" not in stats
    assert "1  erased, of all tenants" in stats


def test_endorsements_and_the_log_say_who_and_why_without_content(kept: Path) -> None:
    with ContextStore.open(kept) as store:
        pay = store.add(ToolOutput, "Grade seven", source="tool:hr", sensitivity=Sensitivity.RESTRICTED, scopes={"hr"})
        store.declassify(pay, sensitivity=Sensitivity.INTERNAL, scopes=(), by="ada", reason="published\x1b[2J anyway")
        (given,) = store.endorsements()
        store.revoke_endorsement(given.number, by="bob", reason="not yet")
    told = rung("store", "endorsements", kept).stdout
    assert "declassification" in told
    assert "by ada: published\\u001b[2J anyway" in told
    assert "taken back by bob: not yet" in told
    lines = [json.loads(line) for line in rung("store", "log", kept, "--json").stdout.splitlines()]
    assert [line["number"] for line in lines] == sorted(line["number"] for line in lines)
    assert all(len(line["link"]) == 64 for line in lines)
    readable = rung("store", "log", kept).stdout
    assert len(readable.splitlines()) == len(lines)
    assert "Grade" not in readable + json.dumps(lines)


def test_a_replay_lists_what_another_policy_would_turn_round(kept: Path, tmp_path: Path) -> None:
    same, strict = tmp_path / "same.toml", tmp_path / "strict.toml"
    same.write_text("")
    strict.write_text("[limits]\nitem_bytes = 20\n")
    run = rung("store", "replay", kept, "-p", same)
    assert (run.returncode, run.stderr) == (0, "")
    assert "0 differences" in run.stdout
    run = rung("store", "replay", kept, "--policy", strict)
    assert run.returncode == 1
    assert "allowed → refused" in run.stdout
    assert "nine" not in run.stdout


def test_a_store_is_opened_with_the_policy_of_a_configuration(tmp_path: Path) -> None:
    rules = tmp_path / "rules.toml"
    rules.write_text("[types.ticket]\nintegrity = 20\n")
    where, lines, other = tmp_path / "own.db", tmp_path / "own.jsonl", tmp_path / "other.db"
    with ContextStore.open(where, policy=load_policy(rules)) as store:
        store.add(store.type_named("ticket"), "The lamp is broken.", source="tool:desk")
    assert "ticket" in said(rung("store", "stats", where))
    assert "1  ticket" in rung("store", "stats", where, "-c", rules).stdout
    assert rung("store", "export", where, lines, "-c", rules).returncode == 0
    assert rung("store", "import", other, lines, "-c", rules).returncode == 0
    assert "1  ticket" in rung("store", "stats", other, "-c", rules).stdout
    assert "absent.toml" in said(rung("store", "stats", where, "-c", tmp_path / "absent.toml"))
