"""`rung compile`: a turn from real files, its forms of output, and what is kept between runs."""

from __future__ import annotations

import json
import re
import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest

from .running import COMMAND, SUPPORT, process, rung, said

QUESTION = "What does a replacement debit card for my Bluest Account cost, and how soon can it be here?"


class Made(NamedTuple):
    """What a run leaves in its `--out` folder."""

    manifest: dict[str, Any]
    request: str

    def rows(self) -> list[dict[str, Any]]:
        return [{"state": "included", **entry} for entry in self.manifest["entries"]]


@cache
def support(*words: str) -> Made:
    with TemporaryDirectory() as folder:
        run = rung("compile", "-c", SUPPORT, QUESTION, "--json", "--out", folder, *words)
        assert run.returncode == 0
        assert json.loads((Path(folder) / "manifest.json").read_text()) == json.loads(run.stdout)
        return Made(json.loads(run.stdout), (Path(folder) / "request.json").read_text())


def test_a_turn_of_the_example_fits_its_budget_and_cites_what_answers_it() -> None:
    made = support()
    assert made.manifest["totals"]["total"] <= made.manifest["totals"]["available"] == 6000
    cited = [entry.get("label", "") for entry in made.rows() if entry["source"] == "knowledge"]
    assert any(label.startswith("bank_accounts_bank_accounts_general_029") for label in cited)


def test_nobody_elses_memory_is_read_and_a_superseded_one_says_by_which() -> None:
    made = support()
    assert "1420 Lake Shore Drive" in made.request
    assert "88 Wacker Drive" not in made.request
    assert "mem_014" not in made.request
    gone = [entry for entry in made.rows() if entry.get("reason") == "superseded_by"]
    kept = {entry["item"]: entry for entry in made.rows()}
    assert [kept[entry["params"]["item"]]["label"] for entry in gone] == ["mem_005"]


def test_the_request_is_the_providers_and_calls_keep_their_results() -> None:
    request = json.loads(support().request)
    assert [message["role"] for message in request["messages"]][:1] == ["system"]
    asked = {call["id"] for message in request["messages"] for call in message.get("tool_calls", ())}
    answered = {message["tool_call_id"] for message in request["messages"] if message["role"] == "tool"}
    assert asked == answered
    assert request["messages"][-1] == {"role": "user", "content": QUESTION}


def test_the_example_is_the_same_bytes_each_time() -> None:
    ids = re.compile(r"\b[0-9a-f]{8}\b|\b[0-9a-f]{32}\b")
    again = process("compile", "-c", SUPPORT, QUESTION, "--request", env={"PYTHONHASHSEED": "7"})
    assert (again.returncode, again.stderr) == (0, "")
    assert ids.sub("id", again.stdout) == ids.sub("id", support().request)


def test_an_intent_reads_only_its_sources() -> None:
    states = {
        (entry["source"], entry["state"], entry.get("reason"))
        for entry in support("--intent", "faq").rows()
        if entry["source"] in ("memory", "tool:get_accounts")
    }
    assert states == {
        ("memory", "not_fetched", "not_in_intent"),
        ("tool:get_accounts", "not_fetched", "not_in_intent"),
    }


@pytest.mark.parametrize("target", ["openai-chat", "openai-responses", "anthropic", "text"])
def test_every_target_shows_the_texts_as_they_stand(project: Path, target: str) -> None:
    run = rung("compile", "How long do refunds take?", "--target", target, cwd=project)
    assert (run.returncode, run.stderr) == (0, "")
    assert "You are a support agent." in run.stdout
    assert "reaches the card it came from within five working days" in run.stdout
    assert "How long do refunds take?" in run.stdout
    assert re.search(r"^total \d+ of 6000 tokens", run.stdout, re.MULTILINE)


def test_a_smaller_budget_is_kept_and_one_that_is_too_small_names_what_does_not_fit(project: Path) -> None:
    run = rung("compile", "How long do refunds take?", "--budget", "180", "--json", cwd=project)
    assert json.loads(run.stdout)["totals"]["total"] <= 180
    refused = rung("compile", "How long do refunds take?", "--budget", "20", cwd=project)
    assert refused.returncode == 1
    assert "system" in said(refused)
    assert refused.stdout == ""


def test_a_kept_session_goes_on_and_holds_its_transcript_once(project: Path) -> None:
    lines = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "Good day."}]
    (project / "talk.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with (project / "rung.toml").open("a") as file:
        file.write('\n[sources.conversation]\nkind = "transcript"\npath = "talk.jsonl"\n')
    text = (project / "rung.toml").read_text()
    (project / "rung.toml").write_text(text.replace('# intent = "support"', ""))
    for question in ("How long do refunds take?", "And to a gift card?"):
        run = rung("compile", question, "--save", "kept.db", "--request", cwd=project)
        assert run.returncode == 0, run.stderr
    said_so_far = [message["content"] for message in json.loads(run.stdout)["messages"] if message["role"] != "system"]
    assert [text for text in said_so_far if text.count("\n") == 0] == [
        "Hello.",
        "Good day.",
        "How long do refunds take?",
        "And to a gift card?",
    ]
    stats = rung("store", "stats", "kept.db", cwd=project)
    assert "2 recorded turns, 0 refusals" in stats.stdout
    assert re.search(r"^ +3  user +user$", stats.stdout, re.MULTILINE)


def test_recorded_turns_are_listed_and_shown_again(project: Path) -> None:
    made = rung("compile", "How long do refunds take?", "--save", "kept.db", cwd=project)
    listed = rung("store", "turns", "kept.db", cwd=project).stdout.split()
    shown = rung("store", "turn", "kept.db", listed[0][:6], cwd=project)
    assert shown.stdout.strip() in made.stdout


def test_out_writes_request_and_manifest_and_says_where(project: Path) -> None:
    run = rung("compile", "How long do refunds take?", "--out", "build/turn", cwd=project)
    assert run.returncode == 0
    assert run.stderr == "wrote request.json, manifest.json, manifest.txt in build/turn\n"
    request = json.loads((project / "build/turn/request.json").read_text())
    assert request["messages"][-1]["content"] == "How long do refunds take?"
    assert (project / "build/turn/manifest.txt").read_text().strip() in run.stdout


def test_a_changed_document_is_read_again_from_a_kept_index(project: Path) -> None:
    text = (project / "rung.toml").read_text()
    (project / "rung.toml").write_text(
        text.replace('path = "documents"', 'path = "documents"\nindex = "made/known.db"')
    )
    ask = ("compile", "How long do refunds take?", "--request")
    assert "five working days" in rung(*ask, cwd=project).stdout
    document = project / "documents" / "refunds.md"
    document.write_text(document.read_text().replace("five", "nine"))
    run = rung(*ask, cwd=project)
    assert "nine working days" in run.stdout
    assert "five working days" not in run.stdout
    assert (project / "made" / "known.db").is_file()


def test_a_reader_that_has_seen_enough_ends_it_quietly(project: Path) -> None:
    run = subprocess.Popen(
        [*COMMAND, "compile", "How long do refunds take?"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert run.stdout is not None
    run.stdout.close()
    _, told = run.communicate(timeout=60)
    assert (run.returncode, told) == (0, "")
