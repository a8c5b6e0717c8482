"""`rung run` and `rung chat`: with a server without a key, and with nothing configured at all."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tests.cli.running import rung, said

from rung.assembly.reply import Reply
from rung.assembly.validate import validate
from rung.cli.run import chat
from rung.testing.server import Fault, ScriptedServer

SYSTEM = '\n[system]\nrole = "You answer briefly."\n'


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "ANTHROPIC_API_KEY", "ANTHROPIC_BASE_URL"):
        monkeypatch.delenv(name, raising=False)


def configured(folder: Path, model: str) -> Path:
    file = folder / "rung.toml"
    file.write_text(f'[agent]\nsubject = "u7"\n{SYSTEM}\n{model}\n')
    return file


def local(folder: Path, server: ScriptedServer, more: str = "") -> Path:
    return configured(folder, f'[model]\nname = "local"\nbase_url = "{server.openai_url}"\ntimeout = 5\n{more}')


def test_a_local_server_answers_without_a_key(tmp_path: Path) -> None:
    with ScriptedServer("Five working\ndays.", validate=validate) as server:
        ran = rung("run", "-c", local(tmp_path, server), "How long do refunds take?")
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "Five working\ndays.\n", "")
    assert server.requests[0].body["messages"][-1] == {"role": "user", "content": "How long do refunds take?"}


def test_a_stream_prints_the_same(tmp_path: Path) -> None:
    with ScriptedServer("Five working days.") as server:
        ran = rung("run", "-c", local(tmp_path, server), "How long?", "--stream")
    assert (ran.returncode, ran.stdout) == (0, "Five working days.\n")
    assert server.requests[0].body["stream"] is True


def test_a_kept_session_goes_on(tmp_path: Path) -> None:
    store = tmp_path / "agent.db"
    with ScriptedServer("Hello Ann.", "You are Ann.") as server:
        file = local(tmp_path, server)
        for question in ("I am Ann", "Who am I?"):
            assert rung("run", "-c", file, question, "--session", "s1", "--save", store).returncode == 0
        roles = [message["role"] for message in server.requests[-1].body["messages"]]
    assert roles == ["system", "user", "assistant", "user"]
    assert len(rung("store", "turns", store).stdout.splitlines()) >= 2


def test_the_manifest_can_be_printed(tmp_path: Path) -> None:
    with ScriptedServer("Hi.") as server:
        ran = rung("run", "-c", local(tmp_path, server), "Hello", "--manifest")
    assert "counted by o200k_base" in ran.stdout


MISSING: list[tuple[str, str, str]] = [
    ("no model", "", "set `model.name`"),
    ("no key", '[model]\nname = "gpt-4o"', "OPENAI_API_KEY"),
    ("no key of the other provider", '[model]\nname = "claude"\nprovider = "anthropic"', "ANTHROPIC_API_KEY"),
]


@pytest.mark.parametrize(("what", "model", "says"), MISSING, ids=[row[0] for row in MISSING])
def test_what_is_missing_is_said_in_one_line(what: str, model: str, says: str, tmp_path: Path) -> None:
    ran = rung("run", "-c", configured(tmp_path, model), "Hi")
    assert ran.returncode == 2
    assert says in said(ran)


def test_an_answer_that_is_not_whole_says_so(tmp_path: Path) -> None:
    with ScriptedServer(Reply(text="The first", stop="length")) as server:
        ran = rung("run", "-c", local(tmp_path, server), "Tell me all")
    assert (ran.returncode, ran.stdout) == (1, "The first\n")
    assert said(ran) == "rung: limit reached (length); missing: the rest of the reply"


def test_a_server_that_fails_is_told_without_a_traceback(tmp_path: Path) -> None:
    with ScriptedServer(lambda _: Fault(status=500)) as server:
        ran = rung("run", "-c", local(tmp_path, server), "Hi")
    assert ran.returncode == 1
    assert "model_failed" in said(ran)


def test_what_a_model_says_cannot_move_the_cursor(tmp_path: Path) -> None:
    with ScriptedServer("\x1b[2JHello\u202e") as server:
        ran = rung("run", "-c", local(tmp_path, server), "Hi")
    assert "\x1b" not in ran.stdout
    assert "\u202e" not in ran.stdout


def test_chat_goes_on_until_the_input_ends(tmp_path: Path) -> None:
    lines = iter(["I am Ann", "", "Who am I?"])
    told: list[str] = []

    def ask(_: str) -> str:
        try:
            return next(lines)
        except StopIteration:
            raise EOFError from None

    def echo(text: str = "", nl: bool = True) -> Any:
        told.append(text + ("\n" if nl else ""))

    with ScriptedServer("Hello Ann.", "You are Ann.", validate=validate) as server:
        code = chat(config=local(tmp_path, server), session=None, intent=None, save=None, echo=echo, ask=ask)
    assert (code, "".join(told)) == (0, "Hello Ann.\nYou are Ann.\n")
    assert len(server.requests[-1].body["messages"]) == 4
