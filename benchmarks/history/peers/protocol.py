"""What an adapter does. Times are taken of `add` and `fit` alone; the conversions are free.

A peer is given the metered `vocabulary.count` or `vocabulary.encode` as its tokenizer wherever it takes
one, and is set up as its own documentation would have it for the same task: at most `budget` tokens, the
system message kept.
"""

from typing import Any

from vocabulary import message_text
from workload import summary

Message = dict[str, Any]


class Adapter:
    """A peer whose messages are OpenAI chat dicts; others override the two conversions."""

    summaries = 0

    def start(self, system: Message, budget: int) -> None:
        """Begin a conversation (not timed): `budget` in tokens, of everything in the request."""
        self.system = system
        self.budget = budget
        self.history: list[Any] = [self.convert(system)]

    def convert(self, message: Message) -> Any:
        """Turn a canonical message into the peer's own (not timed)."""
        return message

    def add(self, native: Any) -> None:
        """Take one message (timed)."""
        self.history.append(native)

    def fit(self) -> Any:
        """Give the request's messages within the budget, in the peer's own form (timed)."""
        raise NotImplementedError

    def messages(self, fitted: Any) -> list[Message]:
        """Turn what `fit` gave into canonical messages (not timed)."""
        return list(fitted)

    def summarise(self) -> str:
        """Stand in for a model that summarises: 200 tokens, at once."""
        self.summaries += 1
        return summary(self.summaries)


def function_call(call_id: str, name: str, arguments: str) -> Message:
    """Return a canonical tool call; `arguments` is JSON text."""
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


__all__ = ["Adapter", "Message", "function_call", "message_text"]
