"""The support example's talk: three turns, and what the first one said is remembered in the third."""

from __future__ import annotations

import asyncio
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from rung import Manifest
from rung.config import load_configuration
from rung.testing.model import ScriptedModel

EXAMPLE = Path(__file__).parents[2] / "examples" / "support"


def talk_module() -> ModuleType:
    spec = importlib.util.spec_from_file_location("support_talk", EXAMPLE / "talk.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_talk_writes_a_memory_and_uses_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    module = talk_module()
    model = ScriptedModel("Noted.", "It is free.", "By letter, Liang.", target="openai-chat")
    asyncio.run(module.talk(load_configuration(EXAMPLE / "rung.toml"), model, tmp_path))
    manifests = [Manifest.from_json((tmp_path / f"turn-{n}.json").read_text()) for n in (1, 2, 3)]
    shown = [[row.source for row in manifest.included()].count("remembered") for manifest in manifests]
    assert shown[0] == 0
    assert shown[2] >= 1
    assert "by letter to my office" in str(model.requests[2])
    assert capsys.readouterr().out.count("[done; ") == 3
