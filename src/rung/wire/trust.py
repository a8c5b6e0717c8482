"""What another issuer's word counts for here: which types, tenants and labels, and what they become."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from fnmatch import fnmatchcase
from typing import Any

import msgspec

from rung.errors import ConfigError, InputError
from rung.ledger.reach import Reach, name
from rung.policy.rules import USER_INTEGRITY, PolicySet
from rung.records.item import Media, Part
from rung.records.labels import Sensitivity
from rung.wire.reasons import refusal, shown
from rung.wire.schema import WireItem

ARRIVES_AS: Mapping[str, str] = {"task_state": "task_state"}
"""What becomes of a type where a policy says nothing; any other type arrives as `tool_output`."""

_NEVER = frozenset({"policy", "instruction", "user"})
_DESCRIPTIVE = frozenset({"author", "category", "language", "page", "section", "title", "url"})
"""Attributes that only describe. Others may steer how an item is treated (`supersedes`), so they arrive renamed."""


class TrustPolicy(msgspec.Struct, frozen=True, kw_only=True):
    """What an issuer may assert in this deployment, and what it becomes on arrival.

    An instruction of another agent is never ours: no type arrives as a protected one, nor as USER. Tool calls,
    answers to calls, slots and providers' own blocks do not arrive at all.

    Attributes:
        issuer: whose word this is about.
        types: the types that it may assert; None: any.
        arrives_as: type → type here; a type that is not listed arrives as TOOL_OUTPUT, TASK_STATE as itself.
        tenants: the tenants in which it may speak; None: any that a receiving handle has.
        subjects: the subjects of which it may speak; None: any.
        scopes: the scopes that it may assert; None: any.
        add_scopes: scopes that everything from it needs here.
        min_sensitivity: what arrives is at least so sensitive, whatever it claims.
        max_sensitivity: what is more sensitive is refused.
        keys: patterns (`order:*`) of the keys that it may state. Other keys are kept as an attribute only, so
            that they settle no conflict.
        media: whether references to images and files arrive; their addresses are its choice.
    """

    issuer: str
    types: frozenset[str] | None = None
    arrives_as: Mapping[str, str] = {}
    tenants: frozenset[str] | None = None
    subjects: frozenset[str] | None = None
    scopes: frozenset[str] | None = None
    add_scopes: frozenset[str] = frozenset()
    min_sensitivity: Sensitivity = Sensitivity.INTERNAL
    max_sensitivity: Sensitivity = Sensitivity.RESTRICTED
    keys: tuple[str, ...] = ()
    media: bool = False

    def __post_init__(self) -> None:
        name(self.issuer, "issuer")
        for field in ("types", "tenants", "subjects", "scopes", "add_scopes", "keys"):
            if isinstance(getattr(self, field), str):
                raise InputError(f"`{field}` is one string (give a set of strings)", field=field)
        for given, target in self.arrives_as.items():
            if target in _NEVER:
                raise ConfigError(
                    f"`{given}` of issuer `{self.issuer}` cannot arrive as `{target}`: what another agent sends does "
                    "not steer here (let it arrive as `task_state`, or register the text as your own instruction)",
                    path=f"arrives_as.{given}",
                )

    def arrival(self, type_name: str) -> str:
        """The name of the type that an asserted type becomes."""
        found = self.arrives_as.get(type_name)
        return found if found is not None else ARRIVES_AS.get(type_name, "tool_output")

    def states(self, key: str) -> bool:
        """Whether it may state this key."""
        return any(fnmatchcase(key, pattern) for pattern in self.keys)


def require_trusted(row: WireItem, trust: TrustPolicy, reach: Reach) -> None:
    """Hold an item's claims against the trust policy and the receiving handle.

    Raises:
        WireError: it asserts what its issuer may not assert here.
    """
    labels = row.labels
    item = f"item `{shown(row.id)}` of issuer `{trust.issuer}`"
    if trust.types is not None and row.type not in trust.types:
        raise refusal("type_not_trusted", f"{item} asserts the type `{row.type}` (allow it in types)")
    if reach.tenant is not None and trust.tenants is not None and reach.tenant not in trust.tenants:
        raise refusal("tenant_not_trusted", f"issuer `{trust.issuer}` may not speak in this tenant (see tenants)")
    if labels.tenant is not None and labels.tenant != reach.tenant:
        raise refusal("other_tenant", f"{item} belongs to another tenant (receive it with that tenant's handle)")
    if labels.subject is not None:
        if trust.subjects is not None and labels.subject not in trust.subjects:
            raise refusal("subject_not_trusted", f"{item} is about a subject of whom it may not speak (see subjects)")
        if reach.subject is not None and labels.subject != reach.subject:
            raise refusal("other_subject", f"{item} belongs to another subject (receive it with that one's handle)")
    if trust.scopes is not None and not labels.scopes <= trust.scopes:
        raise refusal("scope_not_trusted", f"{item} asserts a scope that it may not assert (see scopes)")
    if labels.sensitivity > trust.max_sensitivity:
        raise refusal(
            "above_sensitivity",
            f"{item} is {labels.sensitivity.name}, above {trust.max_sensitivity.name} (raise max_sensitivity)",
        )


def require_arrival(target: str, given: str, trust: TrustPolicy, policy: PolicySet) -> None:
    """Hold a mapping against the receiving store's policy.

    Raises:
        ConfigError: it leads into a type that steers.
    """
    if policy.protected(target) or policy.integrity(target) >= USER_INTEGRITY:
        raise ConfigError(
            f"`{given}` of issuer `{trust.issuer}` would arrive as `{target}`, which is protected, trusted or unknown "
            "here (name an untrusted type of this policy)",
            path=f"arrives_as.{given}",
        )


def attrs_of(row: WireItem, trust: TrustPolicy, parents_here: frozenset[str]) -> dict[str, str]:
    """The attributes that an item gets on arrival: what describes it, and where it comes from."""
    attrs = {key if key in _DESCRIPTIVE else f"foreign_{key}"[:512]: value for key, value in row.attrs}
    facts: dict[str, str | None] = {
        "issuer": trust.issuer,
        "foreign_id": row.id,
        "foreign_digest": row.digest.hex(),
        "foreign_type": row.type,
        "foreign_source": row.source,
        "foreign_via": row.via,
        "foreign_key": row.key if row.key is not None and not trust.states(row.key) else None,
        "foreign_parents": " ".join(one for one in row.derived_from if one not in parents_here) or None,
    }
    dropped = len(row.parts) - len(parts_of(row, trust))
    facts["foreign_parts"] = f"{dropped} left out" if dropped else None
    return attrs | {key: value for key, value in facts.items() if value is not None}


def parts_of(row: WireItem, trust: TrustPolicy) -> tuple[Part, ...]:
    """The parts that arrive: references to media where they are trusted."""
    return tuple(part for part in row.parts if trust.media and isinstance(part, Media))


def content_of(row: WireItem) -> Any:
    """The content as a store takes it: text, or a JSON value whose canonical form is the text."""
    from rung.records.canonical import canonical_json

    if row.media_type == "application/json":
        try:
            value = msgspec.json.decode(row.text)
            if canonical_json(value) == row.text:
                return value
        except (msgspec.DecodeError, InputError, RecursionError):
            return row.text
    return row.text


def seen_at(row: WireItem, issued_at: datetime) -> datetime:
    """When it was seen, by its issuer's word: nothing was seen after it was signed."""
    return min(row.observed_at if row.observed_at is not None else row.created, issued_at)


__all__ = [
    "ARRIVES_AS",
    "TrustPolicy",
    "attrs_of",
    "content_of",
    "parts_of",
    "require_arrival",
    "require_trusted",
    "seen_at",
]
