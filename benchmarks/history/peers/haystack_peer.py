"""Haystack's compaction hook, called as its agent calls it: over the budget, down to half."""

import json
from collections.abc import Sequence
from typing import Any

from haystack.dataclasses import ChatMessage, ToolCall
from haystack.hooks.compaction import SlidingWindowCompactor
from vocabulary import count, dumps

from peers.protocol import Adapter, Message, function_call


class Counter:
    """Haystack's token counter protocol over the shared tokenizer."""

    def count(self, messages: Sequence[ChatMessage], tools: Any = None) -> int:
        total = 0
        for message in messages:
            total += count(message.text or "")
            total += sum(count(c.tool_name + dumps(c.arguments)) for c in message.tool_calls)
            total += sum(count(str(r.result)) for r in message.tool_call_results)
        return total


class Compactor(Adapter):
    def start(self, system: Message, budget: int) -> None:
        super().start(system, budget)
        self.counter = Counter()
        self.compactor = SlidingWindowCompactor()

    def convert(self, message: Message) -> ChatMessage:
        content = message["content"]
        match message["role"]:
            case "system":
                return ChatMessage.from_system(content)
            case "user":
                return ChatMessage.from_user(content)
            case "tool":
                origin = ToolCall(tool_name=message["name"], arguments={}, id=message["tool_call_id"])
                return ChatMessage.from_tool(content, origin=origin)
        calls = [
            ToolCall(tool_name=c["function"]["name"], arguments=json.loads(c["function"]["arguments"]), id=c["id"])
            for c in message.get("tool_calls") or []
        ]
        return ChatMessage.from_assistant(content or None, tool_calls=calls or None)

    def fit(self) -> list[ChatMessage]:
        if self.counter.count(messages=self.history) > self.budget:
            shorter = self.compactor.compact(
                messages=self.history, target_tokens=self.budget // 2, token_counter=self.counter
            )
            self.history = self.history if shorter is None else shorter
        return list(self.history)

    def messages(self, fitted: Sequence[ChatMessage]) -> list[Message]:
        out = []
        for message in fitted:
            made: Message = {"role": message.role.value, "content": message.text or ""}
            if message.tool_calls:
                made["tool_calls"] = [
                    function_call(c.id or "", c.tool_name, dumps(c.arguments)) for c in message.tool_calls
                ]
            if message.tool_call_result:
                made["tool_call_id"] = message.tool_call_result.origin.id
                made["content"] = message.tool_call_result.result
            out.append(made)
        return out
