"""Keys: Ed25519 (RFC 8032) by the `cryptography` package, HMAC-SHA256 (RFC 2104) by the standard library.

A key knows its algorithm, so what an envelope claims about it decides nothing.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from datetime import datetime
from importlib.util import find_spec
from typing import Protocol

import msgspec

from rung.errors import InputError, kind, missing_extra
from rung.records.clock import aware_utc


class SigningKey(Protocol):
    """What signs: an `Ed25519Key` or an `HmacKey`."""

    @property
    def algorithm(self) -> str: ...

    def sign(self, data: bytes) -> bytes: ...


class VerifyingKey(Protocol):
    """What verifies: an `Ed25519PublicKey` or an `HmacKey`."""

    @property
    def algorithm(self) -> str: ...

    def verify(self, data: bytes, signature: bytes) -> bool: ...


class Ed25519PublicKey:
    """The half that verifies; it may be given to anybody.

    Raises:
        InputError: `raw` is not 32 bytes.
    """

    algorithm = "ed25519"

    def __init__(self, raw: bytes) -> None:
        _require_bytes(raw, 32, 32, "an Ed25519 public key")
        _require_cryptography()
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self.raw = bytes(raw)
        self._key = ed25519.Ed25519PublicKey.from_public_bytes(self.raw)

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Whether the signature was made over these bytes with the private half."""
        from cryptography.exceptions import InvalidSignature

        try:
            self._key.verify(signature, data)
        except InvalidSignature:
            return False
        return True

    def __repr__(self) -> str:
        return f"<Ed25519PublicKey {self.raw.hex()}>"


class Ed25519Key:
    """The half that signs: it stays with its issuer.

    Args:
        raw: the private key, 32 bytes.

    Raises:
        InputError: `raw` is not 32 bytes.
        MissingExtraError: `cryptography` is not installed.
    """

    algorithm = "ed25519"

    def __init__(self, raw: bytes) -> None:
        _require_bytes(raw, 32, 32, "an Ed25519 private key")
        _require_cryptography()
        from cryptography.hazmat.primitives.asymmetric import ed25519

        self._key = ed25519.Ed25519PrivateKey.from_private_bytes(bytes(raw))

    @classmethod
    def generate(cls) -> Ed25519Key:
        """A new key from the system's random numbers."""
        return cls(os.urandom(32))

    @property
    def public(self) -> Ed25519PublicKey:
        """The half to give away."""
        return Ed25519PublicKey(self._key.public_key().public_bytes_raw())

    def raw(self) -> bytes:
        """The private key itself, 32 bytes: for the place where secrets are kept."""
        return self._key.private_bytes_raw()

    def sign(self, data: bytes) -> bytes:
        """The signature over these bytes: 64 bytes."""
        return self._key.sign(data)

    def __repr__(self) -> str:
        return "<Ed25519Key>"


class HmacKey:
    """A secret that both ends hold: whoever can verify with it can sign as well.

    Args:
        secret: at least 32 bytes.
    """

    algorithm = "hmac-sha256"

    def __init__(self, secret: bytes) -> None:
        _require_bytes(secret, 32, 1024, "an HMAC secret")
        self._secret = bytes(secret)

    @classmethod
    def generate(cls) -> HmacKey:
        """A new secret of 32 bytes from the system's random numbers."""
        return cls(os.urandom(32))

    def sign(self, data: bytes) -> bytes:
        """The code over these bytes: 32 bytes."""
        return hmac.new(self._secret, data, hashlib.sha256).digest()

    def verify(self, data: bytes, signature: bytes) -> bool:
        """Whether the code was made over these bytes with the same secret; in constant time."""
        return hmac.compare_digest(self.sign(data), signature)

    def __repr__(self) -> str:
        return "<HmacKey>"


class TrustedKey(msgspec.Struct, frozen=True, kw_only=True):
    """A key of an issuer, and when it may sign. Several at once are how keys are rotated.

    Attributes:
        key_id: as envelopes name it.
        key: the verifying half.
        not_before, not_after: the first and last moment at which it may have signed; aware, or None.
    """

    key_id: str
    key: VerifyingKey
    not_before: datetime | None = None
    not_after: datetime | None = None

    def __post_init__(self) -> None:
        if not hasattr(self.key, "verify"):
            raise InputError(
                f"`key` is of kind {kind(self.key)}, which does not verify (give its public half: key.public)",
                field="key",
            )
        for field in ("not_before", "not_after"):
            value = getattr(self, field)
            if value is not None:
                aware_utc(value, field)

    def valid_at(self, moment: datetime) -> bool:
        """Whether it may have signed at this moment."""
        return (self.not_before is None or self.not_before <= moment) and (
            self.not_after is None or moment <= self.not_after
        )


def _require_cryptography() -> None:
    if find_spec("cryptography") is None:
        raise missing_extra("cryptography", "wire")


def _require_bytes(value: object, least: int, most: int, what: str) -> None:
    if not isinstance(value, bytes | bytearray) or not least <= len(value) <= most:
        size = f"{least}" if least == most else f"{least} to {most}"
        raise InputError(f"{what} is {size} bytes (give `bytes` of that length)", field="key")
