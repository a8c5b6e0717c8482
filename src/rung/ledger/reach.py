"""What a handle may reach, how a draft comes about, and names at the boundary."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import msgspec

from rung.errors import (
    InputError,
    ScopeError,
)
from rung.ledger.backend import Tenants
from rung.ledger.channels import Endorsement
from rung.ledger.declassification import Declassification
from rung.records.canonical import canonical_text
from rung.records.item import ContextItem
from rung.records.labels import Labels

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


def handed_out(item: ContextItem[Any]) -> ContextItem[Any]:
    """A copy to give away: whatever is done to it, the stored item and its labels stay as they are."""
    labels = msgspec.structs.replace(item.labels)
    parts = tuple([msgspec.structs.replace(part) for part in item.parts]) if item.parts else ()
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
    # The same few names come again and again.
    return _name(value, field) if type(value) is str else _name(canonical_text(value, field)[0], field)


@lru_cache(maxsize=4096)
def _name(value: str, field: str) -> str:
    text, _ = canonical_text(value, field)
    if not text.strip() or len(text) > _LONGEST_NAME or not text.isprintable():
        raise InputError(
            f"`{field}` is empty, longer than {_LONGEST_NAME} characters, or holds control characters "
            "(give a short printable name)",
            field=field,
        )
    return text


def narrow(field: str, given: str | None, reach: str | None) -> str | None:
    if given is None:
        return reach
    given = name(given, field)
    if reach is not None and given != reach:
        raise ScopeError(
            f"`{field}` may narrow what the handle has, not widen it (take another handle with store.scope)",
            reason=f"other_{field}",
        )
    return given


def meet(field: str, one: str | None, other: str | None) -> str | None:
    if one is None or other is None or one == other:
        return one if one is not None else other
    raise ScopeError(f"items of two {field}s cannot be combined (derive them apart)", reason=f"two_{field}s")


def sorted_attrs(given: Mapping[str, str] | tuple[tuple[str, str], ...] | None) -> tuple[tuple[str, str], ...]:
    if not given:
        return ()
    pairs = given.items() if isinstance(given, Mapping) else given
    out: dict[str, str] = {}
    for key, value in pairs:
        out[name(key, "attrs")] = canonical_text(value, f"attrs.{key}", replace=True)[0]
    return tuple(sorted(out.items()))
