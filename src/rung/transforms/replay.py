"""What another policy would have decided: the log's registrations and transforms, run again in order.

Nothing is written to the store: a ledger of its own, with the other policy, takes the stored items in again.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal

import msgspec

from rung.errors import RungError
from rung.ledger.backend import Backend, LogEntry
from rung.ledger.channels import Endorsement
from rung.ledger.content import text_digest
from rung.ledger.declassification import Declassification
from rung.ledger.entries import ContextTypeWarning
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Provenance, Reach
from rung.policy.decision import Hit
from rung.policy.rules import PolicySet
from rung.records.clock import IdParts
from rung.records.draft import Draft
from rung.records.item import ContextItem, body
from rung.records.labels import Labels, combine
from rung.records.text import LabelledText, Origin
from rung.records.types import ContextType
from rung.transforms.transform import Derivation, prepare
from rung.transforms.validators import Validator

Outcome = Literal["allowed", "refused"]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded decision that another policy turns round.

    Attributes:
        number, at: the log entry, and when it was written.
        item: the item that was registered; None for a refused attempt.
        target, source: the type and the source that were attempted.
        before, after: what was decided, and what would be.
        rule, code, message: why, as a refusal says it; of an attempt that would be allowed: why it was refused.
    """

    number: int
    at: datetime
    item: str | None
    target: str
    source: str
    before: Outcome
    after: Outcome
    rule: str
    code: str
    message: str


class Unjudged(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded decision that cannot be taken again, and why: `erased`, `text_not_kept` or `wire`."""

    number: int
    why: str


class Replay(msgspec.Struct, frozen=True, kw_only=True):
    """What came of it: how many decisions were taken again, which differ, and which cannot be judged."""

    judged: int
    differences: tuple[Difference, ...]
    unjudged: tuple[Unjudged, ...]


class _Registered(msgspec.Struct, frozen=True):
    item: str
    channel: str | None = None


class _Attempt(msgspec.Struct, frozen=True):
    rule: str
    code: str
    mode: str
    target: str
    source: str
    message: str
    digest: str
    hits: tuple[Hit, ...] = ()


_EXPLAINED = frozenset({"origin", "laundering"})
_PROTECTING = frozenset({"origin", "laundering", "labels", "channel", "seal"})


def replay(
    ledger: Ledger,
    reach: Reach,
    policy: PolicySet,
    *,
    types: Mapping[str, type[ContextType]],
    validators: Mapping[str, Validator],
    scratch: Backend,
) -> Replay:
    """Run the log of a tenant and the deployment again under another policy.

    A text that was refused is not kept, so a refused attempt is judged by what its record says: its rule, its
    type and its hits. A refused change of type is tried again on the item, which is kept.

    Args:
        ledger: whose log and items; nothing is written to it.
        reach: whose tenant.
        policy: the other policy, validated.
        types: the context types by name.
        validators: by the names that the other policy uses.
        scratch: an empty backend, for what is taken in again.
    """
    return _Run(ledger, reach, policy, types, validators, scratch).result()


class _Run:
    def __init__(
        self,
        ledger: Ledger,
        reach: Reach,
        policy: PolicySet,
        types: Mapping[str, type[ContextType]],
        validators: Mapping[str, Validator],
        scratch: Backend,
    ) -> None:
        self._source = ledger
        self._reach = reach
        self._policy = policy
        self._types = types
        self._validators = validators
        self._now = ledger.now()
        self._id = ""
        self._again = Ledger(scratch, policy, types, lambda: self._now, self._same_id)
        self._by_text: dict[tuple[str, str], str] = {}
        self._words: dict[tuple[str, datetime], Endorsement] = {}
        self._widened: dict[str, Declassification] = {}
        self._judged = 0
        self._differences: list[Difference] = []
        self._unjudged: list[Unjudged] = []

    def _same_id(self, _: IdParts) -> str:
        return self._id

    def result(self) -> Replay:
        log = list(self._source.backend.logged(self._reach.tenants))
        for entry in log:
            self._note(entry)
        with warnings.catch_warnings():
            # A rule in mode `warn` lets pass: that is an outcome here, not news.
            warnings.simplefilter("ignore", ContextTypeWarning)
            for entry in log:
                self._now = entry.at
                if entry.kind in ("registration", "transform"):
                    self._take_in(entry)
                elif entry.kind == "refusal":
                    self._attempt(entry)
        return Replay(judged=self._judged, differences=tuple(self._differences), unjudged=tuple(self._unjudged))

    def _note(self, entry: LogEntry) -> None:
        if entry.kind == "endorsement":
            facts: dict[str, Any] = msgspec.json.decode(entry.body)
            word = msgspec.convert(facts, Endorsement)
            # Written with the registration that it belongs to, so at the same moment.
            self._words[facts["item"], entry.at] = word
        elif entry.kind == "declassification":
            facts = msgspec.json.decode(entry.body)
            self._widened[facts["item"]] = msgspec.convert(facts, Declassification)

    def _take_in(self, entry: LogEntry) -> None:
        said = msgspec.json.decode(entry.body, type=_Registered)
        item = self._source.backend.get([said.item], self._reach.tenants).get(said.item)
        if item is None:
            self._unjudged.append(Unjudged(number=entry.number, why="erased"))
            return
        self._judged += 1
        self._id = item.id
        reach = Reach(tenant=item.labels.tenant)
        self._by_text[text_digest(body(item)), item.source] = item.id
        try:
            draft, provenance = self._offered(item, said.channel, self._words.get((item.id, entry.at)), reach)
            self._again.write([(draft, provenance)], reach)
        except RungError as problem:
            self._differ(entry, item.id, item.type.name, item.source, "allowed", *_why(problem))

    def _offered(
        self, item: ContextItem[Any], channel: str | None, word: Endorsement | None, reach: Reach
    ) -> tuple[Draft, Provenance]:
        draft = _draft(item)
        if item.via is None:
            if item.derived_from and channel is None:
                draft = self._labelled(draft, item)
            return draft, Provenance(channel=channel, endorsement=word)
        parents = self._again.get(item.derived_from, reach)
        verb = item.via.partition(":")[0]
        if verb in ("promote", "derive"):
            derivation = Derivation(
                content=draft.content,
                source=item.source,
                key=item.key,
                version=item.version,
                attrs=dict(item.attrs),
                observed_at=item.observed_at,
                expires_at=item.expires_at,
                session=item.session,
                subject=item.labels.subject,
            )
            return prepare(
                self._again, parents, item.type, reach, self._validators, derivation=derivation, endorsement=word
            )
        return draft, Provenance(
            parents=item.derived_from,
            via=item.via,
            labels=combine([Labels(), *(parent.labels for parent in parents)]),
            integrity=min((parent.integrity for parent in parents), default=None) if verb != "fill" else None,
            endorsement=word,
            before_seal=True,
            declassification=self._widened.get(item.id),
        )

    def _labelled(self, draft: Draft, item: ContextItem[Any]) -> Draft:
        """The text with its origin again, where the rule on labels would look at it."""
        parent = next(iter(self._source.backend.get(item.derived_from, self._reach.tenants).values()), None)
        if parent is None or not self._policy.protected(item.type.name):
            return draft
        origin = Origin(parent.id, parent.type.name, parent.source)
        return msgspec.structs.replace(draft, content=LabelledText(body(item), origin))

    def _attempt(self, entry: LogEntry) -> None:
        said = msgspec.json.decode(entry.body, type=_Attempt)
        if said.mode != "enforce":
            return  # It passed, so it is judged as a registration.
        if said.rule == "wire":
            self._unjudged.append(Unjudged(number=entry.number, why="wire"))
            return
        allowed = self._would_pass(said)
        if allowed is None:
            self._unjudged.append(Unjudged(number=entry.number, why="text_not_kept"))
            return
        self._judged += 1
        if allowed:
            self._differ(entry, None, said.target, said.source, "refused", said.rule, said.code, said.message)

    def _would_pass(self, said: _Attempt) -> bool | None:
        if said.rule in ("transition", "validators"):
            return self._would_change(said)
        if self._policy.mode(said.rule) != "enforce":
            return True
        if said.rule in _PROTECTING and not self._policy.protected(said.target):
            return True
        if said.rule in _EXPLAINED:
            return not any(self._stands(hit) for hit in said.hits)
        if said.rule == "produces":
            return said.target in self._policy.source(said.source).produces
        return False if said.rule in _PROTECTING else None

    def _stands(self, hit: Hit) -> bool:
        limits = self._policy.limits
        least = {"run": limits.shared_run, "short": limits.short_text}.get(hit.kind, 0)
        return not self._policy.trusted(hit.type) and hit.length >= least

    def _would_change(self, said: _Attempt) -> bool | None:
        item_id = self._by_text.get((said.digest, said.source))
        to = self._types.get(said.target)
        if item_id is None or to is None:
            return None
        reach = Reach(tenant=self._reach.tenant)
        try:
            parents: Sequence[ContextItem[Any]] = self._again.get([item_id], reach)
            prepare(self._again, parents, to, reach, self._validators, derivation=Derivation())
        except RungError:
            return False
        return True

    def _differ(
        self,
        entry: LogEntry,
        item: str | None,
        target: str,
        source: str,
        before: Outcome,
        rule: str,
        code: str,
        message: str,
    ) -> None:
        self._differences.append(
            Difference(
                number=entry.number,
                at=entry.at,
                item=item,
                target=target,
                source=source,
                before=before,
                after="refused" if before == "allowed" else "allowed",
                rule=rule,
                code=code,
                message=message,
            )
        )


def _draft(item: ContextItem[Any]) -> Draft:
    text = body(item)
    return Draft(
        type=item.type,
        content=msgspec.json.decode(text) if item.media_type == "application/json" else text,
        source=item.source,
        sensitivity=item.labels.sensitivity,
        scopes=item.labels.scopes,
        subject=item.labels.subject,
        session=item.session,
        turn=item.turn,
        observed_at=item.observed_at,
        expires_at=item.expires_at,
        key=item.key,
        version=item.version,
        parts=item.parts,
        call_id=item.call_id,
        attrs=item.attrs,
    )


def _why(problem: RungError) -> tuple[str, str, str]:
    """Rule, code and message of a refusal."""
    fields = problem.fields
    if "rule" in fields:
        return fields["rule"], fields["code"], problem.message
    if fields.get("failures"):
        return "validators", fields["failures"][0].code, _named(problem)
    if type(problem).__name__ == "UnknownItemError":
        return "lineage", "parent_refused", f"its parent `{fields.get('item_id')}` would not be there"
    return "input", type(problem).__name__, problem.message


def _named(problem: RungError) -> str:
    # The message of a failed validation may quote the item; the record of a decision does not.
    told = "; ".join(f"{failure.validator}: {failure.detail}" for failure in problem.fields["failures"])
    return f"item `{problem.fields.get('item_id')}` fails validation ({told})"
