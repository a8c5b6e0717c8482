"""`ScoredMemories`: a file of memories as a source that says how well each fits the message."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from rung.memory.search import Matcher
from rung.records.draft import Draft
from rung.sources.protocol import Fetch
from rung.sources.simple import MemoryFile

STANDING = "standing"


class ScoredMemories:
    """Memories from a JSON-lines file, best first.

    The score is that of `MemoryStore.search`: the words that memory and message share, rare ones counting more, times
    the memory's confidence. A score that stands in the file is kept. A memory that was replaced, by name or by a newer
    one of its key, counts for what stands in its place and comes along, so that the manifest can say so.

    Args:
        name: the source's name.
        path: the file, as `MemoryFile` reads it.
        always: categories that fit every message; standing requests do in any case.
    """

    def __init__(self, name: str, path: str | Path, *, always: Iterable[str] = ()) -> None:
        self._file = MemoryFile(name, path)
        self._always = frozenset((*always, STANDING))
        self._matcher = Matcher()

    @property
    def name(self) -> str:
        return self._file.name

    def fetch(self, want: Fetch) -> list[Draft]:
        """The person's memories; of those that fit alike, the newest first. `want.limit` keeps the best."""
        drafts = [draft for draft in self._file.fetch(want) if isinstance(draft, Draft)]
        texts = {str(draft.content): str(draft.content) for draft in drafts}
        fits = self._matcher.texts_fit(want.query.encode("utf-8", "replace").decode(), texts)
        ranked: list[tuple[float, float, list[Draft]]] = []
        for chain in _chains(drafts):
            end = chain[-1]
            sure = float(_attr(end, "confidence") or 1.0)
            score = round(max(fits[str(draft.content)].score for draft in chain) * min(1.0, max(0.0, sure)), 6)
            if _attr(end, "category") in self._always:
                score = 1.0
            score = score if end.score is None else end.score
            ranked.append((-score, -_seen(end), [msgspec.structs.replace(draft, score=score) for draft in chain]))
        ranked.sort(key=lambda one: one[:2])
        kept = [chain for _, _, chain in ranked[: want.limit]]
        return [*(chain[-1] for chain in kept), *(draft for chain in kept for draft in chain[:-1])]


def _chains(drafts: Sequence[Draft]) -> list[list[Draft]]:
    """Memories that stand for one another, by key or by the name of what they replace; the last one is current."""
    group: dict[tuple[str, str], int] = {}
    chains: dict[int, list[Draft]] = {}
    for number, draft in enumerate(drafts):
        names = [("id", _attr(draft, "id")), ("id", _attr(draft, "supersedes")), ("key", draft.key)]
        known = [(kind, name) for kind, name in names if name is not None]
        joined = sorted({group[name] for name in known if name in group})
        chains[number] = [one for old in joined for one in chains.pop(old)] + [draft]
        for name, old in group.items():
            if old in joined:
                group[name] = number
        group.update((name, number) for name in known)
    for chain in chains.values():
        replaced = {_attr(draft, "supersedes") for draft in chain} - {None}
        chain.sort(key=lambda draft: (_attr(draft, "id") not in replaced, _seen(draft)))
    return list(chains.values())


def _attr(draft: Draft, name: str) -> str | None:
    attrs: dict[str, str] = dict(draft.attrs or ())
    return attrs.get(name)


def _seen(draft: Draft) -> float:
    return float("-inf") if draft.observed_at is None else draft.observed_at.timestamp()
