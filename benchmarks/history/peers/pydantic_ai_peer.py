"""Pydantic AI's harness: compaction at the budget, half of it kept.

As in the library, the system prompt is a part of the first request, and parallel results share one request;
this grouping is the library's own form of a history, so `add` does it.
"""

import asyncio
from collections.abc import Sequence

from pydantic_ai import RunContext
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage
from pydantic_ai_harness.compaction import SlidingWindowCompaction, estimate_token_count
from vocabulary import count

from peers.protocol import Adapter, Message, function_call


class Compaction(Adapter):
    def start(self, system: Message, budget: int) -> None:
        super().start(system, budget)
        self.history = []
        self.loop = asyncio.new_event_loop()
        self.context = RunContext(deps=None, model=TestModel(), usage=RunUsage())
        self.compaction = SlidingWindowCompaction(
            max_tokens=budget, keep_tokens=budget // 2, tokenizer=count, preserve_first_user_message=True
        )

    def add(self, native: Message) -> None:
        content = native["content"]
        if native["role"] == "user":
            first = [] if self.history else [SystemPromptPart(self.system["content"])]
            self.history.append(ModelRequest(parts=[*first, UserPromptPart(content)]))
        elif native["role"] == "tool":
            part = ToolReturnPart(tool_name=native["name"], content=content, tool_call_id=native["tool_call_id"])
            last = self.history[-1]
            if isinstance(last, ModelRequest) and isinstance(last.parts[-1], ToolReturnPart):
                last.parts = [*last.parts, part]
            else:
                self.history.append(ModelRequest(parts=[part]))
        else:
            calls = [
                ToolCallPart(c["function"]["name"], c["function"]["arguments"], tool_call_id=c["id"])
                for c in native.get("tool_calls") or []
            ]
            self.history.append(ModelResponse(parts=[*([TextPart(content)] if content else []), *calls]))

    def fit(self) -> list[ModelMessage]:
        if estimate_token_count(self.history, count) > self.budget:
            self.history = self.loop.run_until_complete(self.compaction.compact(self.history, self.context))
        return self.history

    def messages(self, fitted: Sequence[ModelMessage]) -> list[Message]:
        out: list[Message] = []
        for message in fitted:
            if isinstance(message, ModelResponse):
                text = "".join(p.content for p in message.parts if isinstance(p, TextPart))
                calls = [
                    function_call(p.tool_call_id, p.tool_name, str(p.args))
                    for p in message.parts
                    if isinstance(p, ToolCallPart)
                ]
                out.append({"role": "assistant", "content": text} | ({"tool_calls": calls} if calls else {}))
                continue
            for part in message.parts:
                if isinstance(part, ToolReturnPart):
                    out.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": str(part.content)})
                elif isinstance(part, SystemPromptPart):
                    out.append({"role": "system", "content": part.content})
                elif isinstance(part, UserPromptPart):
                    out.append({"role": "user", "content": str(part.content)})
        return out
