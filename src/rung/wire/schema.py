"""The versioned wire form of items, manifests and sessions, as JSON or MessagePack.

Both encodings hold the same fields. JSON begins with `{`, MessagePack never does, so a reader needs no hint.
Bytes are base64 in JSON, times are ISO 8601 in UTC, sensitivity is a number from 0 (public) to 3 (restricted).
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeVar

import msgspec

from rung.compiler.manifest import Manifest, json_schema
from rung.errors import InputError, IntegrityError, WireError
from rung.records.codec import ItemRow, from_row, to_row
from rung.records.item import ContextItem
from rung.records.types import BUILTIN_TYPES, ContextType
from rung.store import ContextStore, core
from rung.wire.reasons import refusal, shown

T = TypeVar("T")
Encoding = Literal["json", "msgpack"]
Types = Mapping[str, type[ContextType]]
Moment = Annotated[datetime, msgspec.Meta(tz=True)]
"""An aware datetime; a naive one is refused."""

WIRE_VERSION = 1


class WireItem(ItemRow, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """One context item: its type by name, its labels, its lineage and its digest.

    `digest` is SHA-256 over every other field; a reader that cannot compute it passes it on unchanged.
    """

    v: Literal[1] = 1
    created: Moment
    observed_at: Moment | None
    expires_at: Moment | None


class WireItems(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Several items, sent together: those that others are derived from may be among them."""

    v: Literal[1] = 1
    items: tuple[WireItem, ...]


class WireSession(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole session: its items in order, and the manifests of its recorded turns, oldest first."""

    v: Literal[1] = 1
    session: str
    tenant: str | None = None
    items: tuple[WireItem, ...] = ()
    turns: tuple[Manifest, ...] = ()


class Session(msgspec.Struct, frozen=True, kw_only=True):
    """A session as values: items in order, manifests oldest first."""

    session: str
    tenant: str | None = None
    items: tuple[ContextItem[Any], ...] = ()
    turns: tuple[Manifest, ...] = ()


_JSON = msgspec.json.Encoder(order="deterministic")
_MSGPACK = msgspec.msgpack.Encoder(order="deterministic")
BUILTIN: Types = {kind.name: kind for kind in BUILTIN_TYPES}


def pack(value: Any, encoding: Encoding) -> bytes:
    """The bytes of a wire value, the same for the same value."""
    if encoding == "json":
        return _JSON.encode(value)
    if encoding == "msgpack":
        return _MSGPACK.encode(value)
    raise InputError(f"`encoding` is `{encoding}` (one of `json`, `msgpack`)", field="encoding")


def unpack(data: bytes, type: type[T]) -> T:
    """The wire value of JSON or MessagePack.

    Raises:
        WireError: `malformed`; the message names the field and not its content.
    """
    try:
        if data[:1] == b"{":
            return msgspec.json.decode(data, type=type)
        return msgspec.msgpack.decode(data, type=type)
    except (msgspec.MsgspecError, ValueError, RecursionError, OverflowError) as problem:
        where = str(problem) if isinstance(problem, msgspec.ValidationError) else "it is cut or damaged"
        raise refusal("malformed", f"these bytes are no {type.__name__}: {_place(where)}") from None


def _place(problem: str) -> str:
    # A validator's message may quote what it read; only the place is told.
    _, separator, place = problem.rpartition(" - at ")
    return f"the value at {place} is wrong" if separator else "a value is wrong or missing"


def encode_item(item: ContextItem[Any], encoding: Encoding = "json") -> bytes:
    """An item in its wire form."""
    return pack(wire_item(item), encoding)


def decode_item(data: bytes, types: Types = BUILTIN) -> ContextItem[Any]:
    """The item of a wire form, checked against its digest.

    Reading gives a value and nothing more: a store takes in what comes signed, through `receive`.

    Args:
        data: JSON or MessagePack.
        types: the context types by name.

    Raises:
        WireError: `malformed` or `digest_mismatch`.
        IntegrityError: its type is not among `types`.
    """
    return _item(unpack(data, WireItem), types)


def encode_manifest(manifest: Manifest, encoding: Encoding = "json") -> bytes:
    """A manifest in its wire form."""
    return pack(manifest, encoding)


def decode_manifest(data: bytes) -> Manifest:
    """The manifest of a wire form.

    Raises:
        WireError: `malformed`.
    """
    return unpack(data, Manifest)


def encode_session(session: Session, encoding: Encoding = "json") -> bytes:
    """A session in its wire form."""
    return pack(wire_session(session), encoding)


def decode_session(data: bytes, types: Types = BUILTIN) -> Session:
    """The session of a wire form; each item is checked against its digest.

    Raises:
        WireError: `malformed` or `digest_mismatch`.
        IntegrityError: a type is not among `types`.
    """
    row = unpack(data, WireSession)
    return Session(
        session=row.session,
        tenant=row.tenant,
        items=tuple(_item(item, types) for item in row.items),
        turns=row.turns,
    )


def session_of(view: ContextStore, session: str | None = None) -> Session:
    """A stored session: what this handle may read of it, with the manifests of its recorded turns.

    Raises:
        InputError: neither the handle nor the call names a session.
    """
    wanted = session if session is not None else view.session
    if wanted is None:
        raise InputError("no session is named (give session=…, or take a handle with store.scope)", field="session")
    return Session(
        session=wanted,
        tenant=core(view)[1].tenant,
        items=tuple(view.items(session=wanted)),
        turns=tuple(view.turns(wanted)),
    )


def wire_item(item: ContextItem[Any]) -> WireItem:
    """The wire form of an item, as a value."""
    row = to_row(item)
    return WireItem(**{name: getattr(row, name) for name in ItemRow.__struct_fields__ if name != "v"})


def wire_session(session: Session) -> WireSession:
    """The wire form of a session, as a value."""
    return WireSession(
        session=session.session,
        tenant=session.tenant,
        items=tuple(wire_item(item) for item in session.items),
        turns=session.turns,
    )


def _item(row: WireItem, types: Types) -> ContextItem[Any]:
    item = from_row(row, types)
    _require_digest(item)
    return item


def require_digest(row: WireItem) -> None:
    """Hold a row against its digest; its type need not be known here.

    Raises:
        WireError: `digest_mismatch`, or `malformed` where its type cannot be a type's name.
    """
    try:
        _require_digest(from_row(row, {row.type: _stand_in(row.type)}))
    except (InputError, IntegrityError):
        raise refusal("malformed", f"item `{shown(row.id)}` has a type whose name cannot be one") from None


def _require_digest(item: ContextItem[Any]) -> None:
    if item.computed_digest() != item.digest:
        raise refusal("digest_mismatch", f"item `{shown(item.id)}` contradicts its own digest")


@lru_cache(maxsize=256)
def _stand_in(name: str) -> type[ContextType]:
    return type(name, (ContextType,), {}, name=name)


def schemas() -> dict[str, str]:
    """The published JSON Schemas by file name: generated from the code, as text."""
    from rung.wire.envelope import Envelope

    made = {
        "envelope.json": msgspec.json.schema(Envelope),
        "item.json": msgspec.json.schema(WireItem),
        "items.json": msgspec.json.schema(WireItems),
        "manifest.json": json_schema(),
        "session.json": msgspec.json.schema(WireSession),
    }
    return {
        name: msgspec.json.format(
            msgspec.json.encode({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema}), indent=2
        ).decode()
        + "\n"
        for name, schema in made.items()
    }


__all__ = [
    "BUILTIN",
    "WIRE_VERSION",
    "Encoding",
    "Session",
    "WireError",
    "WireItem",
    "WireItems",
    "WireSession",
    "decode_item",
    "decode_manifest",
    "decode_session",
    "encode_item",
    "encode_manifest",
    "encode_session",
    "pack",
    "require_digest",
    "schemas",
    "session_of",
    "unpack",
    "wire_item",
    "wire_session",
]
