"""What content is the same: the cheap key of whole texts, and the identities of re-registration."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from datetime import datetime
from hashlib import blake2b, sha256

import msgspec

from rung.records.item import Media, Opaque, Part, ToolCall

CONTENT_KEY_VERSION = 1
"""Kept inside each key, so that keys of another rule never match by accident."""

_LEAST_RUN = 16
"""The shortest run that a policy may ask for."""

_LOWER = bytes(code + 32 if 65 <= code <= 90 else code for code in range(256))
_NOT_ALPHANUMERIC = bytes(code for code in range(128) if not chr(code).isalnum())


def folded(text: str) -> bytes:
    """The text without case, white space, punctuation and compatibility forms: what the key is made of.

    A text without a single letter or digit keeps its other characters, white space apart.
    """
    if text.isascii():
        kept = text.encode("ascii").translate(_LOWER, _NOT_ALPHANUMERIC)
    else:
        text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())
        kept = "".join([char for char in text if char.isalnum()]).encode("utf-8")
    return kept or "".join(text.split()).encode("utf-8")


def content_key(text: str) -> bytes:
    """16 bytes that equal texts share, whatever their case, spacing, punctuation and compatibility forms.

    Empty for a text of white space only: such a text has no origin.
    """
    kept = folded(text)
    if not kept:
        return b""
    return blake2b(kept, digest_size=16, person=b"rung ckey v1").digest()


def beside(
    key: str | None, version: str | None, attrs: Sequence[tuple[str, str]], parts: Iterable[Part]
) -> tuple[str, ...]:
    """What an item says beside its text and is long enough to share a run: a title, a call's arguments, a block."""
    parts = tuple(parts)
    if not (attrs or parts):
        # Most items have a short key and a short version, or none.
        return tuple(said for said in (key, version) if said is not None and len(said) >= _LEAST_RUN)
    said = [key or "", version or "", *(value for _, value in attrs)]
    for part in parts:
        if isinstance(part, ToolCall):
            said.append(part.arguments)
        elif isinstance(part, Opaque):
            said.append(part.json)
        elif isinstance(part, Media) and not part.url.startswith("data:"):
            said.append(part.url)
    return tuple(one for one in said if len(one) >= _LEAST_RUN)


def identity(*parts: str | int | bytes | datetime | tuple[str, ...] | None) -> bytes:
    """16 bytes under which the same registration is found again."""
    return blake2b(msgspec.msgpack.encode(parts), digest_size=16, person=b"rung iden v1").digest()


def text_digest(text: str) -> str:
    """What an endorsement is bound to: SHA-256 of the text, in hexadecimal."""
    return sha256(text.encode("utf-8", "replace")).hexdigest()
