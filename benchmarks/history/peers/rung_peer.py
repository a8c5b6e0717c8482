"""rung itself, with all its checks: types, ledger, manifest, verification."""

from typing import Any

from vocabulary import count

from peers.protocol import Adapter, Message
from rung import Assistant, ContextStore, ToolCall, ToolOutput, User
from rung.policy.rules import HistoryRule
from rung.tokens import CallableTokenizer


class Session(Adapter):
    """A store in memory, one session, and a turn compiled from its history."""

    def __init__(self, **rule: Any) -> None:
        self.rule = HistoryRule(**rule)

    def start(self, system: Message, budget: int) -> None:
        self.budget = budget
        store = ContextStore()
        self.rules = store.instruct(system["content"])
        self.view = store.scope(tenant="acme", subject="u1", session="s1")
        self.tokenizer = CallableTokenizer(count, name="o200k_base", exact=True, additive_newline=True)

    def add(self, native: Message) -> None:
        role = native["role"]
        if role == "user":
            self.view.add(User, native["content"], source="user")
        elif role == "tool":
            self.view.add(
                ToolOutput, native["content"], source=f"tool:{native['name']}", call_id=native["tool_call_id"]
            )
        else:
            calls = [
                ToolCall(id=call["id"], name=call["function"]["name"], arguments=call["function"]["arguments"])
                for call in native.get("tool_calls") or ()
            ]
            self.view.add(Assistant, native["content"], source="model", parts=calls)

    def fit(self) -> Any:
        turn = self.view.compile(
            [self.rules],
            budget=self.budget,
            history="session",
            history_rule=self.rule,
            tokenizer=self.tokenizer,
        )
        return turn.request["messages"]

    def messages(self, fitted: Any) -> list[Message]:
        return [{**message, "content": message.get("content") or ""} for message in fitted]
