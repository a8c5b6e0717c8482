"""`rung demo`: the walk through, word for word where its wording is fixed."""

from __future__ import annotations

import re
import subprocess
from functools import cache

from .running import process


@cache
def output(seed: str) -> subprocess.CompletedProcess[str]:
    return process("demo", env={"PYTHONHASHSEED": seed})


def test_it_succeeds_and_says_nothing_on_standard_error() -> None:
    assert (output("1").returncode, output("1").stderr) == (0, "")


def test_another_hash_seed_gives_the_same_bytes() -> None:
    assert output("1").stdout == output("2").stdout


def test_each_item_of_the_ledger_has_a_line() -> None:
    lines = re.findall(r"^\[(.{12})\] source=(\S+) id=[0-9a-f]{8}$", output("1").stdout, re.MULTILINE)
    assert [(kind.strip(), source) for kind, source in lines] == [
        ("instruction", "system"),
        ("memory", "memory"),
        ("memory", "memory"),
        ("tool_output", "tool:order_lookup"),
        ("tool_output", "tool:shipping_api"),
    ]


def test_the_promotion_shows_its_lineage() -> None:
    text = output("1").stdout
    order = re.search(r"source=tool:order_lookup id=(\w+)", text)
    assert order is not None
    assert re.search(rf"^PROMOTED: evidence id=[0-9a-f]{{8}} <- {order[1]}$", text, re.MULTILINE)


def test_the_refusals_name_the_first_registration_the_failure_and_the_way_out() -> None:
    text = output("1").stdout
    assert re.search(
        r"^REJECTED: tool_output cannot be inserted into instruction context "
        r"\(content first registered as tool_output, id=[0-9a-f]{8}\)$",
        text,
        re.MULTILINE,
    )
    assert (
        "REJECTED: tool output from 'tool:shipping_api' failed validation and cannot become evidence: "
        "'Status: failed. No delivery date available.'\n"
    ) in text
    assert re.search(r"^REJECTED: item `\w+` .* does not become text \(give the item itself", text, re.MULTILINE)


def test_the_prompt_holds_the_current_value_once_and_the_old_memory_not_at_all() -> None:
    prompt = output("1").stdout.partition("The prompt")[2].partition("Why it is so")[0]
    assert prompt.count('"state":"shipped"') == 1
    assert "warehouse" not in prompt


def test_the_prompt_keeps_instruction_evidence_tool_output_and_memory_apart() -> None:
    prompt = output("1").stdout.partition("The prompt")[2].partition("Why it is so")[0]
    places = [
        prompt.index(mark) for mark in ('role="system"', "<evidence ", "<tool_output ", "<memory ", "Where is my")
    ]
    assert places == sorted(places)


def test_the_manifest_says_why_the_memory_stayed_out() -> None:
    manifest = output("1").stdout.partition("Why it is so")[2]
    assert re.search(r"^memory .*excluded +superseded_by", manifest, re.MULTILINE)
    assert "(exact)" in manifest
