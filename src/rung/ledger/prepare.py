"""A draft made ready: every check that needs no storage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

import msgspec

from rung.errors import (
    ContextTypeError,
    InputError,
    kind,
    names,
)
from rung.ledger.content import content_key, identity, text_digest
from rung.ledger.detection import LABELS, Detector, Find, detect, redacted, told
from rung.ledger.reach import Provenance, Reach, meet, name, narrow, sorted_attrs
from rung.policy.decision import Reason
from rung.policy.rules import PolicySet, SourcePolicy
from rung.records.canonical import canonical_json, canonical_text
from rung.records.clock import aware_utc
from rung.records.draft import Draft
from rung.records.item import ContextItem, Media, Opaque, Part, Slot, ToolCall
from rung.records.labels import Labels, Sensitivity
from rung.records.text import LabelledText, Origin
from rung.records.types import ContextType


class Prepared(msgspec.Struct, frozen=True, kw_only=True, gc=False):
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
    integrity: int
    provenance: Provenance
    text_origins: tuple[str, ...]


class Preparer:
    """Checks drafts and works out their text, labels and keys."""

    def __init__(self, policy: PolicySet, types: Mapping[str, type[ContextType]], detector: Detector = detect) -> None:
        self._policy = policy
        self._detector = detector
        self._types = dict(types)
        self._rules = {
            declared: policy.types[declared.name] for declared in types.values() if declared.name in policy.types
        }
        self._labels: dict[Labels, Labels] = {}

    def prepare(self, draft: Draft, provenance: Provenance, reach: Reach) -> tuple[Prepared, list[Reason]]:
        if not isinstance(draft.parts, tuple):
            draft = msgspec.structs.replace(draft, parts=tuple(draft.parts))
        if draft.parts:
            _require_parts(draft.parts)
        declared = draft.type
        rules = self._rules.get(declared) if isinstance(declared, type) else None  # pyright: ignore[reportUnnecessaryIsInstance]
        if rules is None:
            raise self._unknown(declared)
        reasons: list[Reason] = []
        source = name(draft.source, "source")
        allowed = self._policy.source(source)
        text, media_type, origins, replaced = self._text(draft, rules.text == "replace")
        limit = self._policy.limits.item_bytes
        size = len(text) if text.isascii() else len(text.encode("utf-8"))
        if size > limit:
            raise InputError(
                f"`content` from `{source}` is {size} bytes, above the limit of {limit} "
                "(project it down, stream it, or raise limits.item_bytes)",
                field="content",
            )
        found: Sequence[Find] = ()
        if allowed.detect != "off" and text:
            text, media_type, found = self._detected(text, media_type, source, declared.name, allowed.detect, reasons)
        if rules.protected:
            reasons += self._protected(text, origins, declared.name, provenance)
        attrs = sorted_attrs(draft.attrs)
        if found:
            attrs = tuple(sorted((*attrs, ("detected", told(found)))))
        if replaced:
            attrs = tuple(sorted((*attrs, ("replaced", str(replaced)))))
        return (
            Prepared(
                draft=draft,
                type=declared,
                text=text,
                media_type=media_type,
                source=source,
                labels=self._labels_of(draft, allowed, provenance, reach, found),
                session=narrow("session", draft.session, reach.session),
                turn=None if draft.turn is None else name(draft.turn, "turn"),
                observed_at=None if draft.observed_at is None else aware_utc(draft.observed_at, "observed_at"),
                expires_at=None if draft.expires_at is None else aware_utc(draft.expires_at, "expires_at"),
                attrs=attrs,
                key=content_key(text),
                protected=rules.protected,
                integrity=rules.integrity,
                provenance=provenance,
                text_origins=tuple([origin.item_id for origin in origins]) if origins else (),
            ),
            reasons,
        )

    def _protected(self, text: str, origins: Iterable[Origin], kind: str, provenance: Provenance) -> list[Reason]:
        """What speaks against a protected text before anything stored is looked at."""
        word = provenance.endorsement
        if word is not None and word.digest and word.digest != text_digest(text):
            raise InputError("the endorsement is bound to another text (endorse this one)", field="endorsement")
        if provenance.channel is not None:
            return []
        carried = next((one for one in origins if one.item_id not in provenance.covers), None)
        if carried is None:
            return []
        message = (
            f"{carried.type} cannot be inserted into {kind} context "
            f"(the text carries labels of item `{carried.item_id}` from `{carried.source}`)"
        )
        return [reason_of(self._policy, "labels", "labelled_text", message, item_id=carried.item_id)]

    def _detected(
        self, text: str, media_type: str, source: str, kind: str, wanted: str, reasons: list[Reason]
    ) -> tuple[str, str, Sequence[Find]]:
        """The text as it is kept, and the secrets and personal data that were found in it."""
        found = self._detector(text)
        if not found:
            return text, media_type, ()
        if wanted == "refuse":
            message = (
                f"{kind} from `{source}` holds {told(found)} and its source's policy refuses that "
                f'(take it out before, or set sources.{source}.detect to "redact" or "label")'
            )
            reasons.append(reason_of(self._policy, "detection", "detected", message))
        if wanted == "redact":
            text = redacted(text, found)
            if media_type == "application/json" and not _is_json(text):
                media_type = "text/plain"
        return text, media_type, found

    def _unknown(self, declared: object) -> InputError:
        """What is wrong with a type that no rules are known for."""
        if not (isinstance(declared, type) and issubclass(declared, ContextType)):
            return InputError(
                f"`type` is of kind {kind(declared)}, not a context type (give a class such as `Evidence`)",  # pyright: ignore[reportUnknownArgumentType]
                field="type",
            )
        known = self._types.get(declared.name)
        if known is None or declared.name not in self._policy.types:
            return InputError(
                f"the type `{declared.name}` is unknown (one of {names(sorted(self._types), 20)}; declare "
                f"`[types.{declared.name}]` in the policy and give the class to the store)",
                field="type",
            )
        return InputError(
            f"the type `{declared.name}` belongs to another class, `{known.__module__}.{known.__qualname__}` "
            "(use that class, or another name)",
            field="type",
        )

    def _text(self, draft: Draft, replace: bool) -> tuple[str, str, tuple[Origin, ...], int]:
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

    def _labels_of(
        self, draft: Draft, rules: SourcePolicy, provenance: Provenance, reach: Reach, found: Sequence[Find]
    ) -> Labels:
        if provenance.declassification is not None:
            return self._interned(provenance.declassification.labels)
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
        if found and rules.detect == "label":
            sensitivity = max(sensitivity, *(LABELS[find.family] for find in found))
        scopes = rules.scopes
        if draft.scopes:
            scopes |= frozenset([name(scope, "scopes") for scope in draft.scopes])
        subject = narrow("subject", draft.subject, reach.subject)
        tenant = reach.tenant
        if base is not None:
            sensitivity = max(sensitivity, base.sensitivity)
            scopes |= base.scopes
            subject = meet("subject", subject, base.subject)
            tenant = meet("tenant", tenant, base.tenant)
        return self._interned(Labels(tenant=tenant, subject=subject, sensitivity=sensitivity, scopes=scopes))

    def _interned(self, labels: Labels) -> Labels:
        if len(self._labels) > 10_000:
            self._labels.clear()
        return self._labels.setdefault(labels, labels)


_PARTS = (ToolCall, Media, Opaque, Slot)
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[Part, ...]).decode


def _require_parts(parts: Iterable[object]) -> None:
    """InputError unless these are parts whose fields are of their kinds: what was written must be readable."""
    for part in parts:
        if type(part) not in _PARTS:
            raise InputError(
                f"`parts` holds a value of kind {kind(part)} (give {names(cls.__name__ for cls in _PARTS)})",
                field="parts",
            )
    try:
        _decode(_encode(parts))
    except (msgspec.MsgspecError, TypeError, ValueError, OverflowError) as problem:
        raise InputError(
            f"`parts` holds a field of the wrong kind: {problem} (a call's arguments are JSON text)", field="parts"
        ) from None


def _is_json(text: str) -> bool:
    try:
        msgspec.json.decode(text)
    except msgspec.DecodeError:
        return False
    return True


def reason_of(policy: PolicySet, rule: str, code: str, message: str, **fields: Any) -> Reason:
    """Why a rule is broken, in the mode that the policy gives the rule."""
    return Reason(rule=rule, code=code, message=message, mode=policy.mode(rule), fields=fields)


def registration(made: Prepared) -> bytes:
    labels = made.labels
    audience = (labels.tenant, labels.subject, int(labels.sensitivity), tuple(sorted(labels.scopes)))
    text = sha256(made.text.encode("utf-8")).digest()
    return identity(
        "item", made.type.name, made.source, text, made.draft.key, made.draft.version, made.observed_at,
        msgspec.msgpack.encode((audience, made.session, made.attrs, made.draft.parts, made.provenance.parents)),
    )  # fmt: skip


def keeps_registration(made: Prepared) -> bool:
    if made.protected:
        return True
    if made.type.name in ("tool_output", "user", "assistant"):
        return False
    # What a source says again of the same thing, as of the same version or moment, is the item that it said first.
    # A tool's result is an observation of its own, and a conversation may repeat itself.
    draft = made.draft
    named = draft.key is not None or any(name == "id" for name, _ in made.attrs)
    dated = draft.version is not None or made.observed_at is not None
    return named and dated
