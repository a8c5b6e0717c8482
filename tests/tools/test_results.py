"""What of a result enters the session: canonical, projected, capped, and honest about what is left out."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from hashlib import sha256
from typing import Any
from uuid import UUID

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.engine.agents import ACME, agent, compiles, sent

from rung import ContextStore, Evidence, TransformError
from rung.records.canonical import canonical_json
from rung.testing.model import call
from rung.tools import Tool, ToolResult, shown, tool


@tool
def it() -> Any:
    """It."""


def variant(**changes: Any) -> Tool:
    return msgspec.structs.replace(it, **changes)


def test_case_d_encoding_05_the_common_python_values_have_one_json_form() -> None:
    value = {
        "when": datetime(2026, 8, 8, 10, tzinfo=timezone(timedelta(hours=2))),
        "amount": Decimal("1.10"),
        "blob": b"\xff\x00",
        "id": UUID(int=5),
        "s": {"b", "a"},
    }
    found = shown(it, value)
    assert canonical_json(found.content) == (
        '{"amount":"1.10","blob":{"$base64":"/wA="},"id":"00000000-0000-0000-0000-000000000005",'
        '"s":["a","b"],"when":"2026-08-08T10:00:00+02:00"}'
    )


async def test_case_d_encoding_05_a_value_without_a_form_fails_its_call_and_the_loop_goes_on() -> None:
    @tool
    def odd() -> dict[str, Any]:
        """Odd."""
        return {"x": float("nan"), "o": object()}

    engine = agent(call("odd", {}), "It failed.", tools=[odd])
    outcome = await engine.run("Odd?", session="s", principal=ACME)
    assert outcome.done
    assert '"error":"unserialisable_result"' in sent(engine)[-1]["messages"][-1]["content"]
    compiles(engine, outcome)


@dataclass
class Point:
    x: int
    seen: datetime


class Model:
    def model_dump(self) -> dict[str, Any]:
        return {"a": 1}


FORMS: list[tuple[str, Any, Any]] = [
    ("nothing", None, ""),
    ("a text", "plain", "plain"),
    ("a dataclass", Point(1, datetime(2026, 1, 1, tzinfo=UTC)), {"x": 1, "seen": "2026-01-01T00:00:00Z"}),
    ("a pydantic model", Model(), {"a": 1}),
    ("a tuple", (1, 2), [1, 2]),
]


@pytest.mark.parametrize(("what", "value", "content"), FORMS, ids=[row[0] for row in FORMS])
def test_values_have_a_form(what: str, value: Any, content: Any) -> None:
    assert canonical_json(shown(it, value).content) == canonical_json(content)


def test_only_the_fields_wanted_enter() -> None:
    made = variant(fields=("orders[].id",))
    found = shown(made, {"orders": [{"id": 1, "card": "4111"}, {"id": 2, "card": "4222"}], "token": "x"})
    assert found.content == {"orders": [{"id": 1}, {"id": 2}]}
    assert "sha256" in found.attrs


def test_rows_are_capped_with_their_number() -> None:
    found = shown(variant(max_rows=2), list(range(10)))
    assert found.content == [0, 1, {"$omitted": 8}]


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=60,
)


@given(VALUES)
def test_no_result_is_larger_than_its_cap(value: Any) -> None:
    found = shown(variant(max_bytes=256), value)
    text = found.content if isinstance(found.content, str) else canonical_json(found.content)
    whole = value if isinstance(value, str) else "" if value is None else canonical_json(value)
    assert len(text.encode("utf-8", "replace")) <= 256
    if len(whole.encode("utf-8", "replace")) > 256:
        assert found.attrs["bytes"] == str(len(whole.encode("utf-8", "replace")))


@pytest.mark.parametrize("piece", ["row 1: äöü €\n", "x", "<div>row</div>"])
def test_a_long_text_keeps_head_and_tail_and_says_how_much_is_left_out(piece: str) -> None:
    whole = "HEAD " + piece * 100_000 + " TAIL"
    found = shown(variant(max_bytes=1_000), whole)
    data = whole.encode()
    assert found.content.startswith("HEAD")
    assert found.content.endswith("TAIL")
    assert len(found.content.encode()) <= 1_000
    head, rest = found.content.split("\n[... ")
    count, tail = rest.split(" bytes left out ...]\n")
    assert abs(int(count) + len(head.encode()) + len(tail.encode()) - len(data)) <= 2
    assert found.attrs == {"bytes": str(len(data)), "sha256": sha256(data).hexdigest()}


async def test_case_d_tool_output_size_02_one_cap_for_every_tool_wherever_it_comes_from() -> None:
    from rung.tools import ToolSet

    whole = "<div>row</div>" * 60_000

    def body() -> str:
        return whole

    own = tool(name="bash", description="Run.")(body)
    foreign = Tool(name="crawl.scrape", description="Scrape.", parameters={}, call=body, foreign=True)
    engine = agent(
        [call("bash", {}), call("crawl_scrape", {})],
        "ok",
        "still here",
        tools=[own, ToolSet("web", (foreign,), trusted=False)],
    )
    outcome = await engine.run("Both", session="s", principal=ACME)
    results = [item.reveal("test") for item in outcome.items if item.call_id]
    assert results[0] == results[1]
    assert len(results[0]) <= 8_192
    assert (await engine.run("And now?", session="s", principal=ACME)).done


async def test_a_result_may_say_when_it_was_seen_and_what_it_states() -> None:
    seen = datetime(2026, 1, 1, tzinfo=UTC)

    @tool
    def rate() -> ToolResult:
        """Rate."""
        return ToolResult(value={"rate": 3}, observed_at=seen, key="rate:eur", version="v7")

    outcome = await agent(call("rate", {}), "3", tools=[rate]).run("Rate?", session="s", principal=ACME)
    item = outcome.items[2]
    assert (item.observed_at, item.key, item.version) == (seen, "rate:eur", "v7")


async def test_what_failed_or_was_refused_never_becomes_evidence() -> None:
    @tool
    def fails() -> None:
        """Fails."""
        raise ValueError

    store = ContextStore()
    engine = agent([call("fails", {}), call("nothing", {})], "ok", tools=[fails], store=store)
    outcome = await engine.run("Go", session="s", principal=ACME)
    view = engine.view("s", ACME)
    for item in outcome.items:
        if item.call_id:
            with pytest.raises(TransformError):
                view.promote(item, Evidence)
