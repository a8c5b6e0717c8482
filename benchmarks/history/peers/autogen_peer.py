"""AutoGen's token-limited context, with a model client that only counts."""

import asyncio
from collections.abc import Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.model_context import TokenLimitedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    SystemMessage,
    UserMessage,
)
from vocabulary import count

from peers.protocol import Adapter, Message, function_call


class CountingClient:
    def count_tokens(self, messages: Sequence[Any], *, tools: Sequence[Any] = ()) -> int:
        total = 0
        for message in messages:
            if isinstance(message.content, str):
                total += count(message.content)
                continue
            for part in message.content:
                is_call = isinstance(part, FunctionCall)
                total += count(part.name + part.arguments if is_call else part.content)
        return total


class TokenLimited(Adapter):
    def start(self, system: Message, budget: int) -> None:
        self.loop = asyncio.new_event_loop()
        self.context = TokenLimitedChatCompletionContext(CountingClient(), token_limit=budget)
        self.add(self.convert(system))

    def convert(self, message: Message) -> Any:
        content = message["content"]
        match message["role"]:
            case "system":
                return SystemMessage(content=content)
            case "user":
                return UserMessage(content=content, source="user")
            case "tool":
                result = FunctionExecutionResult(
                    content=content, name=message["name"], call_id=message["tool_call_id"], is_error=False
                )
                return FunctionExecutionResultMessage(content=[result])
        calls = [FunctionCall(id=c["id"], **c["function"]) for c in message.get("tool_calls") or []]
        return AssistantMessage(content=calls or content, source="agent")

    def add(self, native: Any) -> None:
        self.loop.run_until_complete(self.context.add_message(native))

    def fit(self) -> list[Any]:
        return self.loop.run_until_complete(self.context.get_messages())

    def messages(self, fitted: Sequence[Any]) -> list[Message]:
        out: list[Message] = []
        for message in fitted:
            match message:
                case SystemMessage():
                    out.append({"role": "system", "content": message.content})
                case UserMessage():
                    out.append({"role": "user", "content": message.content})
                case AssistantMessage(content=str()):
                    out.append({"role": "assistant", "content": message.content})
                case AssistantMessage():
                    calls = [function_call(c.id, c.name, c.arguments) for c in message.content]
                    out.append({"role": "assistant", "content": "", "tool_calls": calls})
                case _:
                    out += [{"role": "tool", "tool_call_id": r.call_id, "content": r.content} for r in message.content]
        return out
