"""Two processes on one PostgreSQL ledger and a signed hop between them: the example, run as a reader runs it.

Where no server can be started the test fails: nothing stands in for it.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).parents[2] / "examples" / "two_workers" / "run.py"


@pytest.fixture(scope="module")
def printed() -> str:
    done = subprocess.run([sys.executable, str(RUN)], capture_output=True, text=True, timeout=180)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def refused(printed: str, what: str) -> str:
    """How one step was refused."""
    found = re.search(rf"^worker . +{what}.*\n +refused: (.*)$", printed, re.MULTILINE)
    assert found is not None, printed
    return found[1]


def page(printed: str) -> str:
    found = re.search(r"read a page: tool_output ([0-9a-f]{32})", printed)
    assert found is not None, printed
    return found[1]


@pytest.mark.parametrize("attempt", ["the task", "the instruction", "its own wording"])
def test_laundering_through_the_other_agent_is_refused_by_the_first_workers_item(printed: str, attempt: str) -> None:
    told = refused(printed, f"makes an instruction of {attempt}")
    assert told.startswith("tool_output cannot be inserted into instruction context")
    assert f"id={page(printed)}" in told


def test_what_another_agent_calls_an_instruction_arrives_as_tool_output(printed: str) -> None:
    assert re.search(r"task_state arrives as task_state [0-9a-f]{32}", printed)
    assert re.search(r"instruction arrives as tool_output [0-9a-f]{32}", printed)


def test_an_envelope_that_was_altered_is_refused(printed: str) -> None:
    assert "does not cover the envelope" in refused(printed, "is sent the envelope with one bit changed")


def test_what_one_worker_received_the_other_one_does_not_receive_again(printed: str) -> None:
    assert "was received before" in refused(printed, "is sent the same envelope")


def test_an_instruction_of_the_workers_own_is_taken_in(printed: str) -> None:
    assert re.search(r"makes an instruction of its own: [0-9a-f]{32}$", printed, re.MULTILINE)


def test_refusals_of_both_workers_are_in_one_log(printed: str) -> None:
    assert "finds 5 refusals of both workers" in printed
