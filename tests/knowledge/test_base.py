"""A knowledge base holds the present version of each document, whoever writes, and nothing else."""

from __future__ import annotations

import multiprocessing
import sqlite3
import threading
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rung.errors import ConfigError, InputError, SchemaVersionError, StoreBusyError, StoreError
from rung.knowledge import Hit, KnowledgeBase

NOW = datetime(2025, 11, 25, 10, 5, tzinfo=UTC)
DAY = timedelta(days=1)


def base(path: str | Path = ":memory:", **kwargs: Any) -> KnowledgeBase:
    return KnowledgeBase.open(path, clock=lambda: NOW, **kwargs)


def found(kb: KnowledgeBase, query: str, **kwargs: Any) -> list[Hit]:
    return kb.search(query, tenant=None, minimum=0, **kwargs)


def texts(kb: KnowledgeBase, query: str, **kwargs: Any) -> list[str]:
    return [hit.text for hit in found(kb, query, **kwargs)]


# Versions


def test_adding_the_same_again_does_nothing() -> None:
    kb = base()
    first = kb.add("The fee is 5.", document="fees")
    again = kb.add("The fee is 5.", document="fees")
    assert (first.status, again.status) == ("added", "unchanged")
    assert (first.version, first.chunks) == (again.version, again.chunks)


def test_a_changed_document_is_a_new_version_and_the_old_text_is_never_found() -> None:
    kb = base()
    old = kb.add("The fee is 5.", document="fees")
    new = kb.add("The fee is 7.", document="fees")
    assert new.status == "changed"
    assert new.version != old.version
    assert texts(kb, "fee 5") == ["The fee is 7."]


LABELS: list[dict[str, Any]] = [
    {"access": {"vip"}},
    {"sensitivity": "public"},
    {"metadata": {"a": 1}},
    {"title": "Other"},
    {"version": "2025"},
    {"valid_to": NOW + DAY},
]


@pytest.mark.parametrize("label", LABELS, ids=[next(iter(one)) for one in LABELS])
def test_a_changed_label_is_a_new_version_so_that_no_item_keeps_the_old_one(label: dict[str, Any]) -> None:
    kb = base()
    plain = kb.add("The fee is 5.", document="fees")
    assert kb.add("The fee is 5.", document="fees", **label).version != plain.version
    assert kb.stats().documents == 1


def test_other_chunks_of_the_same_text_are_another_version() -> None:
    text = "word " * 200
    versions = {base(chunk_tokens=size).add(text, document="d").version for size in (50, 100)}
    assert len(versions) == 2


def test_the_old_version_stays_until_the_new_one_is_valid() -> None:
    kb = base()
    kb.add("The fee is 5.", document="fees", version="2025")
    kb.add("The fee is 7.", document="fees", version="2026", valid_from=NOW + DAY)
    assert texts(kb, "fee", now=NOW) == ["The fee is 5."]
    assert texts(kb, "fee", now=NOW + DAY) == ["The fee is 7."]
    assert [(one.label, one.valid_to) for one in kb.documents(tenant=None)] == [("2025", NOW + DAY), ("2026", None)]
    assert kb.remove("fees")
    assert kb.documents(tenant=None) == []


def test_a_tenants_version_leaves_everybodys_alone() -> None:
    kb = base()
    kb.add("The fee is 5.", document="fees")
    assert kb.add("The fee is 3.", document="fees", tenant="acme").status == "added"
    assert kb.remove("fees", tenant="acme")
    assert not kb.remove("fees", tenant="acme")
    assert texts(kb, "fee") == ["The fee is 5."]


# Folders


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    (root / "a.md").write_text("# A\n\ntext of a")
    (root / "b.md").write_text("# B\n\ntext of b")
    return root


def test_a_removed_file_is_never_found_again(folder: Path) -> None:
    kb = base()
    assert kb.sync(folder).added == ("a.md", "b.md")
    (folder / "b.md").unlink()
    assert kb.sync(folder).removed == ("b.md",)
    assert texts(kb, "text of b") == ["text of a"]
    assert kb.stats().chunks == 1


def test_sync_tells_apart_new_changed_and_unchanged(folder: Path) -> None:
    kb = base()
    kb.sync(folder)
    (folder / "a.md").write_text("# A\n\nother words")
    (folder / "c.txt").write_text("text of c")
    (folder / "d.bin").write_bytes(b"\x00")
    seen: list[tuple[int, int, str]] = []
    done = kb.sync(folder, progress=lambda *step: seen.append(step))
    assert (done.added, done.changed, done.unchanged, done.skipped) == (("c.txt",), ("a.md",), ("b.md",), ("d.bin",))
    assert seen == [(1, 3, "a.md"), (2, 3, "b.md"), (3, 3, "c.txt")]


def test_a_touched_file_is_no_new_version(folder: Path) -> None:
    kb = base()
    kb.sync(folder)
    (folder / "a.md").touch()
    assert kb.sync(folder).unchanged == ("a.md", "b.md")


def test_sync_removes_only_what_came_from_its_folder(folder: Path, tmp_path: Path) -> None:
    kb = base()
    kb.add("text by hand", document="hand")
    kb.sync(folder)
    other = tmp_path / "other"
    other.mkdir()
    (other / "z.md").write_text("text of z")
    kb.sync(other)
    assert kb.stats().documents == 4
    (folder / "hand.md").write_text("text in a file")
    kb.add("text by hand", document="hand.md")
    with pytest.raises(InputError, match=r"`hand\.md` is already held from no folder"):
        kb.sync(folder)


def test_two_folders_with_one_file_name_need_a_prefix(folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("another")
    kb = base()
    kb.sync(folder)
    with pytest.raises(InputError, match=r"`a\.md` is already held from the folder `docs`"):
        kb.sync(other)
    assert kb.sync(other, prefix="other/").added == ("other/a.md",)


def test_a_missing_folder_removes_nothing(folder: Path) -> None:
    kb = base()
    kb.sync(folder)
    with pytest.raises(InputError, match="`gone` is no folder"):
        kb.sync(folder.parent / "gone")
    assert kb.stats().documents == 2


def test_a_broken_file_leaves_the_base_as_it_was_or_is_reported(folder: Path) -> None:
    kb = base()
    kb.sync(folder)
    (folder / "a.md").write_bytes(b"caf\xe9")
    (folder / "b.md").unlink()
    with pytest.raises(InputError, match=r"`a\.md` is not UTF-8: byte 3"):
        kb.sync(folder)
    assert kb.stats().documents == 2
    done = kb.sync(folder, on_error="skip")
    assert done.failed == (("a.md", "`a.md` is not UTF-8: byte 3 (save it as UTF-8)"),)
    assert done.removed == ("a.md", "b.md")


def test_symbolic_links_and_hidden_files_bring_nothing_in(folder: Path) -> None:
    (folder / "loop").symlink_to(folder)
    (folder / "out.md").symlink_to(folder / "a.md")
    (folder / ".git").mkdir()
    (folder / ".git" / "x.md").write_text("hidden")
    assert base().sync(folder).added == ("a.md", "b.md")


# Arguments


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"source": "x"}, "a text has no name of its own"),
    ({"source": "", "document": "d"}, "`d` holds no text"),
    ({"source": " \n\n", "document": "d"}, "`d` holds no text"),
    ({"source": "a\x00b", "document": "d"}, "`source` holds NUL"),
    ({"source": "a\ud800", "document": "d"}, "`source` holds a lone surrogate"),
    ({"source": "x", "document": ""}, "`document` is empty"),
    ({"source": "x", "document": "a\x00"}, "`document` holds NUL"),
    ({"source": "x", "document": "d", "access": "vip"}, "`access` is one text"),
    ({"source": "x", "document": "d", "sensitivity": "secret"}, "`secret` is no sensitivity"),
    ({"source": "x", "document": "d", "metadata": {"a": float("nan")}}, "metadata.a"),
    ({"source": "x", "document": "d", "valid_from": datetime(2025, 1, 1)}, "`valid_from` is a naive datetime"),
    ({"source": "x", "document": "d", "valid_from": NOW, "valid_to": NOW}, "`valid_to` is not after"),
    ({"source": "x" * 100, "document": "d", "max_bytes": 50}, "`d` has more than 50 bytes"),
    ({"source": b"x", "document": "d"}, "`source` is of kind bytes"),
]


@pytest.mark.parametrize(("arguments", "message"), WRONG, ids=range(len(WRONG)))
def test_a_wrong_argument_is_named_and_nothing_is_written(arguments: dict[str, Any], message: str) -> None:
    kb = base()
    source = arguments.pop("source")
    with pytest.raises(InputError) as caught:
        kb.add(source, **arguments)
    assert message in str(caught.value)
    assert kb.stats().documents == 0


def test_opening_arguments_are_checked() -> None:
    for wrong in ({"chunk_tokens": 3}, {"weights": (0.0, 0.0)}, {"weights": (-1.0, 2.0)}, {"reembed": True}):
        with pytest.raises(ConfigError):
            base(**wrong)


# The file


def test_what_was_added_is_there_after_closing(tmp_path: Path) -> None:
    with base(tmp_path / "kb.db") as kb:
        kb.add("# Fees\n\nThe fee is 5.", document="fees", metadata={"a": [1]}, access={"x"}, version="v1")
    kb.close()
    with pytest.raises(StoreError, match="closed"):
        kb.stats()
    with base(tmp_path / "kb.db") as kb:
        (hit,) = found(kb, "fee", scopes={"x"})
        assert (hit.citation, hit.label, hit.metadata) == ("[fees#top: Fees]", "v1", {"a": [1]})


def test_a_foreign_file_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    other = tmp_path / "other.db"
    connection = sqlite3.connect(other)
    connection.execute("CREATE TABLE mine (x)")
    connection.commit()
    connection.close()
    before = other.read_bytes()
    with pytest.raises(SchemaVersionError, match=r"`other\.db` is the database of another program"):
        base(other)
    assert other.read_bytes() == before
    (tmp_path / "text.db").write_text("no database, but quite a long text " * 50)
    with pytest.raises(StoreError, match=r"`text\.db` is no knowledge base"):
        base(tmp_path / "text.db")
    with pytest.raises(StoreError, match="cannot be"):
        base(tmp_path / "no" / "such" / "folder.db")


def test_a_file_from_a_newer_version_is_refused(tmp_path: Path) -> None:
    base(tmp_path / "kb.db").close()
    connection = sqlite3.connect(tmp_path / "kb.db")
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    with pytest.raises(SchemaVersionError, match="version 99"):
        base(tmp_path / "kb.db")


def test_a_bounded_wait_for_another_writer_ends_in_an_error(tmp_path: Path) -> None:
    with base(tmp_path / "kb.db", busy_timeout=0.05) as kb:
        other = sqlite3.connect(tmp_path / "kb.db", isolation_level=None)
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(StoreBusyError, match=r"held by another writer for 0.05 s"):
            kb.add("x", document="d")
        other.execute("ROLLBACK")
        other.close()
        assert kb.add("x", document="d").status == "added"


def _write(path: str, name: str, start: Any) -> None:
    start.wait()
    with KnowledgeBase.open(path) as kb:
        for place in range(25):
            kb.add(f"shared text number {place} by {name}", document="shared")
            kb.add(f"text {place} of {name}", document=f"{name}-{place}")
            hits = kb.search("shared text", tenant=None, document="shared", minimum=0)
            assert len(hits) == 1, hits


def test_two_processes_write_and_search_one_file(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    path, start = str(tmp_path / "kb.db"), context.Event()
    workers = [context.Process(target=_write, args=(path, name, start)) for name in ("p", "q")]
    for worker in workers:
        worker.start()
    start.set()
    for worker in workers:
        worker.join(60)
    assert [worker.exitcode for worker in workers] == [0, 0]
    with KnowledgeBase.open(path) as kb:
        assert kb.stats().documents == 51
        assert {hit.document for hit in kb.search("text 24", tenant=None, minimum=0)} >= {"p-24", "q-24"}


def test_threads_may_share_one_base() -> None:
    kb = base()
    errors: list[Exception] = []

    def work(name: str) -> None:
        try:
            for place in range(20):
                kb.add(f"text {place} of {name}", document=f"{name}{place}")
                assert kb.search(f"text of {name}", tenant=None)
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "abcd"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert kb.stats().documents == 80


def test_a_base_sees_vectors_that_another_handle_wrote(tmp_path: Path) -> None:
    def embed(batch: list[str]) -> list[list[float]]:
        return [[float("cat" in text), float("dog" in text), 0.1] for text in batch]

    make: Callable[[], KnowledgeBase] = lambda: KnowledgeBase.open(tmp_path / "kb.db", embed=embed)  # noqa: E731
    with make() as one, make() as two:
        one.add("a cat", document="cat")
        assert [hit.document for hit in two.search("cat", tenant=None, mode="semantic")] == ["cat"]
        one.add("a dog", document="dog")
        assert [hit.document for hit in two.search("dog", tenant=None, mode="semantic")] == ["dog"]
        one.remove("cat")
        assert "cat" not in [hit.document for hit in two.search("cat", tenant=None, minimum=0)]
