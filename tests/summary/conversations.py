"""Conversations to be summarised."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rung import ContextItem, ContextStore, ToolCall, ToolOutput
from rung.records.item import body
from rung.summary import SummaryRequest

FILLER = " ".join(["so it went on and on that day"] * 6)


def exchange(view: ContextStore, number: int, *, call: bool = False, filler: str = FILLER) -> list[ContextItem[Any]]:
    """One exchange of about 100 tokens, with a call and its result where asked for."""
    turn = f"t{number}"
    items: list[ContextItem[Any]] = [view.user(f"Tell me about order {1000 + number}. {filler}", turn=turn)]
    if call:
        items.append(view.assistant("", parts=[ToolCall(id=f"c{number}", name="lookup")], turn=turn))
        items.append(
            view.add(
                ToolOutput, {"order": 1000 + number, "status": "shipped"}, source="tool:lookup", call_id=f"c{number}",
                attrs={"tool": "lookup"}, turn=turn,
            )
        )  # fmt: skip
    items.append(view.assistant(f"Order {1000 + number} was shipped. {filler}", turn=turn))
    return items


def talk(view: ContextStore, count: int, **options: Any) -> list[ContextItem[Any]]:
    return [item for number in range(count) for item in exchange(view, number, **options)]


class Counted:
    """A summariser that counts how often it is asked, and keeps what it was asked."""

    def __init__(self, answer: Callable[[SummaryRequest], str]) -> None:
        self._answer = answer
        self.asked: list[SummaryRequest] = []

    def __call__(self, request: SummaryRequest) -> str:
        self.asked.append(request)
        return self._answer(request)

    @property
    def seen(self) -> str:
        """All that it was ever shown."""
        return "\n".join(request.previous + request.transcript() for request in self.asked)


def texts(items: Any) -> list[str]:
    return [body(item) for item in items]
