"""Looking after a store: what it holds, whether it verifies, what it may forget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta

import msgspec

from rung.errors import IntegrityError
from rung.ledger.backend import Audited, Backend, Census, LogEntry, Tenants
from rung.ledger.lineage import said_in, turns_shown
from rung.storage.chain import broken_links

_BATCH = 500


class Problem(msgspec.Struct, frozen=True, kw_only=True):
    """Something that is not as it was written.

    Attributes:
        code: `digest`, `columns` or `unreadable` for an item; `parent` for an item whose parent is neither
            stored nor a tombstone; `missing` for an item that the log registered and that is neither;
            `replaced` for one that has another digest than the log registered; `link` for a log entry that
            does not continue its chain.
        tenant: whose it is; None for the deployment's.
        id: the item's id, or the number of the log entry.
        detail: the missing parent's id; empty otherwise.
    """

    code: str
    tenant: str | None
    id: str
    detail: str = ""


class Verification(msgspec.Struct, frozen=True, kw_only=True):
    """What was read again, and every problem that was found."""

    items: int
    tombstones: int
    entries: int
    problems: tuple[Problem, ...]

    @property
    def is_whole(self) -> bool:
        return not self.problems


class Erasure(msgspec.Struct, frozen=True, kw_only=True):
    """What an erasure did.

    Attributes:
        erased: ids of the items that were erased, descendants included.
        turns: ids of the turns that were shown one of them. Their replies may repeat what it said; they were
            erased too if `through_turns` was asked for, and are left otherwise.
    """

    erased: tuple[str, ...]
    turns: tuple[str, ...]


def every_tenant(backend: Backend) -> Tenants:
    """The deployment's scope and every tenant of a store: for its maintenance only."""
    return (None, *backend.tenants())


def stats(backend: Backend, tenants: Tenants | None = None) -> list[Census]:
    """Items, characters and tombstones by tenant and type; of every tenant where none are named."""
    return backend.census(every_tenant(backend) if tenants is None else tenants)


def verify(backend: Backend, tenants: Tenants | None = None) -> Verification:
    """Read everything again: digests, the columns that items are found by, parents, the log's chains, and
    whether each item that the log registered is still there as it was."""
    problems: list[Problem] = []
    items = tombstones = entries = 0
    for tenant in every_tenant(backend) if tenants is None else tenants:
        only = (tenant,)
        chain = list(backend.logged(only))
        stones = backend.tombstones(only)
        found = _Found(backend, tenant, _registered(chain), {i: s.digest for i, s in stones.items()})
        for audited in backend.audit(only):
            items += 1
            problems += found.take(audited)
        problems += found.rest()
        tombstones += len(stones)
        entries += len(chain)
        problems += [Problem(code="link", tenant=tenant, id=str(entry.number)) for entry in broken_links(chain)]
    return Verification(items=items, tombstones=tombstones, entries=entries, problems=tuple(problems))


class _Facts(msgspec.Struct, frozen=True):
    item: str
    digest: str


def _registered(chain: Sequence[LogEntry]) -> dict[str, str]:
    """The digests, in hexadecimal, of the items that a log registered."""
    registered: dict[str, str] = {}
    for entry in chain:
        if entry.kind in ("registration", "transform"):
            with suppress(msgspec.MsgspecError):
                facts = msgspec.json.decode(entry.body, type=_Facts)
                registered[facts.item] = facts.digest
    return registered


class _Found:
    """Compares what a tenant has with what its log registered, and with what its items were derived from."""

    def __init__(
        self, backend: Backend, tenant: str | None, registered: dict[str, str], erased: dict[str, bytes]
    ) -> None:
        self._backend = backend
        self._tenant = tenant
        self._registered = registered
        self._erased = erased
        self._parents: list[tuple[str, str]] = []

    def take(self, audited: Audited) -> Iterator[Problem]:
        registered = self._registered.pop(audited.id, None)
        if audited.problem is not None:
            yield Problem(code=audited.problem, tenant=self._tenant, id=audited.id)
        elif registered is not None and registered != audited.digest.hex():
            yield Problem(code="replaced", tenant=self._tenant, id=audited.id)
        self._parents += [(parent, audited.id) for parent in audited.derived_from]
        if len(self._parents) >= _BATCH:
            yield from self._missing_parents()

    def rest(self) -> Iterator[Problem]:
        """What was registered and not found, and the parents that were not looked for yet."""
        for item_id, digest in self._registered.items():
            stone = self._erased.get(item_id)
            if stone is None or stone.hex() != digest:
                code = "missing" if stone is None else "replaced"
                yield Problem(code=code, tenant=self._tenant, id=item_id)
        yield from self._missing_parents()

    def _missing_parents(self) -> Iterator[Problem]:
        wanted, self._parents = self._parents, []
        reach: Tenants = (self._tenant, None)
        parents = [parent for parent in dict.fromkeys(parent for parent, _ in wanted) if parent not in self._erased]
        known = set(self._erased) | set(_existing(self._backend, parents, reach))
        rest = [parent for parent in parents if parent not in known]
        known |= set(self._backend.tombstones(reach, rest)) if rest else set()
        for parent, item_id in wanted:
            if parent not in known:
                yield Problem(code="parent", tenant=self._tenant, id=item_id, detail=parent)


def _existing(backend: Backend, ids: Sequence[str], reach: Tenants) -> Iterator[str]:
    try:
        yield from backend.get(ids, reach)
    except IntegrityError:
        # One of them is altered, which is told of itself: it exists, and so may the others.
        for item_id in ids:
            try:
                yield from backend.get([item_id], reach)
            except IntegrityError:
                yield item_id


def vacuum(backend: Backend) -> None:
    """Give unused space back, and remove what erased items left behind in files."""
    backend.vacuum()


def erase(
    backend: Backend,
    tenant: str | None,
    ids: Sequence[str],
    *,
    at: datetime,
    reason: str,
    through_turns: bool = False,
) -> Erasure:
    """Erase items of a tenant and everything that was derived from them, leaving tombstones.

    Their content keys, identities and fingerprints go along: what they said is unknown to the ledger
    afterwards, and its guarantee covers what it still holds.

    Args:
        backend: the store.
        tenant: whose items; exact.
        ids: the items to begin with; unknown ones are passed over.
        at: when, as the tombstones say.
        reason: why, as the tombstones say; it must not repeat content.
        through_turns: also what was said in the turns that were shown one of them.
    """
    only = (tenant,)
    reached = dict.fromkeys(ids)
    turns: dict[str, None] = {}
    edge = list(reached)
    # Alone in the tenant, so that nothing is derived from an item between the search and its erasure.
    with backend.write(tenant, exclusive=True) as tx:
        while edge:
            fresh = [child for found in backend.children(edge, only).values() for child in found]
            shown = [turn for turn in turns_shown(backend, only, edge) if turn not in turns]
            turns |= dict.fromkeys(shown)
            if through_turns:
                fresh += said_in(backend, only, shown)
            edge = [item_id for item_id in dict.fromkeys(fresh) if item_id not in reached]
            reached |= dict.fromkeys(edge)
        erased = tx.erase(list(reached), at, reason)
    return Erasure(erased=tuple(erased), turns=tuple(turns))


def erase_subject(
    backend: Backend,
    tenant: str | None,
    subject: str,
    *,
    at: datetime,
    reason: str = "subject erased",
    through_turns: bool = False,
) -> Erasure:
    """Erase everything that a tenant holds of a person, and what was derived from it; see `erase`."""
    ids = [item.id for item in backend.items((tenant,), subject=subject)]
    return erase(backend, tenant, ids, at=at, reason=reason, through_turns=through_turns)


def sweep(
    backend: Backend,
    now: datetime,
    *,
    tenants: Tenants | None = None,
    grace: timedelta = timedelta(0),
    keep: Mapping[str, timedelta] | None = None,
) -> dict[str | None, list[str]]:
    """Erase what has expired; by tenant the ids that were erased.

    What was derived from an expired item stays: it has an expiry of its own.

    Args:
        backend: the store.
        now: the present moment.
        tenants: whose items; everybody's where none are named.
        grace: how long an expired item is still kept.
        keep: for how long items of a type are kept after they came in, by the type's name.
    """
    swept: dict[str | None, list[str]] = {}
    for tenant in every_tenant(backend) if tenants is None else tenants:
        only = (tenant,)
        ids = {item.id: None for item in backend.items(only, expired_at=now - grace)}
        for kind, age in (keep or {}).items():
            for item in backend.items(only, types=frozenset({kind})):
                if item.created > now - age:
                    break
                ids[item.id] = None
        for start in range(0, len(ids), _BATCH):
            with backend.write(tenant) as tx:
                gone = tx.erase(list(ids)[start : start + _BATCH], now, "expired")
            swept.setdefault(tenant, []).extend(gone)
    return swept
