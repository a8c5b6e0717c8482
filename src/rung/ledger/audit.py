"""What the decision log says afterwards: endorsements and declassifications, and the log itself as lines."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any, Literal

import msgspec

from rung.errors import ContextTypeError, InputError
from rung.ledger.backend import Backend, LogEntry, Tenants
from rung.ledger.content import text_digest
from rung.ledger.declassification import Declassification
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Provenance, Reach
from rung.records.canonical import canonical_json
from rung.records.draft import Draft
from rung.records.item import ContextItem, body
from rung.records.labels import Labels, Sensitivity


class EndorsementRecord(msgspec.Struct, frozen=True, kw_only=True):
    """Somebody's word that the log holds: that a text may steer, or that it may be shown more widely.

    Attributes:
        number: of the log entry; an endorsement is revoked by it.
        at: when it was given, aware UTC.
        kind: `endorsement` raised integrity, `declassification` widened the audience.
        item: the item that it let in.
        by, reason: who, and why.
        digest: SHA-256 of the text that it covers, in hexadecimal.
        covers: ids of the items whose hits it covers; of a declassification: its parent.
        revoked_at, revoked_by, revoked_because: filled where it was revoked.
    """

    number: int
    at: datetime
    kind: Literal["endorsement", "declassification"]
    item: str
    by: str
    reason: str
    digest: str
    covers: tuple[str, ...] = ()
    revoked_at: datetime | None = None
    revoked_by: str | None = None
    revoked_because: str | None = None

    @property
    def is_revoked(self) -> bool:
        return self.revoked_at is not None


class _Revoked(msgspec.Struct, frozen=True):
    endorsement: int
    by: str
    reason: str


_KINDS = frozenset({"endorsement", "declassification", "endorsement_revoked"})


def endorsements(ledger: Ledger, reach: Reach) -> list[EndorsementRecord]:
    """Every endorsement and declassification of this tenant and the deployment, oldest first."""
    found: dict[int, EndorsementRecord] = {}
    for entry in ledger.backend.logged(reach.tenants, kinds=_KINDS):
        if entry.kind == "endorsement_revoked":
            said = msgspec.json.decode(entry.body, type=_Revoked)
            given = found.get(said.endorsement)
            if given is not None and not given.is_revoked:
                found[said.endorsement] = msgspec.structs.replace(
                    given, revoked_at=entry.at, revoked_by=said.by, revoked_because=said.reason
                )
            continue
        facts: dict[str, Any] = msgspec.json.decode(entry.body)
        found[entry.number] = msgspec.convert(
            {
                "number": entry.number,
                "at": entry.at,
                "kind": entry.kind,
                "item": facts["item"],
                "by": facts["by"],
                "reason": facts["reason"],
                "digest": facts["digest"],
                "covers": facts.get("from") or facts.get("covers") or (),
            },
            EndorsementRecord,
        )
    return list(found.values())


def revoke_endorsement(
    ledger: Ledger,
    reach: Reach,
    number: int,
    *,
    by: str,
    reason: str,
    descendants: Callable[[str], list[str]],
) -> list[str]:
    """Take an endorsement back: the item that it let in is revoked, and all that was derived from it. Their ids.

    Args:
        ledger, reach: where.
        number: of the endorsement's log entry.
        by, reason: who takes it back, and why.
        descendants: gives the ids of what was derived from an item.

    Raises:
        InputError: no such endorsement in this tenant, or `by` or `reason` is empty.
    """
    for field, value in (("by", by), ("reason", reason)):
        if not value.strip():
            raise InputError(f"`{field}` is empty (say who takes it back, and why)", field=field)
    given = next((each for each in endorsements(ledger, reach) if each.number == number), None)
    if given is None:
        raise InputError(f"no endorsement has the number {number} (see endorsements())", field="number")
    ids = [given.item, *descendants(given.item)]
    entry = LogEntry(
        tenant=reach.tenant,
        at=ledger.now(),
        kind="endorsement_revoked",
        body=canonical_json({"endorsement": number, "item": given.item, "by": by, "reason": reason}),
    )
    ledger.revoke(ids, reach, reason, also=[entry])
    return ids


def declassify(
    ledger: Ledger,
    item: ContextItem[Any],
    reach: Reach,
    *,
    sensitivity: Sensitivity | None,
    scopes: frozenset[str] | None,
    by: str,
    reason: str,
    digest: str = "",
) -> ContextItem[Any]:
    """A new item with the same content and a wider audience, derived from `item`, which stays as it is.

    Raises:
        InputError: nothing would be wider, something would be narrower, or `digest` is another text's.
        ContextTypeError: the item is revoked.
    """
    parent = ledger.issued([item], reach)[0]
    revoked = ledger.revoked([parent.id], reach)
    if revoked:
        raise ContextTypeError(
            f"item `{parent.id}` is revoked and nothing can be derived from it ({revoked[parent.id]})",
            item_id=parent.id,
        )
    text = body(parent)
    bound = text_digest(text)
    if digest and digest != bound:
        raise InputError("the declassification is bound to another text (declassify this one)", field="digest")
    old = parent.labels
    new = Labels(
        tenant=old.tenant if old.tenant is not None else reach.tenant,
        subject=old.subject,
        sensitivity=old.sensitivity if sensitivity is None else sensitivity,
        scopes=old.scopes if scopes is None else scopes,
    )
    if new.sensitivity > old.sensitivity or not new.scopes <= old.scopes:
        raise InputError(
            f"a declassification widens: item `{parent.id}` is {old.sensitivity.name} with {len(old.scopes)} scopes "
            "(give a lower sensitivity, or some of its scopes)",
            field="sensitivity" if new.sensitivity > old.sensitivity else "scopes",
        )
    if (new.sensitivity, new.scopes) == (old.sensitivity, old.scopes):
        raise InputError(
            f"item `{parent.id}` has this audience already (give a lower sensitivity, or fewer scopes)",
            field="sensitivity",
        )
    draft = Draft(
        type=parent.type,
        content=msgspec.json.decode(text) if parent.media_type == "application/json" else text,
        source=parent.source,
        session=parent.session if reach.session in (None, parent.session) else None,
        turn=parent.turn,
        observed_at=parent.seen_at,
        expires_at=parent.expires_at,
        key=parent.key,
        version=parent.version,
        parts=parent.parts,
        call_id=parent.call_id,
        attrs=parent.attrs,
    )
    word = Declassification(by=by, reason=reason, digest=bound, labels=new)
    provenance = Provenance(parents=(parent.id,), via="declassify:", integrity=parent.integrity, declassification=word)
    return ledger.write([(draft, provenance)], reach)[0]


def export_log(backend: Backend, tenants: Tenants) -> Iterator[str]:
    """The decision log as JSON lines, oldest first: `number`, `tenant`, `at`, `kind`, `body` and `link`.

    `body` is an object; `link` is hexadecimal. A tenant's lines in order are its whole hash chain.
    """
    for entry in backend.logged(tenants):
        yield canonical_json(
            {
                "number": entry.number,
                "tenant": entry.tenant,
                "at": entry.at,
                "kind": entry.kind,
                "body": msgspec.json.decode(entry.body),
                "link": entry.link.hex(),
            }
        )
