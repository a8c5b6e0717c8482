"""What a document is given beside its content."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from rung.errors import InputError
from rung.knowledge.filters import stored_metadata
from rung.knowledge.times import micros
from rung.records.canonical import canonical_text
from rung.records.clock import aware_utc
from rung.records.labels import Sensitivity


class Labelled(msgspec.Struct, frozen=True, kw_only=True):
    """What a document is called, and who may see it when; times in microseconds."""

    document: str
    tenant: str | None
    title: str | None
    label: str | None
    collection: str | None
    observed_at: int
    valid_from: int | None
    valid_to: int | None
    sensitivity: int | None
    access: tuple[str, ...]
    metadata: str


def labelled(
    document: str,
    changed: int,
    *,
    tenant: str | None,
    access: Iterable[str],
    sensitivity: Sensitivity | str | None,
    metadata: Mapping[str, Any] | None,
    title: str | None = None,
    version: str | None = None,
    observed_at: datetime | None = None,
    valid_from: datetime | None = None,
    valid_to: datetime | None = None,
    collection: str | None = None,
) -> Labelled:
    """Labels from what a caller gave. `changed` is the content's own time, in microseconds.

    Raises:
        InputError: an id without text, an access that is one text, a validity that ends before it begins.
    """
    if isinstance(access, str):
        raise InputError("`access` is one text (give a set of scopes)", field="access")
    for field, value in (("document", document), ("tenant", tenant), ("title", title), ("version", version)):
        if value is not None:
            canonical_text(value, field)
    if not document.strip():
        raise InputError("`document` is empty (give it an id)", field="document")
    start = None if valid_from is None else micros(aware_utc(valid_from, "valid_from"))
    end = None if valid_to is None else micros(aware_utc(valid_to, "valid_to"))
    if start is not None and end is not None and end <= start:
        raise InputError("`valid_to` is not after `valid_from`", field="valid_to")
    try:
        level = None if sensitivity is None else int(Sensitivity.parse(sensitivity))
    except ValueError as error:
        raise InputError(str(error), field="sensitivity") from None
    return Labelled(
        document=document,
        tenant=tenant,
        title=title,
        label=version,
        collection=collection,
        observed_at=changed if observed_at is None else micros(aware_utc(observed_at, "observed_at")),
        valid_from=start,
        valid_to=end,
        sensitivity=level,
        access=tuple(sorted({canonical_text(scope, "access")[0] for scope in access})),
        metadata=stored_metadata(metadata or {}),
    )
