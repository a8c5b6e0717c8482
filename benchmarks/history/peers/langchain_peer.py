"""LangChain's three ways and langmem's."""

import json
import uuid
from collections.abc import Iterator, Sequence

from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    trim_messages,
)
from vocabulary import count, dumps

from peers.protocol import Adapter, Message, function_call

ROLES = {"system": "system", "human": "user", "ai": "assistant", "tool": "tool"}


def count_messages(messages: Sequence[BaseMessage]) -> int:
    """Count content and calls; what a user's own `token_counter` does."""
    total = 0
    for message in messages:
        total += count(str(message.content))
        for call in getattr(message, "tool_calls", None) or []:
            total += count(call["name"] + dumps(call["args"]))
    return total


class LangChain(Adapter):
    """The conversions; ids are set as LangGraph sets them."""

    def convert(self, message: Message) -> BaseMessage:
        ident, content = str(uuid.uuid4()), message["content"]
        match message["role"]:
            case "system":
                return SystemMessage(content, id=ident)
            case "user":
                return HumanMessage(content, id=ident)
            case "tool":
                return ToolMessage(content, tool_call_id=message["tool_call_id"], name=message["name"], id=ident)
        calls = [
            {"id": c["id"], "name": c["function"]["name"], "args": json.loads(c["function"]["arguments"])}
            for c in message.get("tool_calls") or []
        ]
        return AIMessage(content, tool_calls=calls, id=ident)

    def messages(self, fitted: Sequence[BaseMessage]) -> list[Message]:
        out = []
        for message in fitted:
            made: Message = {"role": ROLES[message.type], "content": str(message.content)}
            if isinstance(message, ToolMessage):
                made["tool_call_id"] = message.tool_call_id
            if isinstance(message, AIMessage) and message.tool_calls:
                made["tool_calls"] = [
                    function_call(c["id"] or "", c["name"], dumps(c["args"])) for c in message.tool_calls
                ]
            out.append(made)
        return out

    def model(self) -> GenericFakeChatModel:
        def answers() -> Iterator[AIMessage]:
            while True:
                yield AIMessage(self.summarise())

        return GenericFakeChatModel(messages=answers())


class Trim(LangChain):
    """As the how-to guide sets it for chat models with tools."""

    counter: object = staticmethod(count_messages)

    def fit(self) -> list[BaseMessage]:
        return trim_messages(
            self.history,
            max_tokens=self.budget,
            token_counter=self.counter,
            strategy="last",
            start_on="human",
            end_on=("human", "tool"),
            include_system=True,
        )


class TrimApproximate(Trim):
    counter = "approximate"


class SummaryMiddleware(LangChain):
    """Trigger at the budget, keep half; the system message lives outside of the state."""

    def start(self, system: Message, budget: int) -> None:
        super().start(system, budget)
        from langchain.agents.middleware import SummarizationMiddleware

        self.first = self.history.pop()
        room = budget - count_messages([self.first])
        self.middleware = SummarizationMiddleware(
            self.model(), trigger=("tokens", room), keep=("tokens", room // 2), token_counter=count_messages
        )

    def fit(self) -> list[BaseMessage]:
        update = self.middleware.before_model({"messages": self.history}, None)
        if update:
            self.history = [m for m in update["messages"] if m.type != "remove"]
        return [self.first, *self.history]


class LangMem(LangChain):
    def start(self, system: Message, budget: int) -> None:
        super().start(system, budget)
        self.running = None
        self.summariser = self.model()

    def fit(self) -> list[BaseMessage]:
        from langmem.short_term import summarize_messages

        result = summarize_messages(
            self.history,
            running_summary=self.running,
            model=self.summariser,
            max_tokens=self.budget,
            max_tokens_before_summary=self.budget,
            max_summary_tokens=256,
            token_counter=count_messages,
        )
        self.running = result.running_summary or self.running
        return result.messages
