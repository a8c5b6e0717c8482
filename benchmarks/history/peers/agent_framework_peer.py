"""Microsoft Agent Framework: truncation at the budget, down to half."""

import asyncio
from collections.abc import Sequence

from agent_framework import Content
from agent_framework import Message as FrameworkMessage
from agent_framework._compaction import TruncationStrategy, apply_compaction
from vocabulary import count, dumps

from peers.protocol import Adapter, Message, function_call


class Counter:
    def count_tokens(self, text: str) -> int:
        return count(text)


class Truncation(Adapter):
    def start(self, system: Message, budget: int) -> None:
        super().start(system, budget)
        self.loop = asyncio.new_event_loop()
        self.counter = Counter()
        self.strategy = TruncationStrategy(max_n=budget, compact_to=budget // 2, tokenizer=self.counter)

    def convert(self, message: Message) -> FrameworkMessage:
        if message["role"] == "tool":
            result = Content.from_function_result(call_id=message["tool_call_id"], result=message["content"])
            return FrameworkMessage(role="tool", contents=[result])
        contents = [Content.from_text(message["content"])] if message["content"] else []
        contents += [
            Content.from_function_call(
                call_id=c["id"], name=c["function"]["name"], arguments=c["function"]["arguments"]
            )
            for c in message.get("tool_calls") or []
        ]
        return FrameworkMessage(role=message["role"], contents=contents)

    def fit(self) -> list[FrameworkMessage]:
        return self.loop.run_until_complete(
            apply_compaction(self.history, strategy=self.strategy, tokenizer=self.counter)
        )

    def messages(self, fitted: Sequence[FrameworkMessage]) -> list[Message]:
        out = []
        for message in fitted:
            texts = (c.text or "" for c in message.contents if c.type == "text")
            made: Message = {
                "role": str(getattr(message.role, "value", message.role)),
                "content": "".join(texts),
            }
            for c in message.contents:
                if c.type == "function_call":
                    arguments = c.arguments if isinstance(c.arguments, str) else dumps(c.arguments)
                    made.setdefault("tool_calls", []).append(function_call(c.call_id or "", c.name or "", arguments))
                elif c.type == "function_result":
                    made |= {"tool_call_id": c.call_id, "content": str(c.result)}
            out.append(made)
        return out
