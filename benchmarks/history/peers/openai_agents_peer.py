"""OpenAI Agents SDK: a session limited by a number of items; it knows no tokens, so gets no budget."""

import asyncio
from collections.abc import Sequence
from typing import Any

from agents import SQLiteSession
from agents.memory import SessionSettings

from peers.protocol import Adapter, Message, function_call


class Session(Adapter):
    def start(self, system: Message, budget: int) -> None:
        super().start(system, budget)
        self.loop = asyncio.new_event_loop()
        self.session = SQLiteSession("s", session_settings=SessionSettings(limit=50))

    def convert(self, message: Message) -> list[dict[str, Any]]:
        if message["role"] == "tool":
            answer = {"call_id": message["tool_call_id"], "output": message["content"]}
            return [{"type": "function_call_output", **answer}]
        if message.get("tool_calls"):
            return [{"type": "function_call", "call_id": c["id"], **c["function"]} for c in message["tool_calls"]]
        return [{"role": message["role"], "content": message["content"]}]

    def add(self, native: list[Any]) -> None:
        self.loop.run_until_complete(self.session.add_items(native))

    def fit(self) -> list[Any]:
        return self.loop.run_until_complete(self.session.get_items())

    def messages(self, fitted: Sequence[Any]) -> list[Message]:
        out = [self.system]  # the SDK sends instructions beside the items
        for item in fitted:
            match item.get("type"):
                case "function_call":
                    call = function_call(item["call_id"], item["name"], item["arguments"])
                    if out[-1].get("tool_calls"):
                        out[-1]["tool_calls"].append(call)
                    else:
                        out.append({"role": "assistant", "content": "", "tool_calls": [call]})
                case "function_call_output":
                    out.append({"role": "tool", "tool_call_id": item["call_id"], "content": item["output"]})
                case _:
                    out.append({"role": item["role"], "content": item["content"]})
        return out
