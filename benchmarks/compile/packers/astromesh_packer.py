"""astromesh-context: one engine, a callable source for each source, exact tokenizer."""

import asyncio
from typing import Any

from astromesh_context import CallableSource, ContextEngine, ContextItem, StaticSource
from astromesh_context.render import render_messages
from vocabulary import count
from workload import Candidate

from packers.protocol import Packer, Request


class Counter:
    def count(self, text: str) -> int:
        return count(text)


class Engine(Packer):
    def start(self, system: str, budget: int) -> None:
        super().start(system, budget)
        self.engine: ContextEngine | None = None
        self.current: dict[str, list[Any]] = {}
        self.loop = asyncio.new_event_loop()

    def convert(self, candidate: Candidate) -> ContextItem:
        return ContextItem(
            id=candidate.ident,
            content=candidate.text,
            source=candidate.source,
            kind="knowledge",
            stability="volatile",
            score=candidate.score * candidate.priority / 100,
        )

    def source(self, name: str) -> CallableSource:
        async def fetch(query: str, context: Any) -> list[Any]:
            return self.current[name]

        return CallableSource(fetch, name=name)

    def build(self, question: str, sources: dict[str, list[Any]]) -> Request:
        self.current = sources
        if self.engine is None:
            fixed = StaticSource(self.system, name="system", pinned=True)
            room = self.budget - count(question)  # the question is added when rendered
            found = [self.source(name) for name in sources]
            self.engine = ContextEngine([fixed, *found], budget=room, tokenizer=Counter())
        window = self.loop.run_until_complete(self.engine.build(question))
        made = render_messages(window.items, question)
        return made if isinstance(made, list) else []
