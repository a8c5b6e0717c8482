"""`Principal`: on whose behalf a turn runs."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

from rung.errors import InputError, ScopeError, names
from rung.records.labels import Sensitivity


class Principal(msgspec.Struct, frozen=True, kw_only=True):
    """Who is served: the tenant and person, and what they may do and see.

    Attributes:
        tenant: exact name; None must be said, and means a store without tenants.
        subject: the person, or None.
        scopes: what they may do, for example `orders:read`.
        clearance: the most sensitive data that may reach them.

    Raises:
        InputError: an empty name, or scopes that are one string.
    """

    tenant: str | None
    subject: str | None = None
    scopes: frozenset[str] = frozenset()
    clearance: Sensitivity = Sensitivity.PERSONAL

    def __post_init__(self) -> None:
        if isinstance(self.scopes, str):
            raise InputError("`scopes` is one string (give a set of strings)", field="scopes")
        for field in ("tenant", "subject"):
            if getattr(self, field) == "":
                raise InputError(f"`{field}` is empty (give a name, or None for none)", field=field)
        msgspec.structs.force_setattr(self, "scopes", frozenset(self.scopes))

    def narrowed(self, *, scopes: Iterable[str] | None = None, clearance: Sensitivity | None = None) -> Principal:
        """The same person with fewer rights, for a hand-over.

        Raises:
            ScopeError: a scope or a clearance that this principal does not have.
        """
        wanted = self.scopes if scopes is None else frozenset(scopes)
        wider = sorted(wanted - self.scopes)
        if wider:
            raise ScopeError(
                f"a hand-over only narrows: {names(wider)} is not among the scopes handed over "
                "(take it out, or give it to the first principal)",
                reason="wider_scopes",
            )
        level = self.clearance if clearance is None else clearance
        if level > self.clearance:
            raise ScopeError(
                f"a hand-over only narrows: clearance {level.name} is above {self.clearance.name} (lower it)",
                reason="wider_clearance",
            )
        return msgspec.structs.replace(self, scopes=wanted, clearance=level)
