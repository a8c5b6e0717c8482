"""`receive`: a signed envelope becomes items of this store, by this store's rules."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from typing import Any

from rung.errors import ConfigError, RungError, StoreBusyError, StoreError, WireError
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Provenance, Reach
from rung.policy.decision import Reason
from rung.records.draft import Draft
from rung.records.item import ContextItem
from rung.records.labels import Labels, combine
from rung.store import ContextStore, core
from rung.wire.envelope import Envelope, decode_envelope
from rung.wire.reasons import refusal
from rung.wire.schema import WireItem
from rung.wire.sign import Opened, Verifier
from rung.wire.trust import (
    TrustPolicy,
    attrs_of,
    content_of,
    parts_of,
    require_arrival,
    require_trusted,
    seen_at,
)

_log = logging.getLogger("rung")


def receive(
    view: ContextStore, envelope: bytes | Envelope, *, verifier: Verifier, trust: TrustPolicy | Iterable[TrustPolicy]
) -> list[ContextItem[Any]]:
    """Take in the items of a signed envelope, all or none.

    They are new items of this store, of the types that the trust policy gives them, with the source
    `wire:ISSUER`. What they were is kept in attributes (`issuer`, `foreign_id`, `foreign_digest`,
    `foreign_type`, `foreign_source`); lineage among them is kept as lineage. The store's rules and
    fingerprints apply as to anything else that comes from outside. An envelope is received once, also when it
    is refused after its signature held: its issuer signs again.

    Args:
        view: the handle that receives: its tenant, subject and session are what the items get.
        envelope: the bytes as they came.
        verifier: knows the issuers' keys and this audience.
        trust: a policy for each issuer that may send.

    Raises:
        WireError: it is refused, and the refusal is recorded (`view.refusals()`); `reason` is one of `REASONS`.
        ConfigError: a trust policy leads into a type that steers.
    """
    ledger, reach = core(view)
    policies = {each.issuer: each for each in ([trust] if isinstance(trust, TrustPolicy) else trust)}
    issuer = None
    try:
        opened = verifier.open(envelope)
        issuer = opened.issuer
        rows = _in_order(opened.rows)
        made = _write(_drafts(opened, rows, policies, view, ledger, reach), view, ledger, reach, issuer)
        here = {row.id: item for row, item in zip(rows, made, strict=True)}
        return [here[row.id] for row in opened.rows]
    except WireError as problem:
        _record(problem, ledger, reach, issuer if issuer is not None else _claimed(envelope, verifier))
        raise


def _drafts(
    opened: Opened,
    rows: list[WireItem],
    policies: dict[str, TrustPolicy],
    view: ContextStore,
    ledger: Ledger,
    reach: Reach,
) -> list[tuple[Draft, Provenance]]:
    if opened.payload_type == "manifest":
        raise refusal("wrong_payload", "the envelope carries a manifest and no items (open it with Verifier.open)")
    trust = policies.get(opened.issuer)
    if trust is None:
        raise refusal("not_trusted", f"no trust policy names issuer `{opened.issuer}` (give one to receive)")
    if reach.tenant is not None and trust.tenants is not None and reach.tenant not in trust.tenants:
        raise refusal("tenant_not_trusted", f"issuer `{trust.issuer}` may not speak in this tenant (see tenants)")
    places = {row.id: place for place, row in enumerate(rows)}
    here = frozenset(places)
    labels: list[Labels] = []
    integrity: list[int] = []
    drafts: list[tuple[Draft, Provenance]] = []
    for row in rows:
        require_trusted(row, trust, reach)
        target = trust.arrival(row.type)
        require_arrival(target, row.type, trust, ledger.policy)
        after = tuple(places[parent] for parent in dict.fromkeys(row.derived_from) if parent in places)
        labels.append(_labels(row, trust, ledger, [labels[place] for place in after]))
        steers = min(ledger.policy.integrity(target), row.integrity, *(integrity[place] for place in after))
        integrity.append(max(steers, 0))
        draft = Draft(
            type=view.type_named(target),
            content=content_of(row),
            source=f"wire:{trust.issuer}",
            sensitivity=labels[-1].sensitivity,
            scopes=labels[-1].scopes,
            subject=labels[-1].subject,
            observed_at=seen_at(row, opened.issued_at),
            expires_at=row.expires_at,
            key=row.key if row.key is not None and trust.states(row.key) else None,
            version=row.version,
            parts=parts_of(row, trust),
            attrs=attrs_of(row, trust, here),
        )
        drafts.append((draft, Provenance(after=after, integrity=integrity[-1])))
    return drafts


def _in_order(rows: tuple[WireItem, ...]) -> list[WireItem]:
    """Parents before children, otherwise as they were sent."""
    waiting = {row.id: row for row in rows}
    if len(waiting) != len(rows):
        raise refusal("duplicate_item", "two items of the envelope have one id")
    missing = {row.id: len({parent for parent in row.derived_from if parent in waiting}) for row in rows}
    children: dict[str, list[str]] = {}
    for row in rows:
        for parent in dict.fromkeys(row.derived_from):
            if parent in waiting:
                children.setdefault(parent, []).append(row.id)
    ordered: list[WireItem] = []
    ready = [row.id for row in reversed(rows) if not missing[row.id]]
    while ready:
        row = waiting[ready.pop()]
        ordered.append(row)
        for child in reversed(children.get(row.id, [])):
            missing[child] -= 1
            if not missing[child]:
                ready.append(child)
    if len(ordered) != len(rows):
        raise refusal("lineage_cycle", "items of the envelope are derived from each other in a circle")
    return ordered


def _labels(row: WireItem, trust: TrustPolicy, ledger: Ledger, parents: list[Labels]) -> Labels:
    """As strict as the item claims, its parents are, the trust policy and the policy of the source demand."""
    source = ledger.policy.source(f"wire:{trust.issuer}")
    sensitivity = max(row.labels.sensitivity, trust.min_sensitivity, source.sensitivity or trust.min_sensitivity)
    own = Labels(
        tenant=row.labels.tenant,
        subject=row.labels.subject,
        sensitivity=sensitivity,
        scopes=row.labels.scopes | trust.add_scopes,
    )
    try:
        return combine([own, *parents])
    except RungError:
        raise refusal(
            "lineage_labels", f"an item of issuer `{trust.issuer}` combines two tenants or subjects"
        ) from None


def _write(
    drafts: list[tuple[Draft, Provenance]], view: ContextStore, ledger: Ledger, reach: Reach, issuer: str
) -> list[ContextItem[Any]]:
    if not drafts:
        return []
    try:
        return ledger.write(drafts, reach, is_sealed=view.sealed)
    except (ConfigError, StoreBusyError):
        raise
    except (RungError, OverflowError) as problem:
        told = problem.message if isinstance(problem, RungError) else "a time is out of range"
        raise refusal(
            "refused_by_store",
            f"an item of issuer `{issuer}` is refused here: {told}",
            item_id=getattr(problem, "item_id", None),
        ) from problem


def _claimed(envelope: bytes | Envelope, verifier: Verifier) -> str:
    """The issuer that a refused envelope names, if it is one of ours: nobody else's words enter the log."""
    try:
        issuer = envelope.issuer if isinstance(envelope, Envelope) else decode_envelope(envelope).issuer
    except WireError:
        return "unknown"
    return issuer if issuer in verifier.issuers else "unknown"


def _record(problem: WireError, ledger: Ledger, reach: Reach, issuer: str) -> None:
    reason = Reason(rule="wire", code=problem.reason, message=problem.message)
    try:
        ledger.record_refusal(reason, reach, target="wire", source=f"wire:{issuer}")
    except StoreError:
        # The refusal itself stands; what is lost is its record, and that is said aloud.
        _log.exception("the refusal of an envelope could not be recorded")
