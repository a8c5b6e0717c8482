"""Canonical forms: one rule for text, one for JSON, one for digests, the same on each backend.

Text: CRLF and every other valid code point are kept as they are. Lone surrogates and NUL cannot be stored
or sent everywhere, so they are refused, or each is replaced by U+FFFD where the type's rule says so.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from datetime import date, datetime, time
from decimal import Decimal
from enum import Enum
from hashlib import sha256
from pathlib import PurePath
from typing import Any, cast
from uuid import UUID

import msgspec

from rung.errors import InputError, kind

_UNSTORABLE = re.compile("[\ud800-\udfff\x00]")
_DEEPEST = 200


def canonical_text(text: object, field: str = "content", *, replace: bool = False) -> tuple[str, int]:
    """The text as it is stored, and how many code points were replaced.

    Args:
        text: what was given.
        field: its name in messages.
        replace: replace lone surrogates and NUL by U+FFFD instead of refusing them.

    Raises:
        InputError: not a `str`, or text that holds a lone surrogate or NUL and may not be changed.
    """
    if type(text) is not str:
        if not isinstance(text, str):
            raise InputError(f"`{field}` is of kind {kind(text)}, not text (give a `str`)", field=field)
        text = str.__str__(text)
    if text.isascii() and "\x00" not in text:
        return text, 0
    found = _UNSTORABLE.search(text)
    if found is None:
        return text, 0
    if not replace:
        what = "NUL" if found[0] == "\x00" else "a lone surrogate"
        raise InputError(
            f"`{field}` holds {what} at character {found.start()} (decode it with errors='replace', or let the "
            'type\'s policy say `text = "replace"`)',
            field=field,
        )
    return _UNSTORABLE.subn("\ufffd", text)


_AS_IT_IS = frozenset({str, int, bool, type(None)})


def plain(value: object, field: str = "content", depth: int = 0) -> Any:
    """A JSON value of the common Python types, deterministically.

    Datetimes become ISO 8601 with offset, Decimals and UUIDs strings, bytes `{"$base64": …}`, sets sorted
    lists, enums their values.

    Raises:
        InputError: NaN or an infinity, a naive datetime, a key that is no string, a type without a rule,
            more than 200 levels; the message names the place.
    """
    if value is None or isinstance(value, bool | str):
        return str.__str__(value) if isinstance(value, str) and type(value) is not str else value
    if isinstance(value, Enum):
        return plain(value.value, field, depth + 1)
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            raise InputError(f"`{field}` is {value}, which JSON cannot hold (send null or a string)", field=field)
        return float(value)
    if depth > _DEEPEST:
        raise InputError(f"`{field}` is nested deeper than {_DEEPEST} levels (flatten it)", field=field)
    if isinstance(value, Mapping):
        out: dict[str, Any] = {}
        for key, inner in cast("Mapping[object, Any]", value).items():
            if not isinstance(key, str):
                raise InputError(f"`{field}` has a key of kind {kind(key)} (keys are strings)", field=field)
            out[key] = inner if type(inner) in _AS_IT_IS else plain(inner, f"{field}.{key}", depth + 1)
        return out
    if isinstance(value, list | tuple):
        return [
            inner if type(inner) in _AS_IT_IS else plain(inner, f"{field}[{i}]", depth + 1)
            for i, inner in enumerate(cast("list[Any]", value))
        ]
    if isinstance(value, AbstractSet):
        encoded = [plain(inner, f"{field}[]", depth + 1) for inner in cast("AbstractSet[Any]", value)]
        return sorted(encoded, key=lambda inner: msgspec.json.encode(inner, order="sorted"))
    if isinstance(value, datetime):
        if value.tzinfo is None:
            raise InputError(f"`{field}` is a naive datetime (give it a time zone)", field=field)
        return value.isoformat()
    if isinstance(value, date | time):
        return value.isoformat()
    if isinstance(value, Decimal | UUID | PurePath):
        return str(value)
    if isinstance(value, bytes | bytearray | memoryview):
        return {"$base64": base64.b64encode(bytes(cast("bytes", value))).decode("ascii")}
    if not isinstance(value, msgspec.Struct) and hasattr(value, "reveal"):
        raise InputError(f"`{field}` is of kind {kind(value)}: labelled text is no JSON value", field=field)
    if isinstance(value, msgspec.Struct) and "_body" in value.__struct_fields__:
        raise InputError(
            f"`{field}` is an item (an item is no JSON value: derive from it with store.transform)",
            field=field,
        )
    if isinstance(value, msgspec.Struct) or hasattr(value, "__dataclass_fields__"):
        return plain(msgspec.to_builtins(value, order="deterministic"), field, depth + 1)
    raise InputError(f"`{field}` is of kind {kind(value)}, which has no JSON form (convert it first)", field=field)


def canonical_json(value: object, field: str = "content") -> str:
    """The one JSON text of a value: keys sorted, no spaces, characters not escaped beyond need."""
    try:
        return msgspec.json.encode(plain(value, field), order="sorted").decode("utf-8")
    except UnicodeEncodeError as problem:
        raise InputError(
            f"`{field}` holds a lone surrogate (decode it with errors='replace')", field=field
        ) from problem


def json_of(value: dict[str, object]) -> str:
    """`canonical_json` of a value that is of JSON's own types and valid text already."""
    return msgspec.json.encode(value, order="sorted").decode("utf-8")


def digest_of(*fields: object) -> bytes:
    """SHA-256 over the MessagePack form of the fields, in order: 32 bytes."""
    return sha256(msgspec.msgpack.encode(fields)).digest()
