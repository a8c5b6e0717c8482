"""The ledger: decide, then write. Every item of a store enters through `Ledger.write`."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, cast

import msgspec

from rung.errors import (
    ConflictError,
    ForeignItemError,
    InputError,
    RungError,
    ScopeError,
    StoreError,
    UnknownItemError,
    kind,
)
from rung.ledger.backend import Backend, LogEntry, NewRow, Transaction
from rung.ledger.detection import Detector, detect
from rung.ledger.entries import (
    declassification_entry,
    endorsement_entry,
    error,
    refusal_entry,
    refused,
    registered,
    tell,
)
from rung.ledger.invalidation import Invalidations
from rung.ledger.judge import Judge
from rung.ledger.prepare import Prepared, Preparer, keeps_registration, registration
from rung.ledger.reach import Provenance, Reach, handed_out, name, within
from rung.policy.decision import Reason, Refusal
from rung.policy.rules import PolicySet
from rung.records.canonical import canonical_json
from rung.records.clock import Clock, IdFactory, IdParts, aware_utc
from rung.records.draft import Draft
from rung.records.item import ContextItem, sealed
from rung.records.labels import Labels
from rung.records.types import ContextType

_SEALED = 256
_log = logging.getLogger("rung")


class Ledger:
    """Decides and writes; reads what a reach may see. One per process and backend; safe for threads."""

    def __init__(
        self,
        backend: Backend,
        policy: PolicySet,
        types: Mapping[str, type[ContextType]],
        clock: Clock,
        ids: IdFactory,
        detector: Detector = detect,
    ) -> None:
        self._backend = backend
        self._policy = policy
        self._preparer = Preparer(policy, types, detector)
        self._judge = Judge(policy, backend)
        self._clock = clock
        self._ids = ids
        self._invalidations = Invalidations(backend)
        self._verified: dict[str, ContextItem[Any]] = {}
        self._sealed: dict[str, ContextItem[Any]] = {}
        """The last items that were sealed here: what equals one of them needs no digest to show it."""

    @property
    def backend(self) -> Backend:
        return self._backend

    @property
    def policy(self) -> PolicySet:
        return self._policy

    def now(self) -> datetime:
        """The injected clock's moment, checked to be aware UTC."""
        return aware_utc(self._clock(), "clock()")

    # writing

    def write(
        self,
        drafts: Sequence[tuple[Draft, Provenance]],
        reach: Reach,
        *,
        is_sealed: bool = False,
        expected: int | None = None,
    ) -> list[ContextItem[Any]]:
        """Take in drafts, all or none.

        Args:
            drafts: what is offered and how it came about.
            reach: the handle's tenant, subject and session.
            is_sealed: whether the handle is sealed.
            expected: the last sequence number that the handle's session must have; None: any.

        Raises:
            ContextTypeError, LaunderingError: a type rule refuses one of them.
            InputError, ScopeError: a value is wrong, or a label would widen what the handle may reach.
        """
        broken: list[tuple[Prepared | Draft, Reason]] = []
        prepared: list[Prepared] = []
        exclusive = unprotected = False
        try:
            for draft, provenance in drafts:
                made, reasons = self._preparer.prepare(draft, provenance, reach)
                if reasons:
                    broken += [(made, reason) for reason in reasons]
                prepared.append(made)
                if made.protected:
                    exclusive = True
                else:
                    unprotected = True
            if unprotected and reach.tenant is None and self._backend.shared:
                raise ScopeError(
                    "a shared backend has no default tenant: only the deployment's own instructions go without one "
                    "(use store.scope(tenant=…))",
                    reason="no_tenant",
                )
            with self._backend.write(reach.tenant, exclusive=exclusive) as tx:
                broken += self._judge.judge(prepared, reach, tx, is_sealed)
                for _, reason in broken:
                    if reason.mode == "enforce":
                        raise error(reason)
                if expected is not None:
                    _expect(tx, reach.session, expected)
                return self._insert(prepared, reach, tx, broken)
        except RungError:
            self._record_refusals(broken, reach)
            raise

    def _insert(
        self,
        prepared: Sequence[Prepared],
        reach: Reach,
        tx: Transaction,
        broken: Sequence[tuple[Prepared | Draft, Reason]],
    ) -> list[ContextItem[Any]]:
        now = self.now()
        rows: list[NewRow] = []
        for made, seq in zip(prepared, _sequences(prepared, tx), strict=True):
            places = made.provenance.after
            after = [self._stored_id(rows[place], tx) for place in places] if places else ()
            rows.append(
                NewRow(
                    item=self._item(made, seq, now, after),
                    content_key=made.key,
                    identity=registration(made) if keeps_registration(made) else None,
                )
            )
        stored = tx.insert(rows)
        items: dict[str, ContextItem[Any]] = {}
        entries: list[LogEntry] = []
        endorsed: list[LogEntry] = []
        declassified: list[LogEntry] = []
        for made, row, given in zip(prepared, rows, stored, strict=True):
            item, provenance = row.item, made.provenance
            if item.id == given:
                items[given] = item
                entries.append(registered(item, now, provenance.channel))
            if provenance.endorsement is not None:
                endorsed.append(endorsement_entry(provenance.endorsement, given, now, reach))
            if provenance.declassification is not None:
                word = provenance.declassification
                declassified.append(declassification_entry(word, given, provenance.parents, now, reach))
        if broken:
            entries += [refused(made, reason, now, reach) for made, reason in broken]
        tx.log([*entries, *endorsed, *declassified])
        for _, reason in broken:
            tell(reason)
        if len(items) < len(stored):
            items |= self._backend.get([given for given in stored if given not in items], reach.tenants)
        return [handed_out(items[given]) for given in stored]

    @staticmethod
    def _stored_id(row: NewRow, tx: Transaction) -> str:
        if row.identity is None:
            return row.item.id
        return tx.identities([row.identity]).get(row.identity, row.item.id)

    def _item(self, made: Prepared, seq: int, now: datetime, after: Sequence[str]) -> ContextItem[Any]:
        draft, provenance = made.draft, made.provenance
        parents = (*provenance.parents, *after, *made.text_origins)
        if parents:
            parents = tuple(dict.fromkeys(parents))
        integrity = made.integrity
        if provenance.integrity is not None:
            integrity = min(integrity, provenance.integrity)
        key = None if draft.key is None else name(draft.key, "key")
        version = None if draft.version is None else name(draft.version, "version")
        parts = IdParts(
            tenant=made.labels.tenant,
            session=made.session,
            seq=seq,
            type=made.type.name,
            source=made.source,
            key=key,
            version=version,
            observed_at=made.observed_at,
            content=made.text,
            parents=parents,
        )
        made_item = sealed(
            ContextItem(
                type=made.type,
                id=self._ids(parts),
                source=made.source,
                _body=made.text,
                media_type=made.media_type,
                labels=made.labels,
                session=made.session,
                turn=made.turn,
                seq=seq,
                created=now,
                observed_at=made.observed_at,
                expires_at=made.expires_at,
                key=key,
                version=version,
                integrity=integrity,
                derived_from=parents,
                via=provenance.via,
                parts=tuple(draft.parts),
                call_id=draft.call_id,
                attrs=made.attrs,
            )
        )
        if len(self._sealed) >= _SEALED:
            self._sealed = {}
        self._sealed[made_item.id] = made_item
        return made_item

    def record_refusal(self, reason: Reason, reach: Reach, *, target: str, source: str, text: str = "") -> None:
        """Keep a refusal that another layer decided (a transform's, a turn's)."""
        now = self.now()
        entry = refusal_entry(reason, now, reach, target, source, text)
        with self._backend.write(reach.tenant) as tx:
            tx.log([entry])

    def _record_refusals(self, broken: Sequence[tuple[Prepared | Draft, Reason]], reach: Reach) -> None:
        if not broken:
            return
        now = self.now()
        entries = [refused(made, reason, now, reach) for made, reason in broken]
        try:
            with self._backend.write(reach.tenant) as tx:
                tx.log(entries)
        except StoreError:
            # The refusal itself stands; what is lost is its record, and that is said aloud.
            _log.exception("a refusal could not be recorded")

    # reading

    def get(self, ids: Iterable[str], reach: Reach) -> list[ContextItem[Any]]:
        """The stored items of these ids, in that order, each verified against its digest once.

        Raises:
            UnknownItemError: one of them does not exist in this reach.
            ForeignItemError: what is stored was altered.
        """
        wanted = list(ids)
        found = self._backend.get(wanted, reach.tenants)
        return [self._readable(item_id, found.get(item_id), reach) for item_id in wanted]

    def _readable(self, item_id: str, item: ContextItem[Any] | None, reach: Reach) -> ContextItem[Any]:
        if item is None or not within(item, reach):
            raise UnknownItemError(f"no item `{item_id}` in this store and scope (add it here first)", item_id=item_id)
        return self._whole(item)

    def _whole(self, item: ContextItem[Any]) -> ContextItem[Any]:
        """The item, once it has been held against its digest."""
        item_id = item.id
        if self._verified.get(item_id) is not item:
            if self._sealed.get(item_id) != item and item.digest != item.computed_digest():
                raise ForeignItemError(
                    f"item `{item_id}` was altered in the storage: its digest does not match (restore it from a copy)",
                    item_id=item_id,
                )
            if len(self._verified) >= 200_000:
                self._verified.clear()
            self._verified[item_id] = item
        return item

    def session_after(self, reach: Reach, seq: int) -> list[ContextItem[Any]]:
        """The items of the handle's session after a sequence number, in order, each verified once.

        A session is its tenant's: what the deployment has under the same name is counted apart.
        """
        if reach.session is None:
            return []
        found = self._backend.session_items(reach.session, (reach.tenant,), after=seq)
        return [self._whole(item) for item in found if within(item, reach)]

    def issued(self, items: Iterable[ContextItem[Any]], reach: Reach) -> list[ContextItem[Any]]:
        """The stored originals of items that were handed in; what is used afterwards is the store's own copy.

        Raises:
            ForeignItemError: forged, from another store, or altered since it was handed out.
        """
        given = list(items)
        ids = [item.id for item in given if isinstance(item, ContextItem)]  # pyright: ignore[reportUnnecessaryIsInstance]
        found = self._backend.get(ids, reach.tenants)
        stored = [item for item_id in ids if (item := found.get(item_id)) is not None]
        if stored != given:
            raise _not_issued(given, found, reach)
        labels: Labels | None = None
        verified = self._verified
        for item in stored:
            # Many items share few labels.
            if item.labels is not labels:
                if not within(item, reach):
                    raise _not_issued(given, found, reach)
                labels = item.labels
            if verified.get(item.id) is not item:
                self._whole(item)
        return stored

    def revoked(self, ids: Sequence[str], reach: Reach) -> dict[str, str]:
        """Which of these are revoked, and why."""
        return self._backend.revoked(ids, reach.tenants)

    def invalidated(self, items: Sequence[ContextItem[Any]], reach: Reach, *, read: bool = True) -> dict[str, str]:
        """Which of these an event has invalidated since they were seen, and the event's reason.

        Without `read` the events are those that are known: `erased` has read them a moment ago.
        """
        return self._invalidations.among(items, reach.tenants, read=read)

    def erased(self, reach: Reach) -> tuple[Sequence[str], ...]:
        """Of each tenant of a handle the ids of what was erased, in order; what this process holds of it must go."""
        return self._invalidations.erased(reach.tenants)

    def revoke(
        self,
        ids: Sequence[str],
        reach: Reach,
        reason: str,
        also: Sequence[LogEntry] = (),
        turns: Sequence[str] = (),
    ) -> None:
        """Mark items as revoked, and log it with the turns that were shown them; `also` is logged with it."""
        now = self.now()
        with self._backend.write(reach.tenant) as tx:
            tx.revoke(ids, now, reason)
            tx.log(
                [
                    LogEntry(
                        tenant=reach.tenant,
                        at=now,
                        kind="revocation",
                        body=canonical_json({"items": list(ids), "reason": reason, "turns": list(turns)}),
                    ),
                    *also,
                ]
            )

    def refusals(self, reach: Reach) -> list[Refusal]:
        """What was refused or would have been, oldest first."""
        out: list[Refusal] = []
        for entry in self._backend.logged(reach.tenants, kinds=frozenset({"refusal"})):
            data = msgspec.json.decode(entry.body)
            out.append(msgspec.convert({"number": entry.number, "at": entry.at.isoformat(), **data}, Refusal))
        return out


def _not_issued(given: Sequence[object], found: Mapping[str, ContextItem[Any]], reach: Reach) -> RungError:
    """What is wrong with the first of these that is no item, or that is not among what was found, or not as it is."""
    for thing in given:
        if not isinstance(thing, ContextItem):
            return InputError(
                f"`{kind(thing)}` is no item (add it to the store first: store.add(type, content, source=…))",
                field="items",
            )
        item = cast("ContextItem[Any]", thing)
        stored = found.get(item.id)
        if stored is None or not within(stored, reach):
            return ForeignItemError(
                f"item `{item.id}` was not issued by this store in this scope (add its content here first)",
                item_id=item.id,
            )
        if stored != item:
            return ForeignItemError(
                f"item `{item.id}` was altered since the store issued it (take it again with store.get)",
                item_id=item.id,
            )
    raise AssertionError("every item is as it was issued")


def _expect(tx: Transaction, session: str | None, expected: int) -> None:
    actual = tx.next_seq(session, 0) - 1
    if actual != expected:
        raise ConflictError(
            f"the session is at {actual}, not at {expected}: another turn came first (read it again and retry)",
            expected=expected,
            actual=actual,
        )


def _sequences(prepared: Sequence[Prepared], tx: Transaction) -> list[int]:
    if len(prepared) == 1:
        return [tx.next_seq(prepared[0].session, 1)]
    counts: dict[str | None, int] = {}
    for made in prepared:
        counts[made.session] = counts.get(made.session, 0) + 1
    following = {session: tx.next_seq(session, count) for session, count in counts.items()}
    numbers: list[int] = []
    for made in prepared:
        numbers.append(following[made.session])
        following[made.session] += 1
    return numbers
