"""The row form of an item: builtins only, lossless, for storage and for the wire."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from rung.errors import IntegrityError
from rung.records.item import ContextItem, Part, body
from rung.records.labels import Labels
from rung.records.types import ContextType

ROW_VERSION = 1


class ItemRow(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """An item with its type by name, so that it can be encoded and read where the class is not imported."""

    v: int = ROW_VERSION
    type: str
    id: str
    source: str
    text: str
    media_type: str
    labels: Labels
    session: str | None
    turn: str | None
    seq: int
    created: datetime
    observed_at: datetime | None
    expires_at: datetime | None
    key: str | None
    version: str | None
    integrity: int
    derived_from: tuple[str, ...]
    via: str | None
    parts: tuple[Part, ...]
    call_id: str | None
    attrs: tuple[tuple[str, str], ...]
    digest: bytes


_FIELDS = tuple(name for name in ContextItem.__struct_fields__ if name not in ("type", "_body"))


def to_row(item: ContextItem[Any]) -> ItemRow:
    """The row form of an item."""
    return ItemRow(type=item.type.name, text=body(item), **{name: getattr(item, name) for name in _FIELDS})


def from_row(row: ItemRow, types: Mapping[str, type[ContextType]]) -> ContextItem[Any]:
    """The item of a row.

    Raises:
        IntegrityError: the row's type is not among `types` (the policy that knows it is not loaded).
    """
    kind = types.get(row.type)
    if kind is None:
        raise IntegrityError(
            f"item `{row.id}` has the type `{row.type}`, which this policy does not know (declare it in the policy)",
            culprits=(row.id,),
        )
    return ContextItem(type=kind, _body=row.text, **{name: getattr(row, name) for name in _FIELDS})
