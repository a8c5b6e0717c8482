"""LlamaIndex: the older buffer and the newer memory."""

import asyncio
from collections.abc import Sequence

from llama_index.core.llms import ChatMessage
from vocabulary import encode, tokens

from peers.protocol import Adapter, Message

KEYS = ("tool_calls", "tool_call_id")


class LlamaIndex(Adapter):
    def convert(self, message: Message) -> ChatMessage:
        extra = {k: message[k] for k in KEYS if message.get(k)}
        return ChatMessage(role=message["role"], content=message.get("content") or "", additional_kwargs=extra)

    def messages(self, fitted: Sequence[ChatMessage]) -> list[Message]:
        return [
            {"role": m.role.value, "content": m.content or ""}
            | {k: m.additional_kwargs[k] for k in KEYS if k in m.additional_kwargs}
            for m in fitted
        ]


class Buffer(LlamaIndex):
    def start(self, system: Message, budget: int) -> None:
        from llama_index.core.memory import ChatMemoryBuffer

        super().start(system, budget)
        self.first_tokens = tokens(system["content"])
        self.memory = ChatMemoryBuffer.from_defaults(token_limit=budget, tokenizer_fn=encode)

    def add(self, native: ChatMessage) -> None:
        self.memory.put(native)

    def fit(self) -> list[ChatMessage]:
        return [self.history[0], *self.memory.get(initial_token_count=self.first_tokens)]


class BlockMemory(LlamaIndex):
    """No long-term blocks: all of the limit for the chat, flushed by 800 tokens."""

    def start(self, system: Message, budget: int) -> None:
        from llama_index.core.memory import Memory

        super().start(system, budget)
        self.memory = Memory.from_defaults(
            session_id="s",
            token_limit=budget - tokens(system["content"]),
            chat_history_token_ratio=1.0,
            token_flush_size=800,
            tokenizer_fn=encode,
        )
        self.loop = asyncio.new_event_loop()

    def add(self, native: ChatMessage) -> None:
        self.loop.run_until_complete(self.memory.aput(native))

    def fit(self) -> list[ChatMessage]:
        return [self.history[0], *self.loop.run_until_complete(self.memory.aget())]
