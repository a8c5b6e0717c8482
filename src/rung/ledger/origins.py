"""Origins of runs: what a protected text shares with untrusted items, caught up from the backend as needed.

The index is a cache of this process, one for each tenant. An untrusted insert does not touch it; the next
protected insert reads what came in since, inside its own exclusive write, so it misses nothing.
"""

from __future__ import annotations

import re
import threading
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from rung.ledger.backend import Backend, Tenants, TextRow, Transaction
from rung.ledger.content import beside
from rung.policy.boilerplate import general_boilerplate
from rung.policy.decision import Hit
from rung.policy.rules import USER_INTEGRITY, PolicySet
from rung.records.item import body

if TYPE_CHECKING:
    from rung.ledger.fingerprint import FingerprintIndex

_BATCH = 1_000
_FEW = 64
_SLOT = re.compile(r"\{[^\W\d]\w*\}")


def readings(text: str) -> tuple[str, ...]:
    """A protected text as it is written and, where it has slots, without their names: what a model reads on either
    side of a slot may be one run. Places stay the same."""
    return (text, _SLOT.sub(lambda found: " " * len(found[0]), text)) if _SLOT.search(text) else (text,)


MOST_ITEMS = 100
"""So many items are named of those that a text shares runs with."""

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


class _Kept:
    """The protected texts of a tenant, each once, and an index of them: only those that share a run with the text that
    is judged can excuse a run of it."""

    def __init__(self, index: FingerprintIndex) -> None:
        self._index = index
        self._numbers: dict[str, int] = {}
        self._texts: list[str] = []
        self._folded: list[str] = []
        self._holders: list[list[tuple[int, str]]] = []

    def add(self, text: str, ordinal: int, item_id: str) -> None:
        """Take in what the item says that stands at this place of the order of writing."""
        from rung.ledger.fingerprint import normalise

        for said in readings(text):
            number = self._numbers.setdefault(said, len(self._texts))
            if number == len(self._texts):
                self._texts.append(said)
                self._folded.append(normalise(said).text)
                self._holders.append([])
                self._index.add(number, said)
            self._holders[number].append((ordinal, item_id))

    def forget(self, gone: frozenset[str]) -> None:
        """Erased items hold nothing any more."""
        self._holders = [[one for one in holders if one[1] not in gone] for holders in self._holders]

    def sharing(self, text: str) -> dict[str, int]:
        """The texts that share a run with this one, and since when they are held."""
        if len(self._texts) <= _FEW:
            # To read the text once more costs more than to look at them all.
            return self.all()
        found = {run.doc for run in self._index.find(text, self._texts.__getitem__)}
        return self._since(sorted(found))

    def saying(self, pieces: Iterable[str]) -> dict[str, int]:
        """The texts that hold one of some normalised pieces, and since when."""
        wanted = tuple(pieces)
        return self._since(n for n, folded in enumerate(self._folded) if any(piece in folded for piece in wanted))

    def all(self) -> dict[str, int]:
        """Every text, and since when it is held."""
        return self._since(range(len(self._texts)))

    def _since(self, numbers: Iterable[int]) -> dict[str, int]:
        return {self._texts[number]: self._holders[number][0][0] for number in numbers if self._holders[number]}


class _Tenant:
    """What is indexed of one tenant: untrusted items numbered in order of writing, and the protected texts."""

    __slots__ = ("cursor", "docs", "event", "index", "kept", "ordinals", "tools")

    def __init__(self, index: FingerprintIndex, kept: FingerprintIndex) -> None:
        self.index = index
        self.kept = _Kept(kept)
        self.tools: dict[str, str] = {}
        """Of each source that brought a tool's output, the first one's id."""
        self.cursor = 0
        self.event = 0
        """The last event that was read: erasures come as events."""
        self.docs: list[tuple[str, str, str, int, int]] = []
        """Of each document: item id, type, source, ordinal, and which of the item's texts it is (0: its text)."""
        self.ordinals: list[int] = []
        """Of each document: its place in the store's order of writing."""


def _earliest(tables: Iterable[dict[str, int]]) -> dict[str, int]:
    """Texts and since when they are held, by whomever first."""
    found: dict[str, int] = {}
    for table in tables:
        for text, since in table.items():
            found[text] = min(since, found.get(text, since))
    return found


class _Search:
    """One reading of a protected text, looked for in indexes."""

    def __init__(self, text: str, target: str, covers: frozenset[str], read: Callable[[int], str | None]) -> None:
        self.text, self._target, self._covers, self._read = text, target, covers, read

    def hits(self, state: _Tenant, held: dict[str, int]) -> Iterator[Hit]:
        """The hits in a tenant's documents; `held`: texts, and their places in the order of writing."""
        from rung.ledger.fingerprint import Held

        def counts(doc: int) -> bool:
            item_id, kind = state.docs[doc][:2]
            return kind != self._target and item_id not in self._covers

        # What another tenant's protected item says excuses what came after it, too, and nothing before.
        known = [Held(text=text, since=bisect_right(state.ordinals, at)) for text, at in held.items()]
        for run in state.index.find(self.text, self._read, held=known, accept=counts, limit=MOST_ITEMS):
            item_id, kind, source, ordinal, place = state.docs[run.doc]
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


class OriginIndex:
    """The fingerprint indexes of a process. Safe for threads: each check runs inside an exclusive write."""

    def __init__(self, policy: PolicySet, backend: Backend) -> None:
        self._backend = backend
        self._limits = policy.limits
        general = general_boilerplate() if policy.limits.general_boilerplate else ()
        self._boilerplate = (*general, *policy.limits.boilerplate)
        self._untrusted = frozenset(name for name, rules in policy.types.items() if rules.integrity < USER_INTEGRITY)
        self._protected = frozenset(name for name, rules in policy.types.items() if rules.protected)
        self._read = self._untrusted | self._protected | {"tool_output"}
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
        covers: frozenset[str] = frozenset(),
    ) -> list[Hit]:
        """The runs of a protected text that untrusted items brought in first, the earliest item first.

        At most those of the first `MOST_ITEMS` items of a tenant: what a thousand results say is refused as well by
        the first of them.

        Args:
            text: what would enter the protected type.
            target: the name of that type; items of the same type are no origin.
            tx: the exclusive write in which it would enter.
            tenants: whose items it is compared with.
            staged: the drafts before it in the same write, from the first on.
            known: texts whose runs may enter, whoever else says them.
            covers: ids of items whose hits are covered.
        """
        with self._lock:
            states = {tenant: self._caught_up(tenant, tx) for tenant in tenants}
            always = dict.fromkeys((*self._boilerplate, *known), -1)
            found: list[Hit] = []
            for said in readings(text):
                held = _earliest((always, *(state.kept.sharing(said) for state in states.values())))
                for tenant, state in states.items():
                    search = _Search(said, target, covers, self._reader(state, tenant))
                    found += self._with_held(search, state, held, states.values())
                if any(one.untrusted for one in staged):
                    found += self._among_staged(said, target, covers, staged, held, states.values())
            return sorted(dict.fromkeys(found), key=lambda hit: (hit.ordinal, hit.span))

    def tool(self, source: str, tx: Transaction, tenants: Tenants) -> str | None:
        """The first output that a tool of this name brought in, or None."""
        with self._lock:
            states = [self._caught_up(tenant, tx) for tenant in tenants]
            return next((state.tools[source] for state in states if source in state.tools), None)

    def _with_held(self, search: _Search, state: _Tenant, held: dict[str, int], states: Iterable[_Tenant]) -> list[Hit]:
        """The hits, after a second look with all held texts that could excuse one shorter than a run."""
        from rung.ledger.fingerprint import normalise

        found = list(search.hits(state, held))
        small = [hit for hit in found if hit.kind != "run"]
        if not small:
            return found
        if all(hit.kind == "short" and hit.view == "plain" for hit in small):
            pieces = {normalise(search.text[slice(*hit.span)]).text for hit in small}
            more = _earliest(one.kept.saying(pieces) for one in states)
        else:
            more = _earliest(one.kept.all() for one in states)
        return list(search.hits(state, _earliest((more, held)))) if more.keys() - held.keys() else found

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
        self,
        text: str,
        target: str,
        covers: frozenset[str],
        staged: Sequence[StagedText],
        held: dict[str, int],
        states: Iterable[_Tenant],
    ) -> list[Hit]:
        state = self._new_state()
        texts: list[str] = []
        held = dict(held)
        for place, one in enumerate(staged):
            if one.untrusted:
                for number, said in self._said(one.text, one.beside):
                    state.docs.append((staged_id(place), one.type, one.source, STAGED + place, number))
                    state.ordinals.append(STAGED + place)
                    texts.append(said)
            if one.protected:
                for said in readings(one.text):
                    held.setdefault(said, STAGED + place)
        state.index.add_many(range(len(texts)), texts)
        search = _Search(text, target, covers, texts.__getitem__)
        return self._with_held(search, state, held, states)

    def _new_state(self) -> _Tenant:
        return _Tenant(self._new_index(), self._new_index())

    def _caught_up(self, tenant: str | None, tx: Transaction) -> _Tenant:
        state = self._tenants.get(tenant)
        if state is None:
            state = self._tenants[tenant] = self._new_state()
        rows = iter(tx.texts_since(state.cursor, self._read, (tenant,)))
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
            state.kept.forget(gone)

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
                state.kept.add(row.text, row.ordinal, row.item_id)
            if row.type == "tool_output":
                state.tools.setdefault(row.source, row.item_id)
        state.index.add_many(numbers, texts)
        state.cursor = batch[-1].ordinal
