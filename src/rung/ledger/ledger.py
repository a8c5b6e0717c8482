"""The ledger: decide, then write. Every item of a store enters through `Ledger.write`."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from rung.errors import (
    ConflictError,
    ContextTypeError,
    ForeignItemError,
    InputError,
    LaunderingError,
    RungError,
    ScopeError,
    StoreError,
    UnknownItemError,
    kind,
    names,
)
from rung.ledger.backend import Backend, LogEntry, NewRow, OriginRow, Tenants, Transaction
from rung.ledger.channels import Endorsement
from rung.ledger.content import beside, content_key, folded, identity, text_digest
from rung.ledger.declassification import Declassification
from rung.ledger.invalidation import Invalidations
from rung.ledger.origins import STAGED, OriginIndex, StagedText, staged_id
from rung.policy.decision import Hit, Reason, Refusal
from rung.policy.rules import PolicySet
from rung.records.canonical import canonical_json, canonical_text
from rung.records.clock import Clock, IdFactory, IdParts, aware_utc
from rung.records.draft import Draft
from rung.records.item import ContextItem, body, sealed
from rung.records.labels import Labels, Sensitivity
from rung.records.text import LabelledText
from rung.records.types import ContextType

_log = logging.getLogger("rung")

_LONGEST_NAME = 512


class Reach(msgspec.Struct, frozen=True, kw_only=True):
    """What a handle may read and write: exact tenant, subject and session."""

    tenant: str | None = None
    subject: str | None = None
    session: str | None = None

    @property
    def tenants(self) -> Tenants:
        """The tenant's own rows and the deployment's."""
        return (None,) if self.tenant is None else (self.tenant, None)


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """How a draft comes about, beside what it says.

    Attributes:
        channel: the declared channel that brings it; its hits are recorded, not refused.
        parents: the items that it is derived from.
        via: the transform and its validators, as `promote:envelope,size`.
        labels: labels of the parents combined; they stay at least as strict.
        integrity: the lowest integrity that a parent brings.
        endorsement: who answers for it.
        before_seal: the text was built before the handle was sealed, so the seal does not concern it.
        after: places of earlier drafts of the same write that it is derived from. This lineage is recorded and
            excuses nothing: the rules judge the draft as one without parents.
        declassification: who answers for labels that are wider than the parents'.
        guarded: this very text passed a guard of the policy on its way from the parents into a protected type.
    """

    channel: str | None = None
    parents: tuple[str, ...] = ()
    via: str | None = None
    labels: Labels | None = None
    integrity: int | None = None
    endorsement: Endorsement | None = None
    before_seal: bool = False
    after: tuple[int, ...] = ()
    declassification: Declassification | None = None
    guarded: bool = False

    @property
    def covers(self) -> frozenset[str]:
        """The items whose text may enter a protected type: what the endorsement covers, what passed the guard."""
        covered = frozenset[str]() if self.endorsement is None else frozenset(self.endorsement.covers)
        return covered.union(self.parents) if self.guarded else covered


DIRECT = Provenance()


class _Prepared(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """A draft after all checks that need no storage."""

    draft: Draft
    type: type[ContextType]
    text: str
    media_type: str
    source: str
    labels: Labels
    session: str | None
    turn: str | None
    observed_at: datetime | None
    expires_at: datetime | None
    attrs: tuple[tuple[str, str], ...]
    key: bytes
    protected: bool
    provenance: Provenance
    text_origins: tuple[str, ...]


class _Staged:
    """Drafts of one write in their order: the earlier ones are origins for the later ones."""

    def __init__(self) -> None:
        self.texts: list[StagedText] = []
        self._rows: dict[bytes, list[OriginRow]] = {}

    def add(self, made: _Prepared, place: int, *, untrusted: bool) -> None:
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


class Ledger:
    """Decides and writes; reads what a reach may see. One per process and backend; safe for threads."""

    def __init__(
        self,
        backend: Backend,
        policy: PolicySet,
        types: Mapping[str, type[ContextType]],
        clock: Clock,
        ids: IdFactory,
    ) -> None:
        self._backend = backend
        self._policy = policy
        self._types = dict(types)
        self._clock = clock
        self._ids = ids
        self._origins = OriginIndex(policy, backend)
        self._invalidations = Invalidations(backend)
        self._labels: dict[Labels, Labels] = {}
        self._verified: dict[str, ContextItem[Any]] = {}

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
        broken: list[tuple[_Prepared | Draft, Reason]] = []
        prepared: list[_Prepared] = []
        try:
            for draft, provenance in drafts:
                made, reasons = self._prepare(draft, provenance, reach)
                broken += [(made, reason) for reason in reasons]
                prepared.append(made)
            exclusive = any(made.protected for made in prepared)
            if self._backend.shared and reach.tenant is None and not all(made.protected for made in prepared):
                raise ScopeError(
                    "a shared backend has no default tenant: only the deployment's own instructions go without one "
                    "(use store.scope(tenant=…))",
                    reason="no_tenant",
                )
            with self._backend.write(reach.tenant, exclusive=exclusive) as tx:
                broken += self._judge(prepared, reach, tx, is_sealed)
                refused = [reason for _, reason in broken if reason.mode == "enforce"]
                if refused:
                    raise _error(refused[0])
                if expected is not None:
                    _expect(tx, reach.session, expected)
                return self._insert(prepared, reach, tx, broken)
        except RungError:
            self._record_refusals(broken, reach)
            raise

    def _prepare(self, draft: Draft, provenance: Provenance, reach: Reach) -> tuple[_Prepared, list[Reason]]:
        if not isinstance(draft.parts, tuple):
            draft = msgspec.structs.replace(draft, parts=tuple(draft.parts))
        declared = self._type(draft.type)
        rules = self._policy.types[declared.name]
        reasons: list[Reason] = []
        source = name(draft.source, "source")
        text, media_type, origins, replaced = self._text(draft, rules.text == "replace")
        limit = self._policy.limits.item_bytes
        size = len(text) if text.isascii() else len(text.encode("utf-8"))
        if size > limit:
            raise InputError(
                f"`content` from `{source}` is {size} bytes, above the limit of {limit} "
                "(project it down, stream it, or raise limits.item_bytes)",
                field="content",
            )
        protected = rules.protected
        carried = next((one for one in origins if one.item_id not in provenance.covers), None)
        if protected and carried is not None and provenance.channel is None:
            reasons.append(
                self._reason(
                    "labels",
                    "labelled_text",
                    f"{carried.type} cannot be inserted into {declared.name} context "
                    f"(the text carries labels of item `{carried.item_id}` from `{carried.source}`)",
                    item_id=carried.item_id,
                )
            )
        word = provenance.endorsement
        if protected and word is not None and word.digest and word.digest != text_digest(text):
            raise InputError("the endorsement is bound to another text (endorse this one)", field="endorsement")
        attrs = _attrs(draft.attrs)
        if replaced:
            attrs = tuple(sorted((*attrs, ("replaced", str(replaced)))))
        return (
            _Prepared(
                draft=draft,
                type=declared,
                text=text,
                media_type=media_type,
                source=source,
                labels=self._labels_of(draft, source, provenance, reach),
                session=_narrow("session", draft.session, reach.session),
                turn=None if draft.turn is None else name(draft.turn, "turn"),
                observed_at=None if draft.observed_at is None else aware_utc(draft.observed_at, "observed_at"),
                expires_at=None if draft.expires_at is None else aware_utc(draft.expires_at, "expires_at"),
                attrs=attrs,
                key=content_key(text),
                protected=protected,
                provenance=provenance,
                text_origins=tuple(origin.item_id for origin in origins),
            ),
            reasons,
        )

    def _type(self, declared: object) -> type[ContextType]:
        if not (isinstance(declared, type) and issubclass(declared, ContextType)):
            raise InputError(
                f"`type` is of kind {kind(declared)}, not a context type (give a class such as `Evidence`)",  # pyright: ignore[reportUnknownArgumentType]
                field="type",
            )
        known = self._types.get(declared.name)
        if known is None or declared.name not in self._policy.types:
            raise InputError(
                f"the type `{declared.name}` is unknown (one of {names(sorted(self._types), 20)}; declare "
                f"`[types.{declared.name}]` in the policy and give the class to the store)",
                field="type",
            )
        if known is not declared:
            raise InputError(
                f"the type `{declared.name}` belongs to another class, `{known.__module__}.{known.__qualname__}` "
                "(use that class, or another name)",
                field="type",
            )
        return declared

    def _text(self, draft: Draft, replace: bool) -> tuple[str, str, tuple[Any, ...], int]:
        content = draft.content
        if isinstance(content, LabelledText):
            text, replaced = canonical_text(content.reveal("taken in by a store"), replace=replace)
            return text, "text/plain", tuple(content.origins), replaced
        if isinstance(content, str):
            text, replaced = canonical_text(content, replace=replace)
            return text, "text/plain", (), replaced
        if isinstance(content, ContextItem):
            raise ContextTypeError(
                f"item `{content.id}` is an item already (use store.promote or store.transform to change its type)",  # pyright: ignore[reportUnknownMemberType]
                item_id=content.id,  # pyright: ignore[reportUnknownMemberType]
            )
        if isinstance(content, bytes | bytearray):
            raise InputError("`content` is of kind bytes, not text (decode it, saying the encoding)", field="content")
        if content is None and not draft.parts:
            raise InputError("`content` is None (give text, a JSON value, or parts)", field="content")
        if content is None:
            return "", "text/plain", (), 0
        text, replaced = canonical_text(canonical_json(content), replace=replace)
        return text, "application/json", (), replaced

    def _labels_of(self, draft: Draft, source: str, provenance: Provenance, reach: Reach) -> Labels:
        if provenance.declassification is not None:
            return self._interned(provenance.declassification.labels)
        rules = self._policy.source(source)
        base = provenance.labels
        sensitivity = draft.sensitivity
        if sensitivity is None:
            sensitivity = rules.sensitivity
        if sensitivity is None:
            sensitivity = Sensitivity.INTERNAL if base is None else base.sensitivity
        elif not isinstance(sensitivity, Sensitivity):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(
                f"`sensitivity` is of kind {kind(sensitivity)} (give a member of Sensitivity)",
                field="sensitivity",
            )
        if isinstance(draft.scopes, str):
            raise InputError("`scopes` is one string (give a set of strings)", field="scopes")
        scopes = frozenset(name(scope, "scopes") for scope in draft.scopes) | rules.scopes
        subject = _narrow("subject", draft.subject, reach.subject)
        tenant = reach.tenant
        if base is not None:
            sensitivity = max(sensitivity, base.sensitivity)
            scopes |= base.scopes
            subject = _meet("subject", subject, base.subject)
            tenant = _meet("tenant", tenant, base.tenant)
        return self._interned(Labels(tenant=tenant, subject=subject, sensitivity=sensitivity, scopes=scopes))

    def _interned(self, labels: Labels) -> Labels:
        if len(self._labels) > 10_000:
            self._labels.clear()
        return self._labels.setdefault(labels, labels)

    def _judge(
        self, prepared: Sequence[_Prepared], reach: Reach, tx: Transaction, is_sealed: bool
    ) -> list[tuple[_Prepared | Draft, Reason]]:
        tenants = self._origin_tenants(reach, any(made.protected for made in prepared))
        asked = [made for made in prepared if made.key and self._asks_origin(made)]
        known: Mapping[bytes, tuple[OriginRow, ...]] = {}
        if asked:
            known = tx.origins([made.key for made in asked], tenants)
        broken: list[tuple[_Prepared | Draft, Reason]] = []
        staged = _Staged()
        for place, made in enumerate(prepared):
            rows = (*known.get(made.key, ()), *staged.rows(made.key))
            if len(prepared) > 1:
                staged.add(made, place, untrusted=not self._policy.trusted(made.type.name))
            if made.protected:
                found = self._judge_protected(made, rows, tx, tenants, is_sealed, staged.texts[:place])
                broken += [(made, reason) for reason in found]
            elif made.key and self._asks_origin(made):
                reason = self._judge_registration(made, rows)
                if reason is not None:
                    broken.append((made, reason))
        return broken

    def _origin_tenants(self, reach: Reach, protected: bool) -> Tenants:
        # What the deployment registers is seen by every tenant, so it is compared with what any of them brought in.
        if protected and reach.tenant is None:
            return tuple(dict.fromkeys((None, *self._backend.tenants())))
        return reach.tenants

    def _asks_origin(self, made: _Prepared) -> bool:
        if made.protected:
            return True
        return (
            made.type.name != "user"
            and self._policy.integrity(made.type.name) > 20
            and not made.provenance.parents
            and made.type.name not in self._policy.source(made.source).produces
            and len(folded(made.text)) >= self._policy.limits.short_text
        )

    def _judge_registration(self, made: _Prepared, rows: Sequence[OriginRow]) -> Reason | None:
        if not rows:
            return None
        first = min(rows, key=lambda row: row.ordinal)
        if self._policy.integrity(first.type) >= self._policy.integrity(made.type.name):
            return None
        return self._reason(
            "produces",
            "not_a_producer",
            f"{first.type} cannot be registered as {made.type.name} by `{made.source}` (content first registered as "
            f"{first.type}, id={first.item_id}; use store.promote, or list `{made.type.name}` in "
            f"sources.{made.source}.produces)",
            item_id=first.item_id,
        )

    def _judge_protected(
        self,
        made: _Prepared,
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
        if provenance.channel is None and provenance.endorsement is None and not provenance.guarded:
            if is_sealed and not provenance.before_seal and not tx.identities([self._identity(made)]):
                reasons.append(
                    self._reason(
                        "seal",
                        "sealed",
                        f"the store is sealed and this text is no registered {target} (register it before the seal, "
                        "load it through an InstructionSource, or fill a Template)",
                    )
                )
            tool = self._tool_source(made.source, tenants)
            if tool is not None:
                reasons.append(
                    self._reason(
                        "channel",
                        "tool_source",
                        f"`{made.source}` is a tool's name and cannot bring in {target} (its results are ToolOutput"
                        f"{tool}; give instructions a source of the deployment)",
                    )
                )
        earlier = tx.identities([self._identity(made)])
        if earlier:
            # The same registration again: it is the first one that stays, whatever came in since.
            return reasons
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
            hits = self._origins.hits(made.text, target, tx, tenants, staged, known)
        hits = [hit for hit in hits if hit.item_id not in provenance.covers]
        if hits:
            reasons.append(self._laundering(made, hits))
        return reasons

    def _whole_hits(self, made: _Prepared, rows: Sequence[OriginRow]) -> list[Hit]:
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

    def _laundering(self, made: _Prepared, hits: Sequence[Hit]) -> Reason:
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
        reason = self._reason(
            "origin" if first.kind == "whole" else "laundering",
            f"shared_{first.kind}",
            message,
            item_id=first.item_id,
        )
        mode = "observe" if made.provenance.channel is not None else reason.mode
        return msgspec.structs.replace(reason, hits=tuple(hits), mode=mode)

    def _tool_source(self, source: str, tenants: Tenants) -> str | None:
        if source.casefold().lstrip().startswith(("tool:", "mcp:")):
            return ""
        found = next(iter(self._backend.items(tenants, types=frozenset({"tool_output"}), source=source, limit=1)), None)
        return None if found is None else f", id={found.id}"

    def _reason(self, rule: str, code: str, message: str, **fields: Any) -> Reason:
        return Reason(rule=rule, code=code, message=message, mode=self._policy.mode(rule), fields=fields)

    def _identity(self, made: _Prepared) -> bytes:
        labels = made.labels
        audience = (labels.tenant, labels.subject, int(labels.sensitivity), tuple(sorted(labels.scopes)))
        text = sha256(made.text.encode("utf-8")).digest()
        return identity(
            "item", made.type.name, made.source, text, made.draft.key, made.draft.version, made.observed_at,
            msgspec.msgpack.encode((audience, made.session, made.attrs, made.draft.parts, made.provenance.parents)),
        )  # fmt: skip

    def _keeps_identity(self, made: _Prepared) -> bool:
        if made.protected:
            return True
        # What a source says again of the same thing, as of the same version or moment, is the item that it said first.
        # A tool's result is an observation of its own, and a conversation may repeat itself.
        draft = made.draft
        named = draft.key is not None or any(name == "id" for name, _ in made.attrs)
        dated = draft.version is not None or made.observed_at is not None
        return named and dated and made.type.name not in ("tool_output", "user", "assistant")

    def _insert(
        self,
        prepared: Sequence[_Prepared],
        reach: Reach,
        tx: Transaction,
        broken: Sequence[tuple[_Prepared | Draft, Reason]],
    ) -> list[ContextItem[Any]]:
        now = self.now()
        numbers = _sequences(prepared, tx)
        rows: list[NewRow] = []
        for made, seq in zip(prepared, numbers, strict=True):
            after = [self._stored_id(rows[place], tx) for place in made.provenance.after]
            rows.append(
                NewRow(
                    item=self._item(made, seq, now, after),
                    content_key=made.key,
                    identity=self._identity(made) if self._keeps_identity(made) else None,
                )
            )
        stored = tx.insert(rows)
        entries = [
            _registered(row.item, now, made.provenance.channel)
            for made, row, given in zip(prepared, rows, stored, strict=True)
            if row.item.id == given
        ]
        entries += [_refused(made, reason, now, reach) for made, reason in broken]
        entries += [
            LogEntry(
                tenant=reach.tenant,
                at=now,
                kind="endorsement",
                body=canonical_json({"item": given, **msgspec.to_builtins(made.provenance.endorsement)}),
            )
            for made, given in zip(prepared, stored, strict=True)
            if made.provenance.endorsement is not None
        ]
        entries += [
            LogEntry(
                tenant=reach.tenant,
                at=now,
                kind="declassification",
                body=canonical_json(
                    {
                        "item": given,
                        "from": list(made.provenance.parents),
                        **msgspec.to_builtins(declassification, order="deterministic"),
                    }
                ),
            )
            for made, given in zip(prepared, stored, strict=True)
            if (declassification := made.provenance.declassification) is not None
        ]
        tx.log(entries)
        for _, reason in broken:
            _tell(reason)
        first = {row.item.id: row.item for row in rows}
        others = [given for given in stored if given not in first]
        found = self._backend.get(others, reach.tenants) if others else {}
        return [handed_out(first.get(given) or found[given]) for given in stored]

    @staticmethod
    def _stored_id(row: NewRow, tx: Transaction) -> str:
        if row.identity is None:
            return row.item.id
        return tx.identities([row.identity]).get(row.identity, row.item.id)

    def _item(self, made: _Prepared, seq: int, now: datetime, after: Sequence[str]) -> ContextItem[Any]:
        draft, provenance = made.draft, made.provenance
        parents = tuple(dict.fromkeys((*provenance.parents, *after, *made.text_origins)))
        integrity = self._policy.integrity(made.type.name)
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
        return sealed(
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

    def record_refusal(self, reason: Reason, reach: Reach, *, target: str, source: str, text: str = "") -> None:
        """Keep a refusal that another layer decided (a transform's, a turn's)."""
        now = self.now()
        entry = _refusal_entry(reason, now, reach, target, source, text)
        with self._backend.write(reach.tenant) as tx:
            tx.log([entry])

    def _record_refusals(self, broken: Sequence[tuple[_Prepared | Draft, Reason]], reach: Reach) -> None:
        if not broken:
            return
        now = self.now()
        entries = [_refused(made, reason, now, reach) for made, reason in broken]
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
        if self._verified.get(item_id) is not item:
            if item.digest != item.computed_digest():
                raise ForeignItemError(
                    f"item `{item_id}` was altered in the storage: its digest does not match (restore it from a copy)",
                    item_id=item_id,
                )
            if len(self._verified) >= 200_000:
                self._verified.clear()
            self._verified[item_id] = item
        return item

    def session_after(self, reach: Reach, seq: int) -> list[ContextItem[Any]]:
        """The items of the handle's session after a sequence number, in order, each verified once."""
        if reach.session is None:
            return []
        found = self._backend.session_items(reach.session, reach.tenants, after=seq)
        return [self._readable(item.id, item, reach) for item in found if within(item, reach)]

    def issued(self, items: Iterable[ContextItem[Any]], reach: Reach) -> list[ContextItem[Any]]:
        """The stored originals of items that were handed in; what is used afterwards is the store's own copy.

        Raises:
            ForeignItemError: forged, from another store, or altered since it was handed out.
        """
        given = list(items)
        for item in given:
            if not isinstance(item, ContextItem):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise InputError(
                    f"`{kind(item)}` is no item (add it to the store first: store.add(type, content, source=…))",
                    field="items",
                )
        found = self._backend.get([item.id for item in given], reach.tenants)
        verified = self._verified
        out: list[ContextItem[Any]] = []
        permitted: Labels | None = None
        for item in given:
            stored = found.get(item.id)
            # Labels are shared between items, so most need no second look.
            if stored is None or (stored.labels is not permitted and not within(stored, reach)):
                raise ForeignItemError(
                    f"item `{item.id}` was not issued by this store in this scope (add its content here first)",
                    item_id=item.id,
                )
            permitted = stored.labels
            if stored != item:
                raise ForeignItemError(
                    f"item `{item.id}` was altered since the store issued it (take it again with store.get)",
                    item_id=item.id,
                )
            out.append(stored if verified.get(item.id) is stored else self._readable(item.id, stored, reach))
        return out

    def revoked(self, ids: Sequence[str], reach: Reach) -> dict[str, str]:
        """Which of these are revoked, and why."""
        return self._backend.revoked(ids, reach.tenants)

    def invalidated(self, items: Sequence[ContextItem[Any]], reach: Reach) -> dict[str, str]:
        """Which of these an event has invalidated since they were seen, and the event's reason."""
        return self._invalidations.among(items, reach.tenants)

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


def handed_out(item: ContextItem[Any]) -> ContextItem[Any]:
    """A copy to give away: whatever is done to it, the stored item and its labels stay as they are."""
    labels = msgspec.structs.replace(item.labels)
    parts = tuple(msgspec.structs.replace(part) for part in item.parts)
    return msgspec.structs.replace(item, labels=labels, parts=parts)


def within(item: ContextItem[Any], reach: Reach) -> bool:
    """Whether a handle may read an item: its own tenant's or the deployment's, its own subject's or nobody's."""
    if item.labels.tenant is not None and item.labels.tenant != reach.tenant:
        return False
    return item.labels.subject is None or reach.subject is None or item.labels.subject == reach.subject


def name(value: object, field: str) -> str:
    """A name at the boundary: non-empty text of at most 512 characters without control characters.

    Raises:
        InputError: anything else; `field` names it.
    """
    text, _ = canonical_text(value, field)
    if not text.strip() or len(text) > _LONGEST_NAME or not text.isprintable():
        raise InputError(
            f"`{field}` is empty, longer than {_LONGEST_NAME} characters, or holds control characters "
            "(give a short printable name)",
            field=field,
        )
    return text


def _narrow(field: str, given: str | None, reach: str | None) -> str | None:
    if given is None:
        return reach
    given = name(given, field)
    if reach is not None and given != reach:
        raise ScopeError(
            f"`{field}` may narrow what the handle has, not widen it (take another handle with store.scope)",
            reason=f"other_{field}",
        )
    return given


def _meet(field: str, one: str | None, other: str | None) -> str | None:
    if one is None or other is None or one == other:
        return one if one is not None else other
    raise ScopeError(f"items of two {field}s cannot be combined (derive them apart)", reason=f"two_{field}s")


def _attrs(given: Mapping[str, str] | tuple[tuple[str, str], ...] | None) -> tuple[tuple[str, str], ...]:
    pairs = given.items() if isinstance(given, Mapping) else given or ()
    out: dict[str, str] = {}
    for key, value in pairs:
        out[name(key, "attrs")] = canonical_text(value, f"attrs.{key}", replace=True)[0]
    return tuple(sorted(out.items()))


def _expect(tx: Transaction, session: str | None, expected: int) -> None:
    actual = tx.next_seq(session, 0) - 1
    if actual != expected:
        raise ConflictError(
            f"the session is at {actual}, not at {expected}: another turn came first (read it again and retry)",
            expected=expected,
            actual=actual,
        )


def _sequences(prepared: Sequence[_Prepared], tx: Transaction) -> list[int]:
    counts: dict[str | None, int] = {}
    for made in prepared:
        counts[made.session] = counts.get(made.session, 0) + 1
    following = {session: tx.next_seq(session, count) for session, count in counts.items()}
    numbers: list[int] = []
    for made in prepared:
        numbers.append(following[made.session])
        following[made.session] += 1
    return numbers


def _registered(item: ContextItem[Any], now: datetime, channel: str | None) -> LogEntry:
    facts: dict[str, object] = {
        "item": item.id,
        "type": item.type.name,
        "source": item.source,
        "digest": item.digest.hex(),
    }
    if item.derived_from:
        facts |= {"from": list(item.derived_from), "via": item.via}
    if channel is not None:
        facts["channel"] = channel
    return LogEntry(
        tenant=item.labels.tenant,
        at=now,
        kind="transform" if item.via else "registration",
        body=canonical_json(facts),
    )


def _refused(made: _Prepared | Draft, reason: Reason, now: datetime, reach: Reach) -> LogEntry:
    text = made.text if isinstance(made, _Prepared) else ""
    return _refusal_entry(reason, now, reach, made.type.name, made.source, text)


def _refusal_entry(reason: Reason, now: datetime, reach: Reach, target: str, source: str, text: str) -> LogEntry:
    return LogEntry(
        tenant=reach.tenant,
        at=now,
        kind="refusal",
        body=canonical_json(
            {
                "rule": reason.rule,
                "code": reason.code,
                "mode": reason.mode,
                "target": target,
                "source": source,
                "message": reason.message,
                "digest": text_digest(text),
                "hits": [msgspec.to_builtins(hit) for hit in reason.hits],
            }
        ),
    )


def _error(reason: Reason) -> RungError:
    if reason.hits:
        return LaunderingError(reason.message, hits=reason.hits, rule=reason.rule, code=reason.code, **reason.fields)
    return ContextTypeError(reason.message, rule=reason.rule, code=reason.code, **reason.fields)


def _tell(reason: Reason) -> None:
    if reason.mode == "warn":
        warnings.warn(f"{reason.message} [rule `{reason.rule}` warns]", ContextTypeWarning, stacklevel=_depth())
    elif reason.mode == "observe":
        _log.info("would refuse: %s", reason.message)


def _depth() -> int:
    """How far above the caller the application's own line is, as `warnings` counts."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rung":
        frame, depth = frame.f_back, depth + 1
    return depth


class ContextTypeWarning(UserWarning):
    """A rule in mode `warn` would have refused this."""
