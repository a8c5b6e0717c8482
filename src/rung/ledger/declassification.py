"""`Declassification`: a person's word that a text may be shown more widely."""

from __future__ import annotations

import msgspec

from rung.errors import InputError
from rung.records.labels import Labels


class Declassification(msgspec.Struct, frozen=True, kw_only=True):
    """Who widens an item's audience, why, and to what. It covers one text only.

    Attributes:
        by: who says so.
        reason: why.
        digest: SHA-256 of the text, in hexadecimal.
        labels: what the new item carries, in place of its parent's labels.
    """

    by: str
    reason: str
    digest: str
    labels: Labels

    def __post_init__(self) -> None:
        for name in ("by", "reason"):
            if not getattr(self, name).strip():
                raise InputError(f"`{name}` of a declassification is empty (say who, and why)", field=name)
