"""astro-anchor: one pipeline, a step that brings all candidates; the room for the question is its reserve.

It knows seven kinds of source and no names, so the forty sources are one kind here. Its text holds no
question.
"""

from typing import Any

from anchor.models.budget import TokenBudget
from anchor.models.context import ContextItem, SourceType
from anchor.pipeline import ContextPipeline
from vocabulary import count, encode, encoding
from workload import Candidate

from packers.protocol import Packer, Request


class Counter:
    def count_tokens(self, text: str) -> int:
        return count(text)

    def truncate_to_tokens(self, text: str, max_tokens: int) -> str:
        return encoding().decode(encode(text)[:max_tokens])


class Pipeline(Packer):
    def convert(self, candidate: Candidate) -> ContextItem:
        return ContextItem(
            id=candidate.ident,
            content=candidate.text,
            source=SourceType.RETRIEVAL,
            score=candidate.score,
            priority=max(1, candidate.priority // 10),
            metadata={"source": candidate.source},
        )

    def build(self, question: str, sources: dict[str, list[Any]]) -> Request:
        budget = TokenBudget(total_tokens=self.budget, reserve_tokens=count(question) + 1)
        pipeline = ContextPipeline(max_tokens=self.budget, tokenizer=Counter(), budget=budget)
        pipeline.add_system_prompt(self.system)
        pipeline.step(lambda items, query: items + [i for found in sources.values() for i in found])
        result = pipeline.build(question)
        return f"{result.formatted_output}\n\n{question}"
