"""Origins of runs: what a protected text shares with untrusted items, caught up from the backend as needed.

The index is a cache of this process, one for each tenant. An untrusted insert does not touch it; the next
protected insert reads what came in since, inside its own exclusive write, so it misses nothing.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rung.ledger.backend import Backend, Tenants, TextRow, Transaction
from rung.ledger.content import beside
from rung.policy.decision import Hit
from rung.policy.rules import USER_INTEGRITY, PolicySet
from rung.records.item import body

if TYPE_CHECKING:
    from rung.ledger.fingerprint import FingerprintIndex, Held

_BATCH = 1_000
_SLOT = re.compile(r"\{[^\W\d]\w*\}")


def readings(text: str) -> tuple[str, ...]:
    """A protected text as it is written and, where it has slots, without their names: what a model reads on either
    side of a slot may be one run. Places stay the same."""
    return (text, _SLOT.sub(lambda found: " " * len(found[0]), text)) if _SLOT.search(text) else (text,)


STAGED = 1 << 62
"""From here on are numbered, in the order of writing, the drafts of the write that is being judged."""


def staged_id(place: int) -> str:
    """What stands for the id of an item that is not written yet."""
    return f"draft:{place}"


class StagedText(NamedTuple):
    """The text of a draft that stands before the judged one in the same write."""

    type: str
    source: str
    text: str
    beside: tuple[str, ...]
    untrusted: bool
    protected: bool


class _Tenant:
    """What is indexed of one tenant: untrusted items numbered in order of writing, and the protected texts."""

    __slots__ = ("cursor", "docs", "event", "held", "index", "ordinals")

    def __init__(self, index: FingerprintIndex) -> None:
        self.index = index
        self.cursor = 0
        self.event = 0
        """The last event that was read: erasures come as events."""
        self.docs: list[tuple[str, str, str, int, int]] = []
        """Of each document: item id, type, source, ordinal, and which of the item's texts it is (0: its text)."""
        self.ordinals: list[int] = []
        """Of each document: its place in the store's order of writing."""
        self.held: list[tuple[int, str, str]] = []
        """Of each protected text: its place in the store's order of writing, the text, and the item's id."""


class OriginIndex:
    """The fingerprint indexes of a process. Safe for threads: each check runs inside an exclusive write."""

    def __init__(self, policy: PolicySet, backend: Backend) -> None:
        self._backend = backend
        self._limits = policy.limits
        self._untrusted = frozenset(name for name, rules in policy.types.items() if rules.integrity < USER_INTEGRITY)
        self._protected = frozenset(name for name, rules in policy.types.items() if rules.protected)
        self._tenants: dict[str | None, _Tenant] = {}
        self._lock = threading.Lock()

    def hits(
        self,
        text: str,
        target: str,
        tx: Transaction,
        tenants: Tenants,
        staged: Sequence[StagedText] = (),
        known: Sequence[str] = (),
    ) -> list[Hit]:
        """The runs of a protected text that untrusted items brought in first, the earliest item first.

        Args:
            text: what would enter the protected type.
            target: the name of that type; items of the same type are no origin.
            tx: the exclusive write in which it would enter.
            tenants: whose items it is compared with.
            staged: the drafts before it in the same write, from the first on.
            known: texts whose runs may enter, whoever else says them.
        """
        from rung.ledger.fingerprint import Held

        with self._lock:
            found: list[Hit] = []
            states = {tenant: self._caught_up(tenant, tx) for tenant in tenants}
            protected = [kept for state in states.values() for kept in state.held]
            for tenant, state in states.items():
                # What another tenant's protected item says excuses what came after it, and nothing before.
                held = [
                    Held(text=said, since=bisect_right(state.ordinals, at))
                    for at, kept, _ in protected
                    for said in readings(kept)
                ]
                held += [Held(text=kept) for kept in (*self._limits.boilerplate, *known)]
                for said in readings(text):
                    found += self._search(said, target, state, held, self._reader(state, tenant))
            if any(one.untrusted for one in staged):
                held = [Held(text=said) for _, kept, _ in protected for said in readings(kept)]
                held += [Held(text=kept) for kept in (*self._limits.boilerplate, *known)]
                found += self._among_staged(text, target, staged, held)
            return sorted(dict.fromkeys(found), key=lambda hit: (hit.ordinal, hit.span))

    def _reader(self, state: _Tenant, tenant: str | None) -> Callable[[int], str | None]:
        def read(doc: int) -> str | None:
            item_id, place = state.docs[doc][0], state.docs[doc][4]
            item = self._backend.get([item_id], (tenant,)).get(item_id)
            if item is None or not place:
                return None if item is None else body(item)
            return beside(item.key, item.version, item.attrs, item.parts)[place - 1]

        return read

    def _said(self, text: str, more: Sequence[str]) -> Iterator[tuple[int, str]]:
        """The texts of an item that are indexed: its own, and beside it what is long enough for a run.

        A title of a few words is found in prompts that have nothing of its item.
        """
        yield 0, text
        if more:
            from rung.ledger.fingerprint import normalise

            for place, said in enumerate(more, 1):
                if len(said) >= self._limits.shared_run and len(normalise(said).text) >= self._limits.shared_run:
                    yield place, said

    def _new_index(self) -> FingerprintIndex:
        from rung.ledger.fingerprint import FingerprintIndex

        return FingerprintIndex(self._limits.shared_run, first_party=self._limits.first_party)

    def _among_staged(
        self, text: str, target: str, staged: Sequence[StagedText], held: Sequence[Held]
    ) -> Iterator[Hit]:
        state = _Tenant(self._new_index())
        texts: list[str] = []
        places: list[int] = []
        for place, one in enumerate(staged):
            if one.untrusted:
                for number, said in self._said(one.text, one.beside):
                    state.docs.append((staged_id(place), one.type, one.source, STAGED + place, number))
                    texts.append(said)
                    places.append(place)
        state.index.add_many(range(len(texts)), texts)
        before = [
            Held(text=said, since=bisect_right(places, place))
            for place, one in enumerate(staged)
            if one.protected
            for said in readings(one.text)
        ]
        for said in readings(text):
            yield from self._search(said, target, state, (*held, *before), texts.__getitem__)

    def _search(
        self,
        text: str,
        target: str,
        state: _Tenant,
        held: Sequence[Held],
        read: Callable[[int], str | None],
    ) -> Iterator[Hit]:
        for run in state.index.find(text, read, held=held):
            item_id, kind, source, ordinal, place = state.docs[run.doc]
            if kind == target:
                continue
            view = run.view if run.doc_view == "plain" else f"{run.view}, there {run.doc_view}"
            yield Hit(
                item_id=item_id,
                type=kind,
                source=source,
                span=run.span,
                origin_span=run.doc_span,
                length=run.length,
                kind=run.kind,
                view=f"{view}, beside its text" if place else view,
                ordinal=ordinal,
            )

    def _caught_up(self, tenant: str | None, tx: Transaction) -> _Tenant:
        state = self._tenants.get(tenant)
        if state is None:
            state = self._tenants[tenant] = _Tenant(self._new_index())
        rows = iter(tx.texts_since(state.cursor, self._untrusted | self._protected, (tenant,)))
        while batch := list(islice(rows, _BATCH)):
            self._take_in(state, batch)
        self._forget(state, tenant)
        return state

    def _forget(self, state: _Tenant, tenant: str | None) -> None:
        """Drop the fingerprints of what was erased: the index ages with its items."""
        events = self._backend.events((tenant,), after=state.event)
        if not events:
            return
        state.event = events[-1].number
        told = [event.item_id for event in events if event.reason == "erased" and event.item_id is not None]
        # Anybody may give an invalidation that reason; what is still there keeps its fingerprints.
        gone = frozenset(self._backend.tombstones((tenant,), told)) if told else frozenset[str]()
        if gone:
            state.index.remove_many(number for number, doc in enumerate(state.docs) if doc[0] in gone)
            state.held = [kept for kept in state.held if kept[2] not in gone]

    def _take_in(self, state: _Tenant, batch: Sequence[TextRow]) -> None:
        numbers: list[int] = []
        texts: list[str] = []
        for row in batch:
            if row.type in self._untrusted:
                for place, said in self._said(row.text, row.beside):
                    numbers.append(len(state.docs))
                    texts.append(said)
                    state.docs.append((row.item_id, row.type, row.source, row.ordinal, place))
                    state.ordinals.append(row.ordinal)
            if row.type in self._protected:
                state.held.append((row.ordinal, row.text, row.item_id))
        state.index.add_many(numbers, texts)
        state.cursor = batch[-1].ordinal
