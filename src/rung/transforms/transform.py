"""`transform`: a new item of another type, derived from one or more, through the policy's validators."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from rung.errors import ContextTypeError, InputError, RungError, TransformError
from rung.ledger.channels import Endorsement
from rung.ledger.content import text_digest
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Provenance, Reach, handed_out
from rung.policy.decision import Reason
from rung.policy.rules import Transition
from rung.records.canonical import canonical_json
from rung.records.draft import Draft
from rung.records.item import ContextItem, body
from rung.records.labels import combine
from rung.records.text import LabelledText
from rung.records.types import ContextType
from rung.transforms.validators import Check, Failure, Validator, excerpt, run


class Derivation(msgspec.Struct, frozen=True, kw_only=True):
    """What a transform makes, beside its type.

    Attributes:
        content: the new text or JSON value; None: the parent's own, where there is one parent.
        source: who says so; None: the first parent's source.
        key, version, attrs: None: the first parent's.
        observed_at: None: the oldest of the parents'.
        expires_at: None: the earliest of the parents'.
    """

    content: Any = None
    source: str | None = None
    key: str | None = None
    version: str | None = None
    attrs: Mapping[str, str] | None = None
    observed_at: datetime | None = None
    expires_at: datetime | None = None
    session: str | None = None
    subject: str | None = None


_SAME = Derivation()


def transform(
    ledger: Ledger,
    items: Sequence[ContextItem[Any]],
    to: type[ContextType],
    reach: Reach,
    validators: Mapping[str, Validator],
    *,
    derivation: Derivation = _SAME,
    endorsement: Endorsement | None = None,
    is_sealed: bool = False,
) -> ContextItem[Any]:
    """A new item of type `to` derived from `items`; the items stay as they are.

    Raises:
        ContextTypeError: the policy lists no transition from one of their types.
        TransformError: a validator refused; `failures` says which and why.
        ScopeError: the items belong to two tenants or subjects.
    """
    if not items:
        raise InputError("a transform needs at least one item (give it the items to derive from)", field="items")
    parents = ledger.issued(items, reach)
    draft, provenance = prepare(ledger, parents, to, reach, validators, derivation=derivation, endorsement=endorsement)
    return ledger.write([(draft, provenance)], reach, is_sealed=is_sealed)[0]


def prepare(
    ledger: Ledger,
    parents: Sequence[ContextItem[Any]],
    to: type[ContextType],
    reach: Reach,
    validators: Mapping[str, Validator],
    *,
    derivation: Derivation,
    endorsement: Endorsement | None = None,
) -> tuple[Draft, Provenance]:
    """What `transform` would write, after its decisions; the parents are the store's own copies."""
    revoked = ledger.revoked([parent.id for parent in parents], reach)
    for parent in parents:
        if parent.id in revoked:
            raise ContextTypeError(
                f"item `{parent.id}` is revoked and nothing can be derived from it ({revoked[parent.id]})",
                item_id=parent.id,
            )
    first = parents[0]
    content = derivation.content
    media_json = content is None and first.media_type == "application/json"
    if content is None:
        if len(parents) > 1:
            raise InputError(
                f"a transform of {len(parents)} items needs the new content (pass content=…)", field="content"
            )
        content = msgspec.json.decode(body(first)) if media_json else body(first)
    elif isinstance(content, ContextItem):
        raise InputError("`content` of a transform is text or a JSON value, not an item", field="content")
    steps: list[str] = []
    integrity = ledger.policy.integrity(to.name)
    protected = ledger.policy.protected(to.name)
    for parent in parents:
        if parent.type is to:
            integrity = min(integrity, parent.integrity)
            continue
        step = _step(ledger, parent, to, reach)
        if step is not None:
            # What enters a protected type is what its guard has seen, not what it was made from.
            judged = _with(parent, content) if protected else handed_out(parent)
            _validate(ledger, judged, to, reach, validators, step, endorsement)
            steps += step.validators
    labels = combine(parent.labels for parent in parents)
    if endorsement is not None and not endorsement.digest:
        endorsement = msgspec.structs.replace(
            endorsement, digest=text_digest(_said(content)), at=ledger.now().isoformat()
        )
    seen = [parent.seen_at for parent in parents]
    expiries = [parent.expires_at for parent in parents if parent.expires_at is not None]
    draft = Draft(
        type=to,
        content=content,
        source=derivation.source if derivation.source is not None else first.source,
        key=derivation.key if derivation.key is not None else first.key,
        version=derivation.version if derivation.version is not None else first.version,
        attrs=derivation.attrs if derivation.attrs is not None else first.attrs,
        observed_at=derivation.observed_at if derivation.observed_at is not None else min(seen),
        expires_at=derivation.expires_at
        if derivation.expires_at is not None
        else (min(expiries) if expiries else None),
        session=derivation.session if derivation.session is not None else _shared(parents),
        subject=derivation.subject,
    )
    verb = "promote" if len(parents) == 1 and derivation.content is None else "derive"
    via = f"{verb}:{','.join(dict.fromkeys(steps))}"
    provenance = Provenance(
        parents=tuple(parent.id for parent in parents),
        via=via,
        labels=labels,
        integrity=integrity,
        endorsement=endorsement,
        guarded=bool(steps) and protected,
    )
    return draft, provenance


def _said(content: Any) -> str:
    """The text that a store would take of it."""
    if isinstance(content, LabelledText):
        return content.reveal("judged before it enters a type")
    return content if isinstance(content, str) else canonical_json(content)


def _with(parent: ContextItem[Any], content: Any) -> ContextItem[Any]:
    is_text = isinstance(content, str | LabelledText)
    return msgspec.structs.replace(
        handed_out(parent), _body=_said(content), media_type="text/plain" if is_text else "application/json"
    )


def _shared(parents: Sequence[ContextItem[Any]]) -> str | None:
    sessions = {parent.session for parent in parents}
    return sessions.pop() if len(sessions) == 1 else None


def _step(ledger: Ledger, parent: ContextItem[Any], to: type[ContextType], reach: Reach) -> Transition | None:
    policy = ledger.policy
    if to.name not in policy.types:
        raise InputError(f"the type `{to.name}` is unknown (declare `[types.{to.name}]` in the policy)", field="to")
    step = policy.transition(parent.type.name, to.name)
    if step is not None:
        return step
    origin = _first_untrusted(ledger, parent, reach)
    article = "inserted into" if policy.protected(to.name) else "turned into"
    message = (
        f"{parent.type.name} cannot be {article} {to.name} context (content first registered as {origin.type.name}, "
        f"id={origin.id})"
    )
    reason = Reason(
        rule="transition",
        code="no_transition",
        message=message,
        # Into a protected type there is no observing: a listed transition with a guard is the only way.
        mode="enforce" if policy.protected(to.name) else policy.mode("transition"),
    )
    ledger.record_refusal(reason, reach, target=to.name, source=parent.source, text=body(parent))
    if reason.mode == "enforce":
        raise ContextTypeError(
            message,
            item_id=parent.id,
            origin_id=origin.id,
            item_type=parent.type.name,
            target=to.name,
            rule="transition",
            code="no_transition",
        )
    return None


def _first_untrusted(ledger: Ledger, item: ContextItem[Any], reach: Reach) -> ContextItem[Any]:
    """The item's oldest ancestor below USER, or the item itself."""
    oldest, seen, edge = item, {item.id}, [item]
    while edge:
        ids = [parent for one in edge for parent in one.derived_from if parent not in seen]
        seen.update(ids)
        edge = list(ledger.backend.get(ids, reach.tenants).values()) if ids else []
        for one in edge:
            if not ledger.policy.trusted(one.type.name) and one.created <= oldest.created:
                oldest = one
    return oldest


def _validate(
    ledger: Ledger,
    parent: ContextItem[Any],
    to: type[ContextType],
    reach: Reach,
    validators: Mapping[str, Validator],
    step: Transition,
    endorsement: Endorsement | None,
) -> None:
    failures: list[Failure] = []
    for named in step.validators:
        name, _, argument = named.partition(":")
        check = Check(
            item=parent,
            target=to.name,
            policy=ledger.policy,
            now=ledger.now(),
            argument=argument,
            endorsement=endorsement,
        )
        found = run(name, validators[name], check)
        if found is not None:
            failures.append(found)
    if not failures:
        return
    error = _refused(parent, to, failures)
    mode = ledger.policy.mode("validators")
    if mode == "enforce":
        mode = step.mode
    if ledger.policy.protected(to.name):
        # A guard that only watches is no guard.
        mode = "enforce"
    reason = Reason(rule="validators", code=failures[0].code, message=_without_excerpt(parent, to, failures), mode=mode)
    ledger.record_refusal(reason, reach, target=to.name, source=parent.source, text=body(parent))
    if mode == "enforce":
        raise error


def _readable(type_name: str) -> str:
    return type_name.replace("_", " ")


def _without_excerpt(parent: ContextItem[Any], to: type[ContextType], failures: Sequence[Failure]) -> str:
    told = "; ".join(f"{failure.validator}: {failure.detail}" for failure in failures)
    return (
        f"{_readable(parent.type.name)} from '{parent.source}' failed validation and cannot become "
        f"{_readable(to.name)} ({told})"
    )


def _refused(parent: ContextItem[Any], to: type[ContextType], failures: Sequence[Failure]) -> RungError:
    reported = next((failure for failure in failures if failure.code == "reported_failure"), None)
    message = _without_excerpt(parent, to, failures)
    if reported is not None:
        message = (
            f"{_readable(parent.type.name)} from '{parent.source}' failed validation and cannot become "
            f"{_readable(to.name)}: {excerpt(parent)}"
        )
    return TransformError(message, failures=tuple(failures), item_id=parent.id, target=to.name)
