"""What a question finds, whatever it looks like, and what it never finds."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.errors import ConfigError, InputError, SourceError
from rung.knowledge import Hit, KnowledgeBase
from rung.knowledge.terms import query_words, words
from rung.records.labels import Sensitivity

NOW = datetime(2025, 11, 25, 10, 5, tzinfo=UTC)
TOPICS = ("fee charge cost price", "travel trip flight abroad", "card lost stolen theft")


class Topics:
    """Three dimensions: how many words of each topic a text holds."""

    name = "topics"

    def __call__(self, texts: Sequence[str]) -> list[list[float]]:
        return [[sum(word in topic.split() for word in words(text)) for topic in TOPICS] for text in texts]


def base(**kwargs: object) -> KnowledgeBase:
    return KnowledgeBase.open(clock=lambda: NOW, **kwargs)  # type: ignore[arg-type]


def ids(hits: Sequence[Hit]) -> list[str]:
    return [hit.document for hit in hits]


@pytest.fixture
def bank() -> KnowledgeBase:
    kb = base(embed=Topics())
    kb.add("# Late fees\n\nA fee is due when a payment is late.", document="fees")
    kb.add("# Abroad\n\nOn a trip the card works without notice.", document="travel")
    kb.add("# Stolen\n\nReport a stolen card at once.", document="stolen")
    return kb


FORMS = ["café", "cafe\u0301", "CAFÉ", "Cafe", "ｃａｆｅ́"]


@pytest.mark.parametrize("stored", FORMS)
@pytest.mark.parametrize("asked", FORMS)
def test_each_written_form_of_a_word_finds_each_other(stored: str, asked: str) -> None:
    kb = base()
    kb.add(f"Our {stored} opens at nine.", document="d")
    hits = kb.search(asked, tenant=None)
    assert ids(hits) == ["d"]
    assert hits[0].text == f"Our {stored} opens at nine."


@pytest.mark.parametrize(
    ("stored", "asked"),
    [
        ("東京都の手数料は無料です", "手数料"),
        ("東京都の手数料は無料です", "京"),
        ("พนักงานธนาคาร", "ธนาคาร"),
        ("수수료가 없습니다", "수수료"),
        ("Комиссия за перевод", "КОМИССИЯ"),
        ("शुल्क नहीं है", "शुल्क"),
        ("The limit is $12,500.00 a day", "12500"),
        ("The customer's cards", "customer card"),
        ("Payments were processed", "processing payment"),
    ],
)
def test_words_of_many_scripts_are_found(stored: str, asked: str) -> None:
    kb = base()
    kb.add("Something else entirely.", document="other")
    kb.add(stored, document="d")
    assert ids(kb.search(asked, tenant=None)) == ["d"]


HOSTILE = [
    '"', '""', "'", "fees*", "title:fees", "{title body}:fees", "fees NEAR late", "NEAR(fees late, 1)",
    "fees AND",
    "NOT fees",
    "OR", "(", ")", "fees^2", "-fees", "fees + late", "fees; DROP TABLE documents", "a\x00b",
    "\ud800", "\x00", "%s", "?", ":now",
    "\u202e\u200b", "é" * 30_000, "x " * 100_000, "((((" * 2_000,
]  # fmt: skip


@pytest.mark.parametrize("query", HOSTILE, ids=range(len(HOSTILE)))
def test_no_question_is_syntax(bank: KnowledgeBase, query: str) -> None:
    for mode in ("lexical", "semantic", "fused"):
        bank.search(query, tenant=None, mode=mode, minimum=0)  # type: ignore[arg-type]
    assert bank.stats().documents == 3


def test_operators_are_words(bank: KnowledgeBase) -> None:
    for query in ("fee NOT late", "title: fee", "fee* ", '"fee', "late AND fee NEAR card"):
        assert ids(bank.search(query, tenant=None, mode="lexical"))[0] == "fees"


@given(st.text(max_size=200))
@settings(max_examples=100, deadline=None)
def test_any_text_may_be_asked_and_its_forms_ask_the_same(text: str) -> None:
    assert query_words(unicodedata.normalize("NFD", text)) == query_words(unicodedata.normalize("NFC", text))


def test_a_question_of_function_words_alone_still_finds() -> None:
    kb = base()
    kb.add("To be or not to be", document="d")
    assert ids(kb.search("to be", tenant=None)) == ["d"]


def test_an_empty_question_finds_nothing(bank: KnowledgeBase) -> None:
    assert bank.search("", tenant=None) == bank.search(" \n", tenant=None) == []
    assert bank.search("fee", tenant=None, limit=0) == []


def test_meaning_finds_what_shares_no_word(bank: KnowledgeBase) -> None:
    assert bank.search("flight", tenant=None, mode="lexical") == []
    assert ids(bank.search("flight", tenant=None, mode="semantic")) == ["travel"]
    assert ids(bank.search("flight", tenant=None)) == ["travel"]


def test_fused_puts_first_what_both_rankings_find(bank: KnowledgeBase) -> None:
    hit = bank.search("charge when late", tenant=None)[0]
    assert (hit.document, hit.score) == ("fees", 1.0)
    assert hit.lexical is not None
    assert hit.semantic is not None


def test_scores_are_from_0_to_1_and_the_best_of_one_ranking_has_1(bank: KnowledgeBase) -> None:
    for mode in ("lexical", "semantic", "fused"):
        hits = bank.search("stolen card fee", tenant=None, mode=mode, minimum=0)  # type: ignore[arg-type]
        assert all(0 <= hit.score <= 1 for hit in hits)
        assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    assert bank.search("stolen card", tenant=None, mode="lexical")[0].score == 1.0


def test_the_default_minimum_leaves_out_weak_hits(bank: KnowledgeBase) -> None:
    everything = bank.search("stolen card", tenant=None, mode="lexical", minimum=0)
    assert set(ids(everything)) == {"stolen", "travel"}
    assert ids(bank.search("stolen card", tenant=None, mode="lexical")) == ["stolen"]


def test_rerank_gets_all_candidates_and_decides(bank: KnowledgeBase) -> None:
    seen: list[int] = []

    def rerank(query: str, hits: Sequence[Hit]) -> list[float]:
        seen.append(len(hits))
        return [1.0 if hit.document == "travel" else 0.2 for hit in hits]

    assert ids(bank.search("stolen card", tenant=None, limit=1, rerank=rerank)) == ["travel"]
    assert seen == [2]


@pytest.mark.parametrize("scores", [[], [1.0] * 9, [float("nan")] * 2, [2.0, 0.1]])
def test_a_rerank_hook_that_breaks_its_contract_is_named(bank: KnowledgeBase, scores: list[float]) -> None:
    with pytest.raises(SourceError, match="the rerank hook returned"):
        bank.search("stolen card", tenant=None, rerank=lambda *_: scores)


@pytest.mark.parametrize(
    "vectors", [np.zeros((1, 3)), np.zeros(3), np.full((9, 3), np.nan), np.zeros((9, 0))], ids=range(4)
)
def test_an_embedding_that_breaks_its_contract_is_named_and_changes_nothing(vectors: object) -> None:
    def wrong(texts: Sequence[str]) -> object:
        return vectors

    kb = base(embed=wrong)
    with pytest.raises(SourceError, match=r"the embedding `.*wrong` returned"):
        kb.add("\n\n".join(f"# s{place}\n\n" + "word " * 200 for place in range(9)), document="d")
    assert kb.stats().documents == 0


def test_meaning_without_an_embedding_is_a_configuration_error() -> None:
    with pytest.raises(ConfigError, match="open the base with embed"):
        base().search("x", tenant=None, mode="semantic")


def test_vectors_of_two_models_are_never_compared(tmp_path: object) -> None:
    path = f"{tmp_path}/kb.db"
    with KnowledgeBase.open(path, embed=Topics()) as kb:
        kb.add("fee", document="d")

    class Other(Topics):
        name = "other"

    with pytest.raises(ConfigError, match="the stored vectors are of `topics`"):
        KnowledgeBase.open(path, embed=Other())
    with KnowledgeBase.open(path) as kb:
        assert ids(kb.search("fee", tenant=None)) == ["d"]
    with KnowledgeBase.open(path, embed=Other(), reembed=True) as kb:
        assert kb.stats().embedder == "other"
        assert ids(kb.search("charge", tenant=None, mode="semantic")) == ["d"]


def test_documents_added_without_vectors_get_them_when_added_again(tmp_path: object) -> None:
    path = f"{tmp_path}/kb.db"
    with KnowledgeBase.open(path) as kb:
        kb.add("fee", document="d")
    with KnowledgeBase.open(path, embed=Topics()) as kb:
        assert ids(kb.search("fee", tenant=None)) == ["d"]
        assert kb.add("fee", document="d").status == "unchanged"
        assert kb.stats().embedded == 1


def test_the_same_passage_of_a_document_comes_once_and_of_two_documents_twice() -> None:
    kb = base(chunk_tokens=16)
    kb.add("# P\n\n## A\n\nAlpha beta.\n\n## B\n\n" + "Gamma delta. " * 20, document="p")
    kb.add("Clause 7 applies.", document="file_a.txt", format="text")
    kb.add("Clause 7 applies.", document="file_b.txt", format="text")
    texts = [hit.text for hit in kb.search("gamma", tenant=None, minimum=0)]
    assert len(texts) == len(set(texts))
    assert ids(kb.search("clause 7", tenant=None)) == ["file_a.txt", "file_b.txt"]


# Who may see what


def test_another_tenants_documents_are_never_found() -> None:
    kb = base()
    kb.add("my cat is Nova", document="cat", tenant="uid1")
    kb.add("cats in general", document="general")
    assert set(ids(kb.search("cat", tenant="uid1", minimum=0))) == {"cat", "general"}
    assert ids(kb.search("cat", tenant="uid2")) == ["general"]
    assert ids(kb.search("cat", tenant=None)) == ["general"]
    assert ids(kb.search("cat", tenant="")) == ["general"]
    assert ids(kb.search("cat", tenant="UID1")) == ["general"]
    with pytest.raises(TypeError):
        kb.search("cat")  # type: ignore[call-arg]


def test_a_tenants_own_document_hides_everybodys_of_the_same_id() -> None:
    kb = base()
    kb.add("The fee is 5.", document="fees")
    kb.add("The fee is 3 for you.", document="fees", tenant="acme")
    assert [hit.text for hit in kb.search("fee", tenant="acme")] == ["The fee is 3 for you."]
    assert [hit.text for hit in kb.search("fee", tenant="other")] == ["The fee is 5."]


def test_each_scope_and_the_clearance_are_needed() -> None:
    kb = base()
    kb.add("fee one", document="two", access={"a", "b"})
    kb.add("fee two", document="open")
    kb.add("fee three", document="secret", sensitivity="restricted")

    def found(**rights: object) -> set[str]:
        return set(ids(kb.search("fee", tenant=None, minimum=0, **rights)))  # type: ignore[arg-type]

    assert found() == found(scopes={"a"}) == {"open"}
    assert found(scopes={"a", "b", "c"}) == {"open", "two"}
    assert found(clearance=Sensitivity.RESTRICTED) == {"open", "secret"}


def test_metadata_is_compared_as_json() -> None:
    kb = base()
    kb.add("fee one", document="a", metadata={"lang": "en", "year": 2025, 'it\'s "k"': [1]})
    kb.add("fee two", document="b", metadata={"lang": "de", "year": "2025", "live": True})

    def found(**metadata: object) -> list[str]:
        return ids(kb.search("fee", tenant=None, metadata=metadata, minimum=0))

    assert found(lang="en") == found(year=2025) == found(lang="en", year=2025) == ["a"]
    assert found(year="2025") == found(live=True) == ["b"]
    assert found(live=1) == found(lang="en", live=True) == found(no=None) == []
    assert found(**{'it\'s "k"': [1]}) == ["a"]


def test_filters_run_before_the_ranking_not_after_it() -> None:
    kb = base(embed=Topics())
    for place in range(200):
        kb.add("fee fee fee", document=f"other{place}", tenant="other")
    kb.add("a fee among many other words about nothing at all", document="mine", tenant="me")
    assert ids(kb.search("fee", tenant="me", limit=1, overfetch=1)) == ["mine"]


def test_a_document_is_found_while_it_is_valid() -> None:
    kb = base()
    day = timedelta(days=1)
    kb.add("fee now", document="d", valid_from=NOW, valid_to=NOW + day)

    def at(moment: datetime) -> list[str]:
        return ids(kb.search("fee", tenant=None, now=moment))

    assert at(NOW - day) == at(NOW + day) == []
    assert at(NOW) == at(NOW + day / 2) == ["d"]
    with pytest.raises(InputError, match="`now` is a naive datetime"):
        at(datetime(2025, 1, 1))


def test_a_version_may_be_asked_for_by_its_name() -> None:
    kb = base()
    kb.add("fee", document="d", version="2025")
    assert ids(kb.search("fee", tenant=None, version="2025")) == ["d"]
    assert ids(kb.search("fee", tenant=None, version=kb.search("fee", tenant=None)[0].version)) == ["d"]
    assert kb.search("fee", tenant=None, version="2024") == []
