"""ctxbudgeter: one pack a turn, its own tiktoken counter for an o200k model, no reserve for the answer."""

from typing import Any

from ctxbudgeter import ContextPack
from ctxbudgeter.item import ContextItem
from workload import Candidate

from packers.protocol import Packer, Request


class Pack(Packer):
    def convert(self, candidate: Candidate) -> ContextItem:
        return ContextItem(
            name=candidate.ident,
            content=candidate.text,
            kind="retrieval",
            priority=candidate.priority,
            relevance=candidate.score,
            source=candidate.source,
        )

    def build(self, question: str, sources: dict[str, list[Any]]) -> Request:
        pack = ContextPack(model="gpt-4o", token_budget=self.budget, reserved_output_tokens=0)
        pack.add(name="system", content=self.system, kind="system", required=True, cache_policy="stable")
        pack.add(name="question", content=question, kind="user_message", required=True)
        # `add_item` looks through all names each time, which is quadratic; the public list is filled at once.
        pack.items.extend(item for items in sources.values() for item in items)
        return pack.compile().to_openai_messages()
