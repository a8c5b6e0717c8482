"""`rung kb`: documents in, passages out."""

from __future__ import annotations

from pathlib import Path

import pytest

from .running import rung, said


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "deep").mkdir(parents=True)
    (tmp_path / "docs" / "fees.md").write_text("# Fees\n\n## Late payment\n\nA late payment costs 5.\n")
    (tmp_path / "docs" / "deep" / "cards.txt").write_text("Every card works abroad.\x1b[2J")
    (tmp_path / "docs" / "picture.png").write_bytes(b"\x89PNG")
    return tmp_path


def test_documents_are_added_found_with_their_citation_and_counted(folder: Path) -> None:
    run = rung("kb", "add", "docs", "--db", "kb.db", cwd=folder)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout.splitlines() == [
        "2 added, 0 changed, 0 unchanged, 1 skipped",
        "kb.db holds 2 documents in 2 passages",
    ]
    assert "2 unchanged" in rung("kb", "add", "docs", cwd=folder).stdout
    found = rung("kb", "search", "what does a late payment cost?", cwd=folder).stdout
    assert "1.00  [fees.md#late-payment: Fees § Late payment]" in found
    assert "      A late payment costs 5." in found
    assert rung("kb", "stats", cwd=folder).stdout.splitlines()[0].split() == ["2", "documents"]


def test_a_folder_is_synchronised_and_a_file_is_not(folder: Path) -> None:
    assert "2 added" in rung("kb", "add", "docs", "--sync", cwd=folder).stdout
    (folder / "docs" / "fees.md").unlink()
    assert "1 unchanged, 1 removed, 1 skipped" in rung("kb", "add", "docs", "--sync", cwd=folder).stdout
    run = rung("kb", "add", "docs/deep/cards.txt", "--sync", cwd=folder)
    assert run.returncode == 2
    assert "is no folder" in said(run)


def test_a_tenants_documents_and_scoped_ones_are_found_by_who_may_read_them(folder: Path) -> None:
    rung("kb", "add", "docs/fees.md", "--tenant", "acme", "--scope", "billing", cwd=folder)
    ask = ("kb", "search", "late payment")
    for words in ((), ("--tenant", "acme"), ("--scope", "billing"), ("--tenant", "other", "--scope", "billing")):
        assert rung(*ask, *words, cwd=folder).stdout == "0 passages\n"
    assert "1 passage\n" in rung(*ask, "--tenant", "acme", "--scope", "billing", cwd=folder).stdout


def test_a_passage_cannot_move_the_terminal(folder: Path) -> None:
    rung("kb", "add", "docs/deep/cards.txt", cwd=folder)
    found = rung("kb", "search", "abroad", cwd=folder).stdout
    assert "\x1b" not in found
    assert "\\u001b[2J" in found


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("search", "x", "--db", "none.db"), "`none.db` is no knowledge base"),
        (("stats", "--db", "none.db"), "`none.db` is no knowledge base"),
        (("add", "absent.md"), "`absent.md` does not exist"),
        (("add", "docs/picture.png"), "`picture.png` is of no known kind"),
        (("add", "docs", "--sensitivity", "SECRET"), "--sensitivity"),
        (("search", " "), "the question is empty"),
    ],
)
def test_what_goes_wrong_is_one_line(folder: Path, words: tuple[str, ...], told: str) -> None:
    run = rung("kb", *words, cwd=folder)
    assert run.returncode == 2
    assert told in said(run)


def test_searching_makes_no_base(folder: Path) -> None:
    rung("kb", "search", "x", "--db", "none.db", cwd=folder)
    assert not (folder / "none.db").exists()
