"""A file of memories: the best ones for the message come first, and a limit keeps them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from rung.config import load_configuration
from rung.errors import ConfigError
from rung.memory.file import ScoredMemories
from rung.sources.protocol import Fetch

NOW = datetime(2025, 11, 25, tzinfo=UTC)
LINES: list[dict[str, Any]] = [
    {"id": "m1", "text": "Travels abroad and withdraws cash there.", "observed_at": "2025-03-01T00:00:00Z"},
    {"id": "m2", "text": "Prefers email.", "category": "preference", "observed_at": "2025-04-01T00:00:00Z"},
    {"id": "m3", "text": "Lost a debit card in Berlin.", "observed_at": "2025-05-01T00:00:00Z", "confidence": 0.5},
    {"id": "m4", "text": "Lives in Wacker Drive.", "key": "home", "observed_at": "2025-01-01T00:00:00Z"},
    {"id": "m5", "text": "Moved to Lake Shore.", "key": "home", "observed_at": "2025-06-01T00:00:00Z"},
    {"id": "m6", "text": "Wants no calls at night.", "category": "standing"},
    {"id": "m7", "text": "Somebody else's debit card.", "subject": "other"},
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "memories.jsonl"
    path.write_text("\n".join(map(json.dumps, LINES)))
    return path


def found(path: Path, query: str, limit: int | None = None, **options: Any) -> list[tuple[str, float]]:
    drafts = ScoredMemories("memory", path, **options).fetch(Fetch(query=query, now=NOW, subject="u", limit=limit))
    return [(dict(draft.attrs)["id"], draft.score or 0.0) for draft in drafts]


def test_a_limit_keeps_the_best_and_standing_requests_come_first(file: Path) -> None:
    ranked = found(file, "I lost my debit card", limit=3)
    assert [name for name, _ in ranked] == ["m6", "m3", "m5", "m4"]
    assert ranked[0][1] == 1.0
    assert 0.3 < ranked[1][1] <= 0.5, "the confidence multiplies the score"
    assert ranked[2][1] == 0.0


def test_a_replaced_memory_counts_for_what_stands_in_its_place(file: Path) -> None:
    assert dict(found(file, "is Wacker Drive right?"))["m5"] > 0.3
    renamed = [{**line, "key": None, "supersedes": "m4" if line["id"] == "m5" else None} for line in LINES]
    file.write_text("\n".join(json.dumps(line) for line in reversed(renamed)))
    ranked = found(file, "is Wacker Drive right?", limit=2)
    assert [name for name, _ in ranked] == ["m6", "m5", "m4"]


def test_categories_that_always_fit_and_scores_of_the_file_are_kept(file: Path) -> None:
    assert dict(found(file, "hello"))["m2"] == 0.0
    assert dict(found(file, "hello", always=["preference"]))["m2"] == 1.0
    file.write_text(json.dumps({"id": "own", "text": "Hello.", "score": 0.4}))
    assert found(file, "hello") == [("own", 0.4)]


def test_a_configuration_asks_for_a_fit_of_three_tenths_unless_it_says_otherwise(file: Path) -> None:
    def loaded(line: str = "") -> Any:
        (file.parent / "rung.toml").write_text(
            f'[system]\nrole = "R"\n[sources.memory]\nkind = "memories"\npath = "memories.jsonl"\n{line}\n'
        )
        return load_configuration(file.parent / "rung.toml")

    assert loaded().policy.source("memory").min_score == 0.3
    assert loaded("min_score = 0.1").policy.source("memory").min_score == 0.1
    assert isinstance(loaded('always = ["fact"]').sources()[0], ScoredMemories)
    for wrong in ('always = ["facts"]', 'always = "fact"'):
        with pytest.raises(ConfigError, match=r"sources\.memory\.always"):
            loaded(wrong)
