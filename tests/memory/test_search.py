"""Scores are from 0 to 1, mean the same in every search, and depend on nothing but the texts."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung import ContextStore
from rung.compiler.supersession import replacements
from rung.memory import MemoryStore
from rung.records.item import body

SAID = [
    "prefers delivery to the parcel locker",
    "has two cats, Nova and Mio",
    "was refunded for order 1842 in July",
    "lives in Bern",
    "喜欢喝绿茶",
    "speaks German and French",
]


def filled(embed: object = None) -> MemoryStore:
    view = ContextStore(ids="deterministic").scope(subject="u7")
    memory = MemoryStore(view, embed=embed)  # type: ignore[arg-type]
    for text in SAID:
        memory.remember(view.user(text))
    return memory


@pytest.mark.parametrize(
    ("message", "best"),
    [
        ("cat", "has two cats, Nova and Mio"),
        ("Could the parcel go somewhere else? I am away for a while and my neighbour cannot take it", SAID[0]),
        ("What happened to order 1842?", SAID[2]),
        ("绿茶", SAID[4]),
        ("NOVA", SAID[1]),
    ],
)
def test_a_message_finds_what_it_is_about(message: str, best: str) -> None:
    assert body(filled().search(message)[0].item) == best


@pytest.mark.parametrize("message", ["", "   ", "?!", "the of and", "zebra", '" OR NEAR( * ^', "\ud800"])
def test_a_message_about_something_else_finds_nothing_and_holds_no_syntax(message: str) -> None:
    assert filled().search(message) == []


def test_meaning_finds_what_words_do_not() -> None:
    axes = {"cats": 0, "pet": 0, "Bern": 1, "city": 1}

    def embed(texts: Sequence[str]) -> list[list[float]]:
        return [
            [1.0 if any(word in text and axis == place for word, axis in axes.items()) else 0.0 for place in (0, 1)]
            for text in texts
        ]

    memory = filled(embed)
    assert body(memory.search("pet")[0].item) == SAID[1]
    assert body(memory.search("city")[0].item) == SAID[3]
    hit = memory.search("cats")[0]
    assert (hit.semantic, hit.score) == (1.0, 1.0)
    assert filled().search("pet") == []


def test_an_unsure_memory_needs_a_better_match() -> None:
    view = ContextStore().scope(subject="u7")
    memory = MemoryStore(view)
    memory.remember(view.user("the parcel locker is at the station"), confidence=0.3)
    memory.remember(view.user("the parcel shop is at the station"), confidence=1.0)
    assert [body(hit.item) for hit in memory.search("parcel at the post office")] == [
        "the parcel shop is at the station"
    ]


@settings(max_examples=60)
@given(st.text(max_size=80), st.integers(1, 8), st.floats(0, 1))
def test_a_search_keeps_its_limits_and_is_the_same_twice(message: str, limit: int, minimum: float) -> None:
    found = _FILLED.search(message, limit=limit, minimum=minimum)
    assert len(found) <= limit
    assert all(minimum <= hit.score <= 1.0 and hit.score > 0 for hit in found)
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    again = filled().search(message, limit=limit, minimum=minimum)
    assert [(body(hit.item), hit.score) for hit in found] == [(body(hit.item), hit.score) for hit in again]


_FILLED = filled()


@given(st.dictionaries(st.integers(0, 12), st.integers(0, 12), max_size=13))
def test_every_chain_ends_in_one_that_stays(given_links: dict[int, int]) -> None:
    later = {str(old): str(new) for old, new in given_links.items() if old != new}
    last = replacements(later, lambda name: (int(name),))
    assert set(last) <= set(later)
    for old, new in last.items():
        assert new not in last, "what stands in its place stays"
        seen, at = set[str](), old
        while at in later and at not in seen:
            seen.add(at)
            at = later[at]
        assert new == at or new in seen, "and it is on the chain"
    for name in later:
        assert name in last or name in last.values(), "nothing that was replaced stays without a reason"
