"""What a compaction leaves: a valid turn, everything said either sent or summarised, the originals in the store."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung import ContextStore, InputError, Summary, ToolCall, ToolOutput
from rung.assembly.validate import validate
from rung.compiler.summaries import until
from rung.records.item import ContextItem, body
from rung.summary import Compactor, SummaryRequest

from .conversations import Counted, exchange, talk


@pytest.fixture
def view() -> ContextStore:
    return ContextStore().scope(tenant="acme", subject="u7", session="s1")


def sent(view: ContextStore, **options: Any) -> tuple[str, Any]:
    asked = view.user("And now?")
    turn = view.compile([], history="session", **options)
    view.assistant("Well.")
    return asked.id, turn


async def test_the_prompts_beginning_stays_between_two_compactions(view: ContextStore) -> None:
    compactor = Compactor(high=2_000, low=800)
    previous: Any = None
    kept: list[bool] = []
    applied = 0
    for number in range(60):
        exchange(view, number, call=number % 3 == 0)
        applied += (await compactor.compact(view)).status == "compacted"
        _, turn = sent(view, previous=previous)
        if previous is not None:
            kept.append(turn.manifest.prefix.broken_by is None)
        previous = turn
    assert applied <= 8
    assert kept.count(False) == applied


async def test_a_turn_names_what_a_summary_stands_for(view: ContextStore) -> None:
    items = talk(view, 20)
    made = await Compactor(high=800, low=300, recent=2).compact(view)
    assert made.summary is not None
    _, turn = sent(view)
    row = next(row for row in turn.manifest.entries if row.reason == "summarised")
    assert (row.item, row.params, row.count) == (items[0].id, {"item": made.summary.id}, 2 * made.exchanges)
    places = [message.place for message in turn.prompt.messages]
    assert places[0] == "summary"
    assert places[1] == "history"
    assert turn.manifest.totals.summary > 0
    assert [item.id for item in view.items() if item.type.name in ("user", "assistant")][: len(items)] == [
        item.id for item in items
    ], "the originals stay in the store"


async def test_only_the_newest_summary_is_shown(view: ContextStore) -> None:
    compactor = Compactor(high=800, low=300, recent=2)
    for number in range(60):
        exchange(view, number)
        await compactor.compact(view)
    summaries = list(view.items(Summary))
    assert len(summaries) > 2
    newest = max(summaries, key=until)
    for given_items in ([], summaries):
        view.user("And now?")
        turn = view.compile(given_items, history="session")
        assert [
            block.item_id for message in turn.prompt.messages if message.place == "summary" for block in message.blocks
        ] == [newest.id]
    handed = view.compile([*summaries, view.user("And now?")])
    rows = {row.item: row for row in handed.manifest.entries}
    assert [rows[item.id].reason for item in summaries] == ["superseded_by"] * (len(summaries) - 1) + ["selected"]


async def test_a_revoked_item_takes_its_summaries_along_and_the_history_comes_back(view: ContextStore) -> None:
    items = talk(view, 20)
    compactor = Compactor(high=800, low=300, recent=2)
    made = await compactor.compact(view)
    assert made.summary is not None
    view.revoke(items[1], reason="poisoned")
    assert view.is_revoked(made.summary)
    _, turn = sent(view)
    assert turn.manifest.totals.summary == 0
    again = await compactor.compact(view)
    assert again.summary is not None
    assert items[1].id not in {item.id for item in view.ancestors(again.summary)}
    assert (items[1].id, "revoked") in again.withheld


async def test_what_expires_is_not_carried_into_a_summary(view: ContextStore) -> None:
    view.user("What is the rate?", turn="a")
    view.assistant("", parts=[ToolCall(id="c", name="rate")], turn="a")
    rate = view.add(
        ToolOutput, "the rate is 7.25", source="tool:rate", call_id="c", turn="a",
        expires_at=view.now().replace(year=2099),
    )  # fmt: skip
    view.assistant("See above.", turn="a")
    talk(view, 15)
    made = await Compactor(high=800, low=300, recent=2).compact(view)
    assert made.summary is not None
    assert (rate.id, "expires") in made.withheld
    assert made.summary.expires_at is None
    assert "7.25" not in body(made.summary)


async def test_a_result_that_the_policy_finds_too_large_stays_out(view: ContextStore) -> None:
    view.user("Dump it. " + "x " * 40_000, turn="a")
    view.assistant("Done.", turn="a")
    talk(view, 15)
    made = await Compactor(high=800, low=300, recent=2, most=200_000).compact(view)
    assert made.status == "compacted"
    assert "too_large" in {reason for _, reason in made.withheld}


async def test_a_long_past_is_summarised_in_several_steps(view: ContextStore) -> None:
    talk(view, 60)
    steps = Counted(lambda request: f"Step {len(steps.asked)} of it.")
    made = await Compactor(steps, high=800, low=300, recent=2, most=1_500).compact(view)
    assert made.status == "compacted"
    assert made.attempts == len(steps.asked) > 2
    assert made.exchanges > 50
    assert steps.asked[1].previous == "Step 1 of it."


async def test_what_a_turn_left_out_is_summarised_whatever_the_mark(view: ContextStore) -> None:
    talk(view, 40)
    view.user("And now?")
    turn = view.compile([], history="session", budget=1_500)
    assert any(row.reason == "history_window" for row in turn.manifest.entries)
    compactor = Compactor(high=100_000)
    assert (await compactor.compact(view)).status == "not_applied"
    assert (await compactor.compact(view, manifest=turn.manifest)).status == "compacted"
    turn = view.compile([], history="session", budget=1_500)
    assert not any(row.reason == "history_window" for row in turn.manifest.entries)


@pytest.mark.parametrize("fallback", [False, True])
async def test_a_summariser_that_fails_leaves_the_history_or_the_extract(view: ContextStore, fallback: bool) -> None:
    async def broken(_: SummaryRequest) -> str:
        raise TimeoutError

    talk(view, 20)
    made = await Compactor(broken, high=800, low=300, fallback=fallback).compact(view)
    assert made.status == ("compacted" if fallback else "ineffective")
    assert [failure.code for failure in made.failures] == ([] if fallback else ["summariser_failed"])
    if made.summary is not None:
        assert made.summary.attr("made_by") == "extract"


async def test_a_session_is_needed_and_marks_are_checked() -> None:
    with pytest.raises(InputError):
        await Compactor().compact(ContextStore())
    with pytest.raises(InputError):
        Compactor(high=100, low=100)
    assert Compactor().marks(ContextStore()) == (3_600, 1_800)
    assert Compactor().marks(ContextStore(), available=100_000) == (8_000, 4_000)


class Said:
    """What was said, as a list of items by exchange."""

    def __init__(self, view: ContextStore, shape: list[tuple[bool, int]]) -> None:
        self.items: list[ContextItem[Any]] = []
        for number, (call, size) in enumerate(shape):
            self.items += exchange(view, number, call=call, filler="word " * size)


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 120)), min_size=1, max_size=25),
    st.integers(100, 1_500),
    st.integers(1, 6),
    st.sampled_from(["openai-chat", "openai-responses", "anthropic"]),
)
async def test_everything_said_is_sent_or_summarised_and_each_turn_is_valid(
    shape: list[tuple[bool, int]], high: int, recent: int, target: str
) -> None:
    view = ContextStore().scope(tenant="acme", subject="u7", session="s1")
    compactor = Compactor(high=high, recent=recent, budget=200)
    half = len(shape) // 2
    first = Said(view, shape[:half])
    await compactor.compact(view)
    for number, (call, size) in enumerate(shape[half:], half):
        first.items += exchange(view, number, call=call, filler="word " * size)
    made = await compactor.compact(view)
    assert (await compactor.compact(view)).status == "not_applied", "what was compacted is not compacted again at once"
    asked, turn = sent(view, budget=50_000, target=target)
    assert validate(turn.request, target) == []
    summaries = list(view.items(Summary))
    covered = {item.id for summary in summaries for item in view.ancestors(summary) if item.type is not Summary}
    shown = {
        block.item_id for message in turn.prompt.messages for block in message.blocks if message.place == "history"
    }
    assert covered | shown == {item.id for item in first.items}
    assert not covered & shown
    assert asked not in covered
    if made.status == "compacted":
        assert made.tokens_after < made.tokens_before
