"""What is stored of an item: its text and one compact record of the rest, the same on each backend."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from operator import attrgetter
from sys import intern
from typing import Any, TypeVar, cast

import msgspec

from rung.errors import ConflictError, InputError, IntegrityError, ScopeError
from rung.ledger.backend import Audited, Document, Event, LogEntry, NewRow, Tenants, Tombstone
from rung.records.canonical import canonical_text
from rung.records.codec import ROW_VERSION, ItemRow, from_row
from rung.records.item import ContextItem, body
from rung.records.labels import Labels, Sensitivity
from rung.records.types import ContextType

Owned = TypeVar("Owned", Document, Event, LogEntry)

Types = Mapping[str, type[ContextType]]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")


class StoredLabels(Labels, frozen=True, kw_only=True, gc=False, array_like=True):
    """Labels as an array."""


class Record(ItemRow, frozen=True, kw_only=True, gc=False, array_like=True):
    """An item as an array: the names of its fields are not repeated in each row. `text` stands beside it."""

    labels: StoredLabels


_HEAD = ("v", "type", "id", "source", "text", "media_type", "labels")
_TAIL = Record.__struct_fields__[len(_HEAD) :]
_tail_of = attrgetter(*_TAIL)
_encode = msgspec.msgpack.Encoder(order="deterministic").encode
_decode = msgspec.msgpack.Decoder(Record).decode
_decode_tombstone = msgspec.msgpack.Decoder(Tombstone).decode


def pack(item: ContextItem[Any]) -> tuple[str, bytes]:
    """The text of an item and the record of its other fields.

    Raises:
        InputError: a field holds NUL or a lone surrogate, which not every backend can keep.
    """
    text = _storable_text(item)
    return text, _record(item, item.id, "")


def pack_whole(item: ContextItem[Any]) -> bytes:
    """One record with the text, and without the id, which stands beside it. Raises as `pack` does."""
    # Copied, because what the encoder gives keeps the unused end of its buffer.
    return bytes(memoryview(_record(item, "", _storable_text(item))))


def _storable_text(item: ContextItem[Any]) -> str:
    labels = item.labels
    said = (item.id, item.source, item.session, item.key, labels.tenant, labels.subject)
    # One look at all of them together; which one it is, is asked where there is something.
    if not storable("".join(filter(None, said))):
        for field, value in zip(("id", "source", "session", "key", "tenant", "subject"), said, strict=True):
            if value is not None:
                canonical_text(value, field)
    return canonical_text(body(item))[0]


def _record(item: ContextItem[Any], item_id: str, text: str) -> bytes:
    labels = item.labels
    stored = (labels.tenant, labels.subject, labels.sensitivity, labels.scopes)
    head = (ROW_VERSION, item.type.name, item_id, item.source, text, item.media_type, stored)
    try:
        return _encode((*head, *_tail_of(item)))
    except UnicodeEncodeError as problem:
        raise InputError(
            f"item `{item.id}` holds a lone surrogate (decode its fields with errors='replace')", field="item"
        ) from problem


@lru_cache(maxsize=4096)
def _labels(tenant: str | None, subject: str | None, sensitivity: Sensitivity, scopes: frozenset[str]) -> Labels:
    return Labels(tenant=tenant, subject=subject, sensitivity=sensitivity, scopes=scopes)


def _shared(row: Labels) -> Labels:
    """One object for all items whose labels are equal: few audiences have many items."""
    return _labels(row.tenant, row.subject, row.sensitivity, row.scopes)


def unpack(text: str | None, record: bytes, types: Types, item_id: str) -> ContextItem[Any]:
    """The item of a text and a record; of a whole record where the text is None.

    Raises:
        IntegrityError: the record cannot be read, or has a type that is not among `types`.
    """
    try:
        row = _decode(record)
    except (msgspec.MsgspecError, ValueError) as problem:
        raise IntegrityError(
            f"the record of item `{item_id}` cannot be read (restore it from a copy)", culprits=(item_id,)
        ) from problem
    kind = types.get(row.type)
    if kind is None:
        return from_row(msgspec.structs.replace(row, id=item_id), types)
    return ContextItem(
        type=kind,
        id=row.id or item_id,
        source=intern(row.source),
        _body=row.text if text is None else text,
        media_type=intern(row.media_type),
        labels=_shared(row.labels),
        session=row.session,
        turn=row.turn,
        seq=row.seq,
        created=row.created,
        observed_at=row.observed_at,
        expires_at=row.expires_at,
        key=row.key,
        version=row.version,
        integrity=row.integrity,
        derived_from=row.derived_from,
        via=row.via,
        parts=row.parts,
        call_id=row.call_id,
        attrs=row.attrs,
        digest=row.digest,
    )


def as_read(item: ContextItem[Any]) -> ContextItem[Any] | None:
    """A copy, as packing and unpacking would give it; None where a moment would be brought to UTC."""
    observed, expires = item.observed_at, item.expires_at
    if (
        item.created.tzinfo is not UTC
        or (observed is not None and observed.tzinfo is not UTC)
        or (expires is not None and expires.tzinfo is not UTC)
    ):
        return None
    parts = tuple([msgspec.structs.replace(part) for part in item.parts]) if item.parts else ()
    return msgspec.structs.replace(item, labels=_shared(item.labels), parts=parts)


def read_record(record: bytes) -> Record:
    """A record without its type's class."""
    return _decode(record)


def tombstone_of(record: bytes, item_id: str, at: datetime, reason: str, ordinal: int) -> Tombstone:
    """What remains of the item of a record. It needs no type, so that what a policy forgot can be erased."""
    row = _decode(record)
    return Tombstone(
        ordinal=ordinal,
        id=item_id,
        type=row.type,
        source=row.source,
        tenant=row.labels.tenant,
        created=row.created,
        derived_from=row.derived_from,
        digest=row.digest,
        at=at,
        reason=reason,
    )


def pack_tombstone(tombstone: Tombstone) -> bytes:
    """The record of a tombstone; its ordinal is kept beside it."""
    return _encode(msgspec.structs.replace(tombstone, ordinal=0))


def unpack_tombstone(record: bytes, ordinal: int) -> Tombstone:
    """The tombstone of a record."""
    return msgspec.structs.replace(_decode_tombstone(record), ordinal=ordinal)


Columns = tuple[str, str | None, str, str, str | None, int, str | None, str | None, int | None]
"""What an item is found by: id, tenant, type, source, session, seq, subject, key, expiry in microseconds."""


def columns_of(item: ContextItem[Any]) -> Columns:
    """The columns of an item."""
    return (
        item.id,
        item.labels.tenant,
        item.type.name,
        item.source,
        item.session,
        item.seq,
        item.labels.subject,
        item.key,
        None if item.expires_at is None else micros(item.expires_at),
    )


def audited(text: str | None, record: bytes, types: Types, columns: Columns) -> Audited:
    """A stored item, read again: whether it contradicts its digest or the columns it is found by."""
    try:
        item = unpack(text, record, types, columns[0])
        problem = "digest" if item.computed_digest() != item.digest else None
        problem = "columns" if columns_of(item) != columns else problem
    except (IntegrityError, UnicodeEncodeError, OverflowError):
        return Audited(id=columns[0], problem="unreadable")
    return Audited(id=columns[0], problem=problem, digest=item.digest, derived_from=item.derived_from)


def storable(value: str) -> bool:
    """Whether each backend can keep this text; where it cannot, nothing with this name is stored."""
    return ("\x00" not in value) if value.isascii() else _UNSTORABLE.search(value) is None


def known_names(values: Iterable[str]) -> list[str]:
    """The distinct names among these that can be stored at all."""
    return [value for value in dict.fromkeys(values) if storable(value)]


def scope_key(name: str | None) -> str:
    """A tenant or session as a column: None and each string, the empty one too, are distinct exact values.

    Raises:
        InputError: it holds NUL or a lone surrogate.
    """
    if name is None:
        return "-"
    return "=" + (name if storable(name) else canonical_text(name, "scope")[0])


def scope_name(key: str) -> str | None:
    """The tenant or session of a column."""
    return None if key == "-" else key[1:]


def scope_keys(tenants: Tenants) -> list[str]:
    """The columns of these tenants; those that cannot be stored have no rows."""
    return [scope_key(name) for name in dict.fromkeys(tenants) if name is None or storable(name)]


def _texts_of(kind: type[msgspec.Struct]) -> list[str]:
    return [field.name for field in msgspec.structs.fields(kind) if field.type in (str, str | None)]


@cache
def _said_by(kind: type[msgspec.Struct]) -> Callable[[object], tuple[object, ...]]:
    return attrgetter(*_texts_of(kind))


_TEXT = frozenset({str, type(None)})


def owned(given: Owned, tenant: str | None) -> Owned:
    """A document, event or log entry with the tenant of its transaction.

    Raises:
        ScopeError: it names another tenant.
        InputError: a field is no text, or holds NUL or a lone surrogate.
    """
    said = _said_by(type(given))(given)
    if not _TEXT.issuperset(map(type, said)) or not storable("".join(filter(None, cast("Any", said)))):
        for field in _texts_of(type(given)):
            value = getattr(given, field)
            if value is not None:
                canonical_text(value, field)
    if given.tenant == tenant:
        return given
    if given.tenant is None:
        return msgspec.structs.replace(given, tenant=tenant)
    raise _foreign(type(given).__name__.lower())


def require_owned(rows: Sequence[NewRow], tenant: str | None) -> None:
    """ScopeError unless each item belongs to the transaction's tenant."""
    for row in rows:
        if row.item.labels.tenant != tenant:
            raise _foreign(f"item `{row.item.id}`")


def _foreign(what: str) -> ScopeError:
    return ScopeError(
        f"{what} belongs to another tenant than the transaction (begin a write in its own tenant)",
        reason="other_tenant",
    )


def id_conflict(item_id: str) -> ConflictError:
    """The error for an id that exists already."""
    return ConflictError(f"the id `{item_id}` exists already (ids are unique: check the id factory)", item_id=item_id)


def version_conflict(document: Document, expected: int, actual: int) -> ConflictError:
    """The error for a document that another writer changed."""
    return ConflictError(
        f"{document.kind} `{document.id}` has version {actual}, not {expected} (read it again, then write)",
        expected=expected,
        actual=actual,
    )


def micros(moment: datetime) -> int:
    """Microseconds since 1970 UTC: exact, and ordered as the moments are."""
    return (moment - _EPOCH) // _MICROSECOND


def moment(micros: int) -> datetime:
    """The aware UTC datetime of a number of microseconds since 1970."""
    return _EPOCH + timedelta(microseconds=micros)


class Pages:
    """How many rows to read at once: few where texts are large, so that a page stays near a megabyte.

    Args:
        limit: how many rows are wanted at all.
    """

    def __init__(self, limit: int | None = None) -> None:
        self.size = 64 if limit is None else max(1, min(64, limit))

    def read(self, characters: int) -> None:
        """A page of so many characters was read."""
        if characters < 250_000:
            self.size = min(self.size * 2, 1024)
        elif characters > 2_000_000:
            self.size = max(self.size // 4, 4)
