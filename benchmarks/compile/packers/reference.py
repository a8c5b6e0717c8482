"""No peer but a yardstick: a remembered count and one sort, no checks and no manifest."""

from functools import cache

from vocabulary import count
from workload import Candidate

from packers.protocol import Packer, Request

remembered = cache(count)


class Greedy(Packer):
    def build(self, question: str, sources: dict[str, list[Candidate]]) -> Request:
        used = remembered(self.system) + remembered(question) + 4
        kept = []
        everything = [c for items in sources.values() for c in items]
        for item in sorted(everything, key=lambda c: (-c.priority, -c.score, c.ident)):
            size = remembered(item.text) + 2
            if used + size <= self.budget:
                kept.append(item.text)
                used += size
        return "\n\n".join([self.system, *kept, question])
