"""contextweaver: an event log with the candidates, compiled for the answer phase.

It scores by its own rule (recency, tags, kind, length), so neither score nor source of a candidate has a
place; the limit of 50 items a kind is lifted. System text and question go in as header and footer, their
room taken off the budget here, as it does not count them.
"""

from typing import Any

from contextweaver.config import ContextPolicy
from contextweaver.context.manager import ContextManager
from contextweaver.store.event_log import InMemoryEventLog
from contextweaver.types import ContextItem, ItemKind, Phase
from vocabulary import count
from workload import Candidate

from packers.protocol import Packer, Request


class Estimator:
    def estimate(self, text: str) -> int:
        return count(text)


class Weaver(Packer):
    def convert(self, candidate: Candidate) -> ContextItem:
        return ContextItem(
            id=candidate.ident,
            kind=ItemKind.retrieved_doc,
            text=candidate.text,
            metadata={"source": candidate.source, "score": candidate.score},
        )

    def build(self, question: str, sources: dict[str, list[Any]]) -> Request:
        log = InMemoryEventLog()
        for items in sources.values():
            for item in items:
                log.append(item)
        policy = ContextPolicy(max_items_per_kind=dict.fromkeys(ItemKind, 10**6))
        weaver = ContextManager(event_log=log, policy=policy, estimator=Estimator())
        pack = weaver.build_sync(
            phase=Phase.answer,
            query=question,
            header=self.system,
            footer=question,
            budget_tokens=self.budget - count(self.system) - count(question),
        )
        return pack.prompt
