"""rung itself, with all its checks: issued items, labels, freshness, settling, exact fit, manifest, verification."""

from typing import Any

from vocabulary import count
from workload import Candidate

from packers.protocol import Packer, Request
from rung import ContextItem, ContextStore, Evidence, PolicySet, SourcePolicy, default_policy
from rung.tokens import CallableTokenizer


class Rung(Packer):
    """A store in memory; the items are in it already, and a turn is compiled from all of them."""

    def start(self, system: str, budget: int) -> None:
        self.budget = budget
        base = default_policy()
        sources = {f"source_{i:02d}": SourcePolicy(priority=30 + i % 50) for i in range(100)}
        policy = PolicySet(types=base.types, transitions=base.transitions, freshness=base.freshness, sources=sources)
        self.store = ContextStore(policy)
        self.rules = self.store.instruct(system)
        self.scores: dict[str, float] = {}
        self.tokenizer = CallableTokenizer(count, name="o200k_base", exact=True, additive_newline=True)

    def convert(self, candidate: Candidate) -> Any:
        item = self.store.add(Evidence, candidate.text, source=candidate.source, key=candidate.ident)
        self.scores[item.id] = candidate.score
        return item

    def build(self, question: str, sources: dict[str, list[ContextItem[Any]]]) -> Request:
        items = [item for group in sources.values() for item in group]
        turn = self.store.compile(
            [self.rules, *items, self.store.user(question)],
            budget=self.budget,
            scores=self.scores,
            tokenizer=self.tokenizer,
        )
        return turn.request["messages"]
