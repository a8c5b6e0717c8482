"""Confidentiality labels: who may see an item. They combine to the strictest."""

from __future__ import annotations

import enum
from collections.abc import Iterable

import msgspec

from rung.errors import ScopeError


class Sensitivity(enum.IntEnum):
    """How widely a text may be shown; a higher value is stricter."""

    PUBLIC = 0
    INTERNAL = 1
    PERSONAL = 2
    RESTRICTED = 3

    @classmethod
    def parse(cls, value: Sensitivity | str) -> Sensitivity:
        """From a member or its name in any case; ValueError for anything else."""
        if isinstance(value, Sensitivity):
            return value
        try:
            return cls[value.upper()]
        except (KeyError, AttributeError):
            allowed = ", ".join(member.name for member in cls)
            raise ValueError(f"`{value}` is no sensitivity (one of {allowed})") from None


class Labels(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """Tenant, subject, sensitivity and required scopes of an item.

    `tenant` and `subject` are exact strings (no case folding, no Unicode normalisation) or None:
    belonging to the deployment itself, or to no person.
    """

    tenant: str | None = None
    subject: str | None = None
    sensitivity: Sensitivity = Sensitivity.INTERNAL
    scopes: frozenset[str] = frozenset()

    def readable_by(
        self, *, clearance: Sensitivity, scopes: frozenset[str], tenant: str | None, subject: str | None
    ) -> str | None:
        """None when a reader with these rights may see it, otherwise a stable reason code.

        Data of the deployment (no tenant) is visible to each tenant; data of no person to each subject.
        """
        if self.tenant is not None and self.tenant != tenant:
            return "other_tenant"
        if self.subject is not None and self.subject != subject:
            return "other_subject"
        if self.sensitivity > clearance:
            return "above_clearance"
        if not self.scopes <= scopes:
            return "missing_scope"
        return None


def combine(labels: Iterable[Labels]) -> Labels:
    """The labels of something made from several items: strictest sensitivity, union of scopes.

    Raises:
        ScopeError: the items belong to two tenants or to two subjects.
    """
    tenant: str | None = None
    subject: str | None = None
    sensitivity = Sensitivity.PUBLIC
    scopes: frozenset[str] = frozenset()
    for label in labels:
        if label.tenant is not None:
            if tenant is not None and tenant != label.tenant:
                raise ScopeError("items of two tenants cannot be combined (derive them apart)", reason="two_tenants")
            tenant = label.tenant
        if label.subject is not None:
            if subject is not None and subject != label.subject:
                raise ScopeError("items of two subjects cannot be combined (derive them apart)", reason="two_subjects")
            subject = label.subject
        sensitivity = max(sensitivity, label.sensitivity)
        scopes |= label.scopes
    return Labels(tenant=tenant, subject=subject, sensitivity=sensitivity, scopes=scopes)
