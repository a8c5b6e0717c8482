"""What goes wrong is told in one line that names the place and the mend, with an exit code that scripts can use."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from rung.cli import exit_code, main
from rung.config import load_configuration
from rung.errors import ConfigError

from .running import COMMAND, one_line, process, rung, said

ASK = ("compile", "How long do refunds take?")


@pytest.mark.parametrize(
    ("words", "code", "told"),
    [
        (("compil",), 2, "no such command 'compil'"),
        (("compile",), 2, "missing argument 'question' (see `rung compile --help`)"),
        (("compile", "x", "--bugdet", "5"), 2, "--bugdet"),
        (("compile", "x", "--budget", "many"), 2, "invalid value for '--budget'"),
        ((*ASK, "-c", "absent.toml"), 2, "`absent.toml` does not exist"),
        ((*ASK, "--target", "telex"), 2, "`target` is `telex` (one of `openai-chat`"),
        ((*ASK, "--intent", "sales"), 2, "unknown intent `sales` (one of `support`)"),
        ((*ASK, "--budget", "0"), 2, "`--budget` is 0"),
        ((*ASK, "--json", "--request"), 2, "keep one"),
        ((*ASK, "--out", "rung.toml"), 2, "rung.toml"),
        (("compile", ""), 2, "empty"),
        (("init", "."), 2, "exists already (use --force to overwrite it)"),
        (("policy", "explain", "absent.toml"), 2, "`absent.toml` does not exist"),
        (("store", "stats", "absent.db"), 2, "`absent.db` is no store"),
        (("check", "absent.py"), 2, "absent.py"),
    ],
)
def test_a_wrong_command_line(
    started: Path,
    words: tuple[str, ...],
    code: int,
    told: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(started)
    monkeypatch.setattr(sys, "argv", ["rung", *words])
    with pytest.raises(SystemExit) as ended:
        main()
    out, err = capsys.readouterr()
    assert told in one_line(err)
    assert (ended.value.code, out) == (code, "")


def test_in_a_process_of_its_own_the_line_and_the_code_are_the_same(started: Path) -> None:
    run = process("compile", "x", "-c", "absent.toml", cwd=started)
    assert "`absent.toml` does not exist" in said(run)
    assert (run.returncode, run.stdout) == (2, "")


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("[agent]", "[agent", "is not valid TOML"),
        ('target = "openai-chat"', 'targte = "openai-chat"', "targte"),
        ('role = "You', 'rule = "You', "rule"),
        ("max_tokens = 3000", 'max_tokens = "3000"', "sources.knowledge.max_tokens"),
        ('path = "memories.jsonl"', 'path = "mem.jsonl"', "`sources.memory.path`: `mem.jsonl` does not exist"),
        ('path = "documents"', 'path = "memories.jsonl"', "is a file (documents is a folder)"),
        ('kind = "documents"', 'kind = "folder"', "`sources.knowledge.kind` is `folder` (one of"),
        ('sensitivity = "PERSONAL"', 'sensitivity = "SECRET"', "sources.memory.sensitivity"),
        ("[agent]", "[agent]\nnow = 2026-01-01T00:00:00", "`agent.now` is a naive datetime"),
        ("[agent]", '[agent]\nintent = "sales"', "`agent.intent` names the unknown intent `sales`"),
        ("[rules]", '[rules]\nlaundring = "observe"', "`rules.laundring` is no rule"),
    ],
)
def test_a_wrong_configuration(project: Path, old: str, new: str, told: str) -> None:
    file = project / "rung.toml"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new, 1))
    with pytest.raises(ConfigError) as caught:
        load_configuration(file)
    assert told in str(caught.value)
    assert exit_code(caught.value) in (1, 2)


def test_a_wrong_line_of_a_data_file_is_named_and_the_turn_goes_on_without_the_source(project: Path) -> None:
    (project / "memories.jsonl").write_text('{"text": "fine"}\n{"txet": "wrong"}\n')
    run = rung(*ASK, cwd=project)
    assert run.returncode == 0
    assert "failed" in run.stdout


def test_a_policy_with_an_unguarded_path_is_refused_and_a_sound_one_explained(tmp_path: Path) -> None:
    sound = tmp_path / "sound.toml"
    sound.write_text('[sources."tool:crm"]\nmax_age = "5m"\n')
    run = rung("policy", "explain", sound)
    assert run.returncode == 0
    assert "user -> instruction  through approval" in run.stdout
    open_path = tmp_path / "open.toml"
    open_path.write_text('[[transitions]]\nfrom = "tool_output"\nto = "instruction"\nvalidators = ["size"]\n')
    run = rung("policy", "explain", open_path)
    assert run.returncode == 1
    assert "unguarded path from `tool_output` into the protected type `instruction`" in said(run)


def test_findings_are_exit_code_1(tmp_path: Path) -> None:
    (tmp_path / "clean.py").write_text("x = 1\n")
    assert rung("check", tmp_path).returncode == 0
    (tmp_path / "dirty.py").write_text(
        "from rung import ContextStore, ToolOutput\n\n"
        "store = ContextStore()\n"
        "def f(result):\n"
        '    item = store.add(ToolOutput, result, source="tool:t")\n'
        '    return store.instruct("Do: " + item.reveal("why"))\n'
    )
    run = rung("check", tmp_path)
    assert run.returncode == 1
    assert "dirty.py:6" in run.stdout


def test_a_bug_shows_where_it_is_and_says_that_it_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(echo: object) -> None:
        raise RuntimeError("not foreseen")

    monkeypatch.setattr("rung.cli.demo.run_demo", broken)
    run = rung("demo")
    lines = run.stderr.splitlines()
    assert (run.returncode, run.stdout) == (3, "")
    assert lines[0].startswith("Traceback")
    assert lines[-2:] == ["RuntimeError: not foreseen", "rung: this is a bug of rung's own"]


def test_an_interrupt_ends_it_without_a_traceback(project: Path) -> None:
    (project / "slow.py").write_text(
        "import asyncio, sys\n"
        "import rung.gather\n"
        "async def slow(*args, **more):\n"
        "    print('waiting', file=sys.stderr, flush=True)\n"
        "    await asyncio.sleep(60)\n"
        "rung.gather.compile_context = slow\n"
        "from rung.cli import main\n"
        "sys.argv = ['rung', 'compile', 'x']\n"
        "main()\n"
    )
    with subprocess.Popen(
        [COMMAND[0], "slow.py"],
        cwd=project,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # Whoever runs the tests in the background has them ignore interrupts, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL) and None,
    ) as run:
        try:
            assert run.stderr is not None
            assert run.stderr.readline() == "waiting\n"
            time.sleep(0.2)
            run.send_signal(signal.SIGINT)
            _, told = run.communicate(timeout=60)
        finally:
            run.kill()
    assert (run.returncode, told) == (130, "rung: interrupted\n")
