"""The signed envelope: who says what to whom, until when, once.

The signature covers one byte string that has a place for every field, so no field can be left out, swapped
or read as another: a fixed prefix, then the MessagePack array of version, algorithm, issuer, audience,
issued_at and expires_at (microseconds since 1970 UTC), nonce, key id, payload type, encoding, and the SHA-256
of the payload.

Envelopes have one way to be written in each encoding: fields in the order below, JSON without white space,
MessagePack in its shortest form. Any other bytes are refused, so that each byte of an envelope is covered.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Annotated, Literal

import msgspec

from rung.wire.reasons import refusal
from rung.wire.schema import WIRE_VERSION, Encoding, Moment, pack, unpack

PayloadType = Literal["items", "manifest", "session"]
Short = Annotated[str, msgspec.Meta(min_length=1, max_length=200)]

_PREFIX = b"rung wire envelope\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


class Envelope(msgspec.Struct, frozen=True, kw_only=True, gc=False, forbid_unknown_fields=True):
    """A payload and the word of an issuer for it.

    Attributes:
        v: the version of this format, 1.
        algorithm: `ed25519` or `hmac-sha256`; it must be the key's own.
        issuer, audience: who signed it, and the one verifier that it is meant for.
        issued_at, expires_at: when it was signed, and until when it may be received.
        nonce: random, at least 16 bytes: it is received once.
        key_id: which of the issuer's keys signed it.
        payload_type: `items`, `manifest` or `session`.
        encoding: of the payload, `json` or `msgpack`.
        payload: the encoded items, manifest or session.
        signature: over all of the above.
    """

    v: Literal[1] = 1
    algorithm: Short
    issuer: Short
    audience: Short
    issued_at: Moment
    expires_at: Moment
    nonce: Annotated[bytes, msgspec.Meta(min_length=16, max_length=64)]
    key_id: Short
    payload_type: PayloadType
    encoding: Encoding
    payload: bytes
    signature: Annotated[bytes, msgspec.Meta(min_length=32, max_length=64)]


class _Version(msgspec.Struct, frozen=True):
    """The one field that every version has."""

    v: int


def signed_bytes(envelope: Envelope) -> bytes:
    """What the signature is made over."""
    return _PREFIX + msgspec.msgpack.encode(
        (
            envelope.v,
            envelope.algorithm,
            envelope.issuer,
            envelope.audience,
            _micros(envelope.issued_at),
            _micros(envelope.expires_at),
            envelope.nonce,
            envelope.key_id,
            envelope.payload_type,
            envelope.encoding,
            sha256(envelope.payload).digest(),
        )
    )


def encode_envelope(envelope: Envelope, encoding: Encoding = "msgpack") -> bytes:
    """The one byte string of an envelope in an encoding."""
    return pack(envelope, encoding)


def decode_envelope(data: bytes) -> Envelope:
    """Read an envelope; nothing about it is verified yet.

    Raises:
        WireError: `malformed`, `unsupported_version` or `not_canonical`.
    """
    version = unpack(data, _Version).v
    if version != WIRE_VERSION:
        raise refusal(
            "unsupported_version", f"the envelope is of version {version}; this rung reads version {WIRE_VERSION}"
        )
    envelope = unpack(data, Envelope)
    if pack(envelope, "json" if data[:1] == b"{" else "msgpack") != data:
        raise refusal(
            "not_canonical",
            "the envelope is not written in the one way for its encoding (fields in order, no white space, shortest "
            "forms; times in UTC)",
        )
    return envelope


def _micros(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND
