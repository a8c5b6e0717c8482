"""The deterministic extract: what it keeps, what it leaves out, and that it stays within its budget."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rung.summary import Line, SummaryRequest, extract
from rung.summary.extract import LONGEST, NOTHING


def words(text: str) -> int:
    return len(text.split())


def request(*lines: tuple[str, str], previous: str = "", budget: int = 500) -> SummaryRequest:
    """Each `user` line begins an exchange."""
    number, made = -1, list[Line]()
    for role, text in lines:
        number += role == "user"
        made.append(Line(role=role, text=text, exchange=max(0, number), name="lookup" if role == "tool" else ""))  # type: ignore[arg-type]
    return SummaryRequest(previous=previous, lines=tuple(made), budget=budget, count=words)


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([("user", "Hello there"), ("assistant", "Hello! I will check that for you.")], NOTHING),
        (
            [("user", "We decided to go with plan B."), ("assistant", "Fine.")],
            "Decisions:\n- We decided to go with plan B.",
        ),
        (
            [("user", "My order is 1842."), ("assistant", "It arrives on 2026-03-01.")],
            "Facts:\n- My order is 1842.\n- It arrives on 2026-03-01.",
        ),
        ([("user", "Where is it?"), ("assistant", "At the depot.")], NOTHING),
        ([("user", "Where is it?"), ("assistant", "")], "Open questions:\n- Where is it?"),
        ([("user", "Where is it?"), ("assistant", "Which one?"), ("user", "How so?")],
         "Open questions:\n- Where is it?\n- Which one?\n- How so?"),
        (
            [("user", "Look"), ("tool", '{"status":"shipped","eta":"2026-03-01","items":[{"sku":7}]}')],
            "Facts:\n- lookup: status shipped, eta 2026-03-01, items[0].sku 7",
        ),
        ([("user", "Look"), ("tool", "all is well\nweight 12.5 kg\n")], "Facts:\n- lookup: weight 12.5 kg"),
        ([("user", "价格是 12 元。好的。"), ("assistant", "好")], "Facts:\n- 价格是 12 元。"),
        (
            [("user", "See src/app.py and mail a@b.example"), ("assistant", "ok")],
            "Facts:\n- See src/app.py and mail a@b.example",
        ),
    ],
    ids=["small talk", "decision", "facts", "answered", "open", "asked back", "fields", "lines", "Chinese", "paths"],
)  # fmt: skip
def test_what_is_kept(lines: list[tuple[str, str]], text: str) -> None:
    assert extract(request(*lines)) == text


def test_an_open_question_closes_when_it_is_answered() -> None:
    first = extract(request(("user", "Which carrier delivers the parcel?"), ("assistant", "")))
    still = extract(request(("user", "Hello"), ("assistant", "Hello."), previous=first))
    closed = extract(request(("user", "So"), ("assistant", "The carrier of the parcel is Post AG."), previous=still))
    assert "Which carrier" in first
    assert "Which carrier" in still
    assert "Which carrier" not in closed


def test_what_was_kept_before_goes_on_once_and_gives_way_to_what_is_newer() -> None:
    text = ""
    for number in range(40):
        text = extract(request(("user", f"My code is {number}."), ("assistant", "ok"), previous=text, budget=60))
    assert "My code is 39." in text
    assert "My code is 0." not in text
    again = extract(request(("user", "My code is 39."), ("assistant", "ok"), previous=text, budget=60))
    assert again.count("My code is 39.") == 1


_TEXT = st.text(alphabet="ab 12.?!\n-:一。", max_size=60)
_LINES = st.lists(st.tuples(st.sampled_from(["user", "assistant", "tool"]), _TEXT), max_size=12)


@settings(max_examples=150)
@given(_LINES, _TEXT, st.integers(8, 120))
def test_it_stays_within_its_budget_and_is_the_same_twice(
    lines: list[tuple[str, str]], previous: str, budget: int
) -> None:
    asked = request(*lines, previous=previous, budget=budget)
    text = extract(asked)
    assert text == NOTHING or words(text) <= budget
    assert text == extract(asked)
    assert all(len(line) <= LONGEST + 2 for line in text.splitlines())
    again = extract(request(*lines, previous=text, budget=budget))
    assert again == NOTHING or words(again) <= budget


def test_a_hostile_text_takes_no_longer_than_its_length() -> None:
    for text in ("a." * 50_000, "?" * 100_000, "a " * 50_000, "." * 100_000, "/" * 50_000, "1@" * 30_000, "{" * 5_000):
        extract(request(("user", text), ("assistant", "ok"), ("tool", text)))
