"""Judging: may these drafts enter, given what the store holds."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from rung.ledger.backend import Backend, OriginRow, Tenants, Transaction
from rung.ledger.content import beside, folded
from rung.ledger.origins import STAGED, OriginIndex, StagedText, staged_id
from rung.ledger.prepare import Prepared, reason_of, registration
from rung.ledger.reach import Reach
from rung.policy.decision import Hit, Reason
from rung.policy.rules import PolicySet
from rung.records.draft import Draft
from rung.records.item import body


class Staged:
    """Drafts of one write in their order: the earlier ones are origins for the later ones."""

    def __init__(self) -> None:
        self.texts: list[StagedText] = []
        self._rows: dict[bytes, list[OriginRow]] = {}

    def add(self, made: Prepared, place: int, *, untrusted: bool) -> None:
        kind = made.type.name
        draft = made.draft
        text = StagedText(
            type=kind,
            source=made.source,
            text=made.text,
            beside=beside(draft.key, draft.version, made.attrs, tuple(draft.parts)),
            untrusted=untrusted,
            protected=made.protected,
        )
        self.texts.append(text)
        if made.key:
            row = OriginRow(
                ordinal=STAGED + place,
                item_id=staged_id(place),
                type=kind,
                source=made.source,
                tenant=made.labels.tenant,
            )
            self._rows.setdefault(made.key, []).append(row)

    def rows(self, key: bytes) -> Sequence[OriginRow]:
        return self._rows.get(key, ()) if key else ()


class Judge:
    """The rules that need the storage: origins, shared runs, the seal, channels, registrations."""

    def __init__(self, policy: PolicySet, backend: Backend) -> None:
        self._policy = policy
        self._backend = backend
        self._origins = OriginIndex(policy, backend)

    def judge(
        self, prepared: Sequence[Prepared], reach: Reach, tx: Transaction, is_sealed: bool
    ) -> list[tuple[Prepared | Draft, Reason]]:
        broken: list[tuple[Prepared | Draft, Reason]] = []
        asked = [made for made in prepared if self._asks_origin(made)]
        if not asked:
            return broken
        tenants = self._origin_tenants(reach, any(made.protected for made in asked))
        known = tx.origins([made.key for made in asked if made.key], tenants)
        staged = Staged()
        for place, made in enumerate(prepared):
            rows = (*known.get(made.key, ()), *staged.rows(made.key))
            if len(prepared) > 1:
                staged.add(made, place, untrusted=not self._policy.trusted(made.type.name))
            if made.protected:
                found = self._judge_protected(made, rows, tx, tenants, is_sealed, staged.texts[:place])
                broken += [(made, reason) for reason in found]
            elif self._asks_origin(made):
                reason = self._judge_registration(made, rows)
                if reason is not None:
                    broken.append((made, reason))
        return broken

    def _origin_tenants(self, reach: Reach, protected: bool) -> Tenants:
        # What the deployment registers is seen by every tenant, so it is compared with what any of them brought in.
        if protected and reach.tenant is None:
            return tuple(dict.fromkeys((None, *self._backend.tenants())))
        return reach.tenants

    def _asks_origin(self, made: Prepared) -> bool:
        if made.protected:
            return True
        return (
            made.type.name != "user"
            and made.integrity > 20
            and made.key != b""
            and not made.provenance.parents
            and made.type.name not in self._policy.source(made.source).produces
            and len(folded(made.text)) >= self._policy.limits.short_text
        )

    def _judge_registration(self, made: Prepared, rows: Sequence[OriginRow]) -> Reason | None:
        if not rows:
            return None
        first = min(rows, key=lambda row: row.ordinal)
        if self._policy.integrity(first.type) >= self._policy.integrity(made.type.name):
            return None
        return reason_of(
            self._policy,
            "produces",
            "not_a_producer",
            f"{first.type} cannot be registered as {made.type.name} by `{made.source}` (content first registered as "
            f"{first.type}, id={first.item_id}; use store.promote, or list `{made.type.name}` in "
            f"sources.{made.source}.produces)",
            item_id=first.item_id,
        )

    def _judge_protected(
        self,
        made: Prepared,
        rows: Sequence[OriginRow],
        tx: Transaction,
        tenants: Tenants,
        is_sealed: bool,
        staged: Sequence[StagedText],
    ) -> list[Reason]:
        reasons: list[Reason] = []
        target, provenance = made.type.name, made.provenance
        parents = self._backend.get(provenance.parents, tenants) if provenance.parents else {}
        same = [parent for parent in parents.values() if body(parent) == made.text]
        if any(parent.type is made.type for parent in same):
            # A parent of the same type says exactly this already: nothing new enters the type.
            return reasons
        if tx.identities([registration(made)]):
            # The same registration again: it is the first one that stays, whatever came in since.
            return reasons
        if provenance.channel is None and provenance.endorsement is None and not provenance.guarded:
            if is_sealed and not provenance.before_seal:
                reasons.append(
                    reason_of(
                        self._policy,
                        "seal",
                        "sealed",
                        f"the store is sealed and this text is no registered {target} (register it before the seal, "
                        "load it through an InstructionSource, or fill a Template)",
                    )
                )
            tool = self._tool_source(made.source, tx, tenants)
            if tool is not None:
                reasons.append(
                    reason_of(
                        self._policy,
                        "channel",
                        "tool_source",
                        f"`{made.source}` is a tool's name and cannot bring in {target} (its results are ToolOutput"
                        f"{tool}; give instructions a source of the deployment)",
                    )
                )
        hits: list[Hit] = []
        known: list[str] = []
        if provenance.guarded and not self._policy.trusted(target):
            # Not an authority, only guarded: the policy lets in what the parents say, whoever else said it too.
            if same:
                return reasons
            known = [body(parent) for parent in parents.values()]
        else:
            hits = self._whole_hits(made, rows)
        if all(hit.item_id in provenance.covers for hit in hits):
            hits = self._origins.hits(made.text, target, tx, tenants, staged, known, provenance.covers)
        hits = [hit for hit in hits if hit.item_id not in provenance.covers]
        if hits:
            reasons.append(self._laundering(made, hits))
        return reasons

    def _whole_hits(self, made: Prepared, rows: Sequence[OriginRow]) -> list[Hit]:
        protected = [row.ordinal for row in rows if self._policy.protected(row.type)]
        untrusted = sorted(
            (row for row in rows if not self._policy.protected(row.type)),
            key=lambda row: (self._policy.trusted(row.type), row.ordinal),
        )
        if not untrusted or (protected and min(protected) < min(row.ordinal for row in untrusted)):
            return []
        length = len(folded(made.text))
        return [
            Hit(
                item_id=row.item_id,
                type=row.type,
                source=row.source,
                span=(0, len(made.text)),
                origin_span=(0, len(made.text)),
                length=length,
                kind="whole",
                ordinal=row.ordinal,
            )
            for row in untrusted
        ]

    def _laundering(self, made: Prepared, hits: Sequence[Hit]) -> Reason:
        first = hits[0]
        where = (
            ""
            if first.kind == "whole"
            else f"; {first.length} normalised characters shared at {first.span[0]} to {first.span[1]}, "
            f"there {first.origin_span[0]} to {first.origin_span[1]}"
            + ("" if first.view == "plain" else f", as {first.view}")
        )
        message = (
            f"{first.type} cannot be inserted into {made.type.name} context (content first registered as "
            f"{first.type}, id={first.item_id}{where})"
        )
        reason = reason_of(
            self._policy,
            "origin" if first.kind == "whole" else "laundering",
            f"shared_{first.kind}",
            message,
            item_id=first.item_id,
        )
        mode = "observe" if made.provenance.channel is not None else reason.mode
        return msgspec.structs.replace(reason, hits=tuple(hits), mode=mode)

    def _tool_source(self, source: str, tx: Transaction, tenants: Tenants) -> str | None:
        if source.casefold().lstrip().startswith(("tool:", "mcp:")):
            return ""
        found = self._origins.tool(source, tx, tenants)
        return None if found is None else f", id={found}"
