"""Looking after a store: what it holds, whether it verifies, what it may forget."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from rung.ledger.backend import Backend, Census, LogEntry, Tenants
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
        altered = dict(backend.audit(only))
        problems += [Problem(code=code, tenant=tenant, id=item_id) for item_id, code in altered.items()]
        counts = backend.census(only)
        items += sum(count.items for count in counts)
        tombstones += sum(count.erased for count in counts)
        if not altered:
            # An altered record may not even be readable; parents are looked at once it is mended.
            problems += _missing_parents(backend, tenant)
        chain = list(backend.logged(only))
        entries += len(chain)
        problems += [Problem(code="link", tenant=tenant, id=str(entry.number)) for entry in broken_links(chain)]
        problems += _unlike_the_log(backend, tenant, chain, frozenset(altered))
    return Verification(items=items, tombstones=tombstones, entries=entries, problems=tuple(problems))


def _unlike_the_log(
    backend: Backend, tenant: str | None, chain: Sequence[LogEntry], altered: frozenset[str]
) -> Iterator[Problem]:
    only = (tenant,)
    registered: dict[str, str] = {}
    for entry in chain:
        if entry.kind in ("registration", "transform"):
            facts = _facts(entry.body)
            if facts is not None and facts.item not in altered:
                registered[facts.item] = facts.digest
    ids = list(registered)
    for start in range(0, len(ids), _BATCH):
        batch = ids[start : start + _BATCH]
        digests = {item_id: item.digest for item_id, item in backend.get(batch, only).items()}
        rest = [item_id for item_id in batch if item_id not in digests]
        if rest:
            digests |= {item_id: stone.digest for item_id, stone in backend.tombstones(only, rest).items()}
        for item_id in batch:
            if item_id not in digests:
                yield Problem(code="missing", tenant=tenant, id=item_id)
            elif digests[item_id].hex() != registered[item_id]:
                yield Problem(code="replaced", tenant=tenant, id=item_id)


class _Registered(msgspec.Struct, frozen=True):
    item: str
    digest: str


def _facts(body: str) -> _Registered | None:
    try:
        return msgspec.json.decode(body, type=_Registered)
    except msgspec.MsgspecError:
        return None


def _missing_parents(backend: Backend, tenant: str | None) -> Iterator[Problem]:
    reach: Tenants = (tenant, None)
    wanted: list[tuple[str, str]] = []
    for item in backend.items((tenant,)):
        wanted += [(parent, item.id) for parent in item.derived_from]
        if len(wanted) >= _BATCH:
            yield from _missing(backend, reach, tenant, wanted)
            wanted = []
    yield from _missing(backend, reach, tenant, wanted)


def _missing(
    backend: Backend, reach: Tenants, tenant: str | None, wanted: Sequence[tuple[str, str]]
) -> Iterator[Problem]:
    parents = list(dict.fromkeys(parent for parent, _ in wanted))
    if not parents:
        return
    known: set[str] = set(backend.get(parents, reach))
    rest = [parent for parent in parents if parent not in known]
    known |= set(backend.tombstones(reach, rest)) if rest else set()
    for parent, item_id in wanted:
        if parent not in known:
            yield Problem(code="parent", tenant=tenant, id=item_id, detail=parent)


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
            shown = _turns_shown(backend, tenant, edge, turns)
            turns |= dict.fromkeys(shown)
            if through_turns and shown:
                fresh += _said_in(backend, tenant, frozenset(shown))
            edge = [item_id for item_id in dict.fromkeys(fresh) if item_id not in reached]
            reached |= dict.fromkeys(edge)
        erased = tx.erase(list(reached), at, reason)
    return Erasure(erased=tuple(erased), turns=tuple(turns))


def _turns_shown(backend: Backend, tenant: str | None, ids: Sequence[str], known: Mapping[str, None]) -> list[str]:
    # A turn's record names each item that it was shown, as a JSON string.
    named = [f'"{item_id}"' for item_id in ids]
    return [
        turn.id
        for turn in backend.documents("turn", (tenant,))
        if turn.id not in known and any(name in turn.body for name in named)
    ]


def _said_in(backend: Backend, tenant: str | None, turns: frozenset[str]) -> list[str]:
    replies = backend.items((tenant,), types=frozenset({"assistant"}))
    return [item.id for item in replies if item.turn in turns or not turns.isdisjoint(item.derived_from)]


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
