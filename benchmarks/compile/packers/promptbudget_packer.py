"""promptbudget: a section for each source, lowest score first out, exact tokenizer."""

from typing import Any

from promptbudget import CallableTokenizer, ContextPacker, Item, Section
from vocabulary import count
from workload import Candidate

from packers.protocol import Packer, Request


class Sections(Packer):
    def start(self, system: str, budget: int) -> None:
        super().start(system, budget)
        self.packer = ContextPacker(budget, tokenizer=CallableTokenizer(count))

    def convert(self, candidate: Candidate) -> Item:
        return Item(candidate.text, score=candidate.score, metadata={"priority": candidate.priority})

    def build(self, question: str, sources: dict[str, list[Any]]) -> Request:
        sections = [Section("system", self.system, priority=200, strategy="all_or_nothing")]
        sections += [
            Section(name, items, priority=items[0].metadata["priority"], strategy="lowest_score_first")
            for name, items in sources.items()
        ]
        sections.append(Section("question", question, priority=199, strategy="all_or_nothing"))
        return self.packer.pack(sections).text
