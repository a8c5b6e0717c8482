"""What holds wherever a knowledge base is kept."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from rung.errors import ConfigError, SourceError, StoreBusyError, StoreError
from rung.knowledge import Hit, KnowledgeBase, KnowledgeSource
from rung.knowledge.terms import words
from rung.records.labels import Sensitivity
from rung.sources.protocol import Fetch

from .conftest import OpenBase
from .test_search import HOSTILE, Topics

NOW = datetime(2025, 11, 25, 10, 5, tzinfo=UTC)
DAY = timedelta(days=1)


@pytest.fixture
def kb(open_base: OpenBase) -> KnowledgeBase:
    return open_base(clock=lambda: NOW, embed=Topics())


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.document for hit in hits]


def found(kb: KnowledgeBase, query: str, **kwargs: Any) -> set[str]:
    return set(ids(kb.search(query, **{"tenant": None, "minimum": 0, "mode": "lexical"} | kwargs)))


SCRIPTS = [
    ("Our café opens", "cafe\u0301"),
    ("Our cafe\u0301 opens", "CAFÉ"),
    ("東京都の手数料は無料です", "手数料"),
    ("東京都の手数料は無料です", "京"),
    ("พนักงานธนาคาร", "ธนาคาร"),
    ("수수료가 없습니다", "수수료"),
    ("Комиссия за перевод", "КОМИССИЯ"),
    ("शुल्क नहीं है", "शुल्क"),
    ("The limit is $12,500.00 a day", "12500"),
    ("Payments were processed", "processing payment"),
    ("To be or not to be", "to be"),
    ("see " + "x" * 5_000, "x" * 5_000),
]


def test_words_are_found_in_every_form(kb: KnowledgeBase) -> None:
    for place, (stored, _) in enumerate(SCRIPTS):
        kb.add(stored, document=f"d{place}", format="text")
    for place, (_, asked) in enumerate(SCRIPTS):
        assert f"d{place}" in found(kb, asked), asked
    assert kb.search("café", tenant=None, mode="lexical")[0].text in (SCRIPTS[0][0], SCRIPTS[1][0])


def test_no_question_is_syntax(kb: KnowledgeBase) -> None:
    kb.add("# Late fees\n\nA fee is due when a payment is late.", document="fees")
    for query in HOSTILE:
        for mode in ("lexical", "semantic", "fused"):
            kb.search(query, tenant=None, mode=mode, minimum=0)  # type: ignore[arg-type]
    assert found(kb, "fee' | !'late & title:fee") == {"fees"}
    assert kb.stats().documents == 1


def test_rare_words_and_titles_count_more(kb: KnowledgeBase) -> None:
    for place in range(8):
        kb.add(f"The account and the card number {place}.", document=f"other{place}")
    kb.add("The account and the overdraft.", document="body")
    kb.add("# Overdraft\n\nThe account and the card, and some more.", document="title")
    assert ids(kb.search("card account overdraft", tenant=None, mode="lexical", minimum=0))[:2] == ["title", "body"]


def test_meaning_and_both_fused(kb: KnowledgeBase) -> None:
    kb.add("# Late fees\n\nA fee is due when a payment is late.", document="fees")
    kb.add("# Abroad\n\nOn a trip the card works without notice.", document="travel")
    assert found(kb, "flight") == set()
    assert ids(kb.search("flight", tenant=None, mode="semantic")) == ["travel"]
    best = kb.search("charge when late", tenant=None)[0]
    assert (best.document, best.score) == ("fees", 1.0)
    long = "is a fee due when the payment comes late by several weeks because of some holiday travel problem"
    assert ids(kb.search(long, tenant=None))[0] == "fees"
    assert kb.stats().embedded == 2


def test_tenants_scopes_clearance_metadata_and_validity(kb: KnowledgeBase) -> None:
    kb.add("fee for all", document="all", metadata={"year": 2025, "k": [1, "ü"]})
    kb.add("fee of acme", document="acme", tenant="acme")
    kb.add("fee of acme", document="both", tenant="acme")
    kb.add("fee of all", document="both")
    kb.add("fee in scope", document="scoped", access={"a", "b"})
    kb.add("fee in secret", document="secret", sensitivity="restricted")
    kb.add("fee in time", document="timed", valid_from=NOW, valid_to=NOW + DAY)
    assert found(kb, "fee") == {"all", "both", "timed"}
    assert found(kb, "fee", tenant="acme") == {"all", "acme", "both", "timed"}
    assert [hit.text for hit in kb.search("fee", tenant="acme", document="both")] == ["fee of acme"]
    assert found(kb, "fee", tenant="") == found(kb, "fee", tenant="ACME") == {"all", "both", "timed"}
    assert found(kb, "fee", scopes={"a"}) == {"all", "both", "timed"}
    assert found(kb, "fee", scopes={"a", "b", "c"}) == {"all", "both", "timed", "scoped"}
    assert found(kb, "fee", clearance=Sensitivity.RESTRICTED) == {"all", "both", "timed", "secret"}
    assert found(kb, "fee", metadata={"year": 2025, "k": [1, "ü"]}) == {"all"}
    assert found(kb, "fee", metadata={"year": "2025"}) == set()
    assert found(kb, "fee", now=NOW + DAY) == {"all", "both"}
    assert found(kb, "fee", mode="semantic") == {"all", "both", "timed"}


def test_versions_and_removal(kb: KnowledgeBase) -> None:
    first = kb.add("The fee is 5.", document="fees", version="2025")
    assert kb.add("The fee is 5.", document="fees", version="2025").status == "unchanged"
    assert kb.add("The fee is 6.", document="fees", version="2025").version != first.version
    kb.add("The fee is 7.", document="fees", version="2026", valid_from=NOW + DAY)
    assert [hit.text for hit in kb.search("fee", tenant=None)] == ["The fee is 6."]
    assert [hit.text for hit in kb.search("fee", tenant=None, now=NOW + DAY)] == ["The fee is 7."]
    assert found(kb, "fee", version="2026") == set()
    assert [one.label for one in kb.documents(tenant=None)] == ["2025", "2026"]
    assert kb.remove("fees")
    assert not kb.remove("fees")
    assert found(kb, "fee") == set()


def test_a_folder_is_followed(kb: KnowledgeBase, tmp_path: Path) -> None:
    root = tmp_path / "docs"
    root.mkdir()
    for name in "ab":
        (root / f"{name}.md").write_text(f"# {name}\n\ntext of {name}")
    assert kb.sync(root).added == ("a.md", "b.md")
    (root / "b.md").unlink()
    (root / "a.md").write_text("other text")
    done = kb.sync(root)
    assert (done.changed, done.removed) == (("a.md",), ("b.md",))
    assert kb.sync(root).unchanged == ("a.md",)
    assert found(kb, "text of b") == {"a.md"}


def test_a_failed_write_leaves_everything_as_it_was(kb: KnowledgeBase, open_base: OpenBase) -> None:
    kb.add("fee", document="d")

    class Wider(Topics):
        def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            return [[*vector, 1.0] for vector in super().__call__(texts)]

    wider = open_base(clock=lambda: NOW, embed=Wider())
    with pytest.raises(ConfigError, match="vectors of another size"):
        wider.add("fee again", document="d")
    with pytest.raises(SourceError, match="4 dimensions, not the 3"):
        wider.search("fee", tenant=None)
    assert [hit.text for hit in kb.search("fee", tenant=None)] == ["fee"]


def test_every_vector_may_be_made_again(kb: KnowledgeBase, open_base: OpenBase) -> None:
    kb.add("fee", document="d")

    class Other(Topics):
        name = "other"

        def __call__(self, texts: Sequence[str]) -> list[list[float]]:
            return [[float(len(words(text))), 1.0] for text in texts]

    with pytest.raises(ConfigError, match="are of `topics`"):
        open_base(embed=Other())
    again = open_base(embed=Other(), reembed=True)
    assert ids(again.search("anything", tenant=None, mode="semantic")) == ["d"]
    with pytest.raises(ConfigError, match="are of `other`"):
        kb.search("fee", tenant=None)


def test_handles_write_beside_each_other(open_base: OpenBase) -> None:
    errors: list[Exception] = []

    def work(name: str) -> None:
        try:
            base = open_base(clock=lambda: NOW)
            for place in range(10):
                base.add(f"shared text {place} by {name}", document="shared")
                base.add(f"text {place} of {name}", document=f"{name}{place}")
                assert len(base.search("shared", tenant=None, document="shared", minimum=0)) == 1
        except Exception as error:
            errors.append(error)

    threads = [threading.Thread(target=work, args=(name,)) for name in "pqr"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert open_base().stats().documents == 31


def test_a_bounded_wait_for_another_writer_ends_in_an_error(open_base: OpenBase) -> None:
    holder, waiting = open_base(), open_base(busy_timeout=0.05)
    with holder._database.writing(), pytest.raises(StoreBusyError, match=r"another writer for 0\.05 s"):
        waiting.add("x", document="d")
    assert waiting.add("x", document="d").status == "added"


def test_a_closed_base_says_so(kb: KnowledgeBase) -> None:
    kb.close()
    kb.close()
    with pytest.raises(StoreError, match="closed"):
        kb.stats()


def test_a_turn_is_served(kb: KnowledgeBase) -> None:
    kb.add("# Fees\n\n## Late\n\nThe late fee is 5.", document="fees", access={"faq"})
    (draft,) = KnowledgeSource(kb).fetch(Fetch(query="late fee", now=NOW, scopes=frozenset({"faq"})))
    assert (draft.key, draft.score) == ("doc:fees#late", 1.0)
    assert KnowledgeSource(kb).fetch(Fetch(query="late fee", now=NOW)) == []
