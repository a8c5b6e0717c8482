"""A knowledge base as a source: passages become Evidence that can be cited in every turn."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from rung.errors import InputError
from rung.knowledge import KnowledgeBase, KnowledgeSource
from rung.records.labels import Sensitivity
from rung.records.types import Evidence
from rung.sources.protocol import ContextSource, Fetch
from rung.store import ContextStore

NOW = datetime(2025, 11, 25, 10, 5, tzinfo=UTC)


@pytest.fixture
def kb() -> KnowledgeBase:
    base = KnowledgeBase.open(clock=lambda: NOW)
    base.add(
        "# Late fees\n\n## Amount\n\nThe late fee is 5.",
        document="fees",
        version="2025",
        observed_at=NOW - timedelta(days=9),
        valid_to=NOW + timedelta(days=9),
        access={"faq"},
        sensitivity="personal",
    )
    base.add("The fee of a tenant.", document="own", tenant="acme")
    return base


def want(query: str = "late fee", **kwargs: Any) -> Fetch:
    return Fetch(query=query, now=NOW, **kwargs)


RIGHTS: dict[str, Any] = {"scopes": frozenset({"faq"}), "clearance": Sensitivity.PERSONAL}


def test_a_passage_is_evidence_with_what_a_citation_needs(kb: KnowledgeBase) -> None:
    source: ContextSource = KnowledgeSource(kb, minimum=0)
    assert source.name == "knowledge"
    (draft,) = KnowledgeSource(kb).fetch(want(**RIGHTS))
    assert draft.type is Evidence
    assert draft.content == "## Amount\n\nThe late fee is 5."
    assert draft.key == "doc:fees#amount"
    assert draft.version == kb.documents(tenant=None)[0].version
    assert dict(draft.attrs) == {
        "id": "fees#amount",
        "document": "fees",
        "title": "Late fees",
        "place": "000000",
        "section": "Amount",
        "label": "2025",
    }
    assert (draft.observed_at, draft.expires_at) == (NOW - timedelta(days=9), NOW + timedelta(days=9))
    assert (draft.sensitivity, draft.scopes, draft.score) == (Sensitivity.PERSONAL, frozenset({"faq"}), 1.0)


REFUSED: list[dict[str, Any]] = [
    {},
    {"scopes": frozenset({"faq"})},
    {"clearance": Sensitivity.RESTRICTED},
    {**RIGHTS, "limit": 0},
    {**RIGHTS, "query": " "},
]


@pytest.mark.parametrize("rights", REFUSED)
def test_what_the_turn_may_not_see_is_not_fetched(kb: KnowledgeBase, rights: dict[str, Any]) -> None:
    assert KnowledgeSource(kb).fetch(want(**rights)) == []


def test_the_turns_tenant_and_moment_decide(kb: KnowledgeBase) -> None:
    source = KnowledgeSource(kb, minimum=0)
    assert [draft.key for draft in source.fetch(want(tenant="acme"))] == ["doc:own#top"]
    assert source.fetch(want(tenant="other")) == []
    late = Fetch(query="late fee", now=NOW + timedelta(days=9), **RIGHTS)
    assert source.fetch(late) == []


def test_ids_stay_when_a_later_turn_ranks_another_document_first(kb: KnowledgeBase) -> None:
    source = KnowledgeSource(kb, minimum=0)
    before = {draft.key: (draft.version, draft.content) for draft in source.fetch(want(**RIGHTS))}
    kb.add("# Late late fee\n\nlate fee late fee", document="first")
    after = {draft.key: (draft.version, draft.content) for draft in source.fetch(want(**RIGHTS))}
    assert next(iter(after)) == "doc:first#top"
    assert before.items() <= after.items()


def test_the_sources_own_filters_hold(kb: KnowledgeBase) -> None:
    assert KnowledgeSource(kb, metadata={"lang": "de"}).fetch(want(**RIGHTS)) == []
    assert KnowledgeSource(kb, version="2024").fetch(want(**RIGHTS)) == []
    assert len(KnowledgeSource(kb, version="2025").fetch(want(**RIGHTS))) == 1
    reranked = KnowledgeSource(kb, rerank=lambda _, hits: [0.25 for _ in hits]).fetch(want(**RIGHTS))
    assert [draft.score for draft in reranked] == [0.25]


def test_a_source_is_named_and_bounded(kb: KnowledgeBase) -> None:
    with pytest.raises(InputError, match="needs a name"):
        KnowledgeSource(kb, "")
    with pytest.raises(InputError, match="at least 1"):
        KnowledgeSource(kb, limit=0)


def test_passages_of_one_document_stand_in_its_order_whatever_their_names_and_ranks() -> None:
    base = KnowledgeBase.open(clock=lambda: NOW)
    names = ["zebra", "apple", "mango", "banana"]
    base.add(
        "\n\n".join(f"## {name}\n\n{'fee ' * (place + 1)}{'word ' * 90}" for place, name in enumerate(names)),
        document="d",
    )
    drafts = KnowledgeSource(base, minimum=0).fetch(want("fee"))
    assert [dict(draft.attrs)["section"] for draft in drafts] != names
    store = ContextStore(clock=lambda: NOW)
    items = store.add_many([msgspec.structs.replace(draft, source="kb") for draft in drafts])
    text = store.compile([*items, store.user("fee?")], budget=2_000, target="text").text
    assert sorted(names, key=lambda name: text.index(f"## {name}")) == names
