"""Strands Agents: a window by number of messages; it knows no tokens, so the budget is not given."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

from strands.agent.conversation_manager import SlidingWindowConversationManager
from vocabulary import dumps

from peers.protocol import Adapter, Message, function_call


class SlidingWindow(Adapter):
    def start(self, system: Message, budget: int) -> None:
        super().start(system, budget)
        self.window = SlidingWindowConversationManager(window_size=50)
        self.agent: Any = SimpleNamespace(messages=[])

    def convert(self, message: Message) -> dict[str, Any]:
        if message["role"] == "tool":
            result = {"toolUseId": message["tool_call_id"], "status": "success"}
            return {
                "role": "user",
                "content": [{"toolResult": result | {"content": [{"text": message["content"]}]}}],
            }
        parts: list[dict[str, Any]] = [{"text": message["content"]}] if message["content"] else []
        for call in message.get("tool_calls") or []:
            function = call["function"]
            use = {
                "toolUseId": call["id"],
                "name": function["name"],
                "input": json.loads(function["arguments"]),
            }
            parts.append({"toolUse": use})
        return {"role": message["role"], "content": parts}

    def add(self, native: dict[str, Any]) -> None:
        held = self.agent.messages
        if "toolResult" in native["content"][0] and held and "toolResult" in held[-1]["content"][0]:
            held[-1]["content"].extend(native["content"])  # parallel results share a message
        else:
            held.append(native)

    def fit(self) -> list[Any]:
        self.window.apply_management(self.agent)
        return list(self.agent.messages)

    def messages(self, fitted: Sequence[Any]) -> list[Message]:
        out = [self.system]  # Strands sends the system prompt beside the messages
        for message in fitted:
            made: Message = {"role": message["role"], "content": ""}
            results = []
            for part in message["content"]:
                made["content"] += part.get("text", "")
                if use := part.get("toolUse"):
                    call = function_call(use["toolUseId"], use["name"], dumps(use["input"]))
                    made.setdefault("tool_calls", []).append(call)
                if result := part.get("toolResult"):
                    text = "".join(p.get("text", "") for p in result["content"])
                    results.append({"role": "tool", "tool_call_id": result["toolUseId"], "content": text})
            out += results or [made]
        return out
