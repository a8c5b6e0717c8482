"""`Signer` makes envelopes, `Verifier` opens them: signature first, then audience, time and nonce."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any, cast

import msgspec

from rung.compiler.manifest import Manifest
from rung.errors import ConfigError, InputError, kind, names
from rung.ledger.reach import name
from rung.records.clock import Clock, aware_utc, system_clock
from rung.records.item import ContextItem
from rung.wire.envelope import Envelope, PayloadType, decode_envelope, signed_bytes
from rung.wire.keys import SigningKey, TrustedKey
from rung.wire.nonces import MemoryNonces, NonceStore
from rung.wire.reasons import refusal
from rung.wire.schema import (
    Encoding,
    Session,
    WireItem,
    WireItems,
    WireSession,
    pack,
    require_digest,
    unpack,
    wire_item,
    wire_session,
)

Payload = Sequence[ContextItem[Any]] | Session | Manifest


class Signer:
    """Signs in the name of one issuer with one key.

    Args:
        issuer: who speaks, as the receivers' trust policies name it.
        key_id: which of the issuer's keys this is.
        key: an `Ed25519Key`, or an `HmacKey` where both ends are one deployment.
        clock: gives the present moment as an aware UTC datetime.
        lifetime: for how long an envelope may be received, in seconds.
    """

    def __init__(
        self, issuer: str, key_id: str, key: SigningKey, *, clock: Clock = system_clock, lifetime: float = 300.0
    ) -> None:
        if not hasattr(key, "sign"):
            raise InputError(f"`key` is of kind {kind(key)}, which does not sign (give the private key)", field="key")
        if lifetime <= 0:
            raise InputError(f"`lifetime` is {lifetime} seconds (give more than 0)", field="lifetime")
        self.issuer = _short(issuer, "issuer")
        self.key_id = _short(key_id, "key_id")
        self._key = key
        self._clock = clock
        self._lifetime = timedelta(seconds=lifetime)

    def sign(self, payload: Payload, *, audience: str, encoding: Encoding = "msgpack") -> Envelope:
        """An envelope over items, a session or a manifest.

        Args:
            payload: what is said; items come with their labels and lineage.
            audience: the one verifier that may receive it.
            encoding: of the payload.

        Raises:
            InputError: the payload is something else.
        """
        payload_type, value = _wire(payload)
        issued_at = aware_utc(self._clock(), "clock()")
        envelope = Envelope(
            algorithm=self._key.algorithm,
            issuer=self.issuer,
            audience=_short(audience, "audience"),
            issued_at=issued_at,
            expires_at=issued_at + self._lifetime,
            nonce=os.urandom(16),
            key_id=self.key_id,
            payload_type=payload_type,
            encoding=encoding,
            payload=pack(value, encoding),
            signature=bytes(32),
        )
        return msgspec.structs.replace(envelope, signature=self._key.sign(signed_bytes(envelope)))


class Opened(msgspec.Struct, frozen=True, kw_only=True):
    """What a verified envelope says. Its items are the issuer's; `receive` decides what they become here."""

    issuer: str
    key_id: str
    issued_at: datetime
    payload_type: PayloadType
    rows: tuple[WireItem, ...] = ()
    session: str | None = None
    turns: tuple[Manifest, ...] = ()


class Verifier:
    """Opens envelopes that are meant for one audience.

    Args:
        audience: who this is; envelopes for anybody else are refused.
        issuers: the keys of each issuer; several of one issuer while keys are rotated.
        nonces: what remembers received envelopes; `None` for this process's memory.
        clock: gives the present moment as an aware UTC datetime.
        skew: how far clocks may differ, in seconds.
        max_lifetime: the longest lifetime that an envelope may claim, in seconds.
        max_bytes: the largest envelope, in bytes.
    """

    def __init__(
        self,
        audience: str,
        *,
        issuers: Mapping[str, Iterable[TrustedKey]],
        nonces: NonceStore | None = None,
        clock: Clock = system_clock,
        skew: float = 30.0,
        max_lifetime: float = 3_600.0,
        max_bytes: int = 64 * 1024 * 1024,
    ) -> None:
        self.audience = _short(audience, "audience")
        self._keys: dict[str, dict[str, TrustedKey]] = {}
        for issuer, keys in issuers.items():
            held = self._keys.setdefault(_short(issuer, "issuer"), {})
            for key in keys:
                if key.key_id in held:
                    raise ConfigError(
                        f"issuer `{issuer}` has two keys with the id `{key.key_id}` (rename one)", path="issuers"
                    )
                held[key.key_id] = key
        self._nonces = MemoryNonces() if nonces is None else nonces
        self._clock = clock
        self._skew = timedelta(seconds=skew)
        self._max_lifetime = timedelta(seconds=max_lifetime)
        self._max_bytes = max_bytes

    @property
    def issuers(self) -> tuple[str, ...]:
        """Whose keys are known, sorted."""
        return tuple(sorted(self._keys))

    def open(self, data: bytes | Envelope) -> Opened:
        """Verify an envelope and read its payload; it counts as received from then on.

        Raises:
            WireError: it is refused; `reason` is one of `rung.wire.REASONS`.
        """
        envelope = self._read(data)
        self._require_signature(envelope)
        until = self._require_current(envelope)
        opened = _opened(envelope)
        key = blake2b(digest_size=32, person=b"rung envelope v1")
        key.update(msgspec.msgpack.encode((self.audience, envelope.issuer, envelope.nonce)))
        if not self._nonces.claim(key.digest(), until=until, now=self._now()):
            raise refusal("replayed", f"the envelope of issuer `{envelope.issuer}` was received before")
        return opened

    def _now(self) -> datetime:
        return aware_utc(self._clock(), "clock()")

    def _read(self, data: bytes | Envelope) -> Envelope:
        if isinstance(data, Envelope):
            data = pack(data, "msgpack")
        if not isinstance(data, bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"an envelope is bytes, not {kind(data)} (encode it first)", field="envelope")
        if len(data) > self._max_bytes:
            raise refusal("too_large", f"the envelope is {len(data)} bytes, above the limit of {self._max_bytes}")
        return decode_envelope(data)

    def _require_signature(self, envelope: Envelope) -> None:
        # Until the signature holds, everything in the envelope is a stranger's word: it is not repeated.
        keys = self._keys.get(envelope.issuer)
        if keys is None:
            raise refusal("unknown_issuer", f"the issuer is not known here (known: {names(self.issuers)})")
        trusted = keys.get(envelope.key_id)
        if trusted is None:
            raise refusal("unknown_key", f"issuer `{envelope.issuer}` has no such key here (known: {names(keys)})")
        if envelope.algorithm != trusted.key.algorithm:
            raise refusal(
                "algorithm_mismatch",
                f"key `{trusted.key_id}` of issuer `{envelope.issuer}` signs by {trusted.key.algorithm} only",
            )
        if not trusted.key.verify(signed_bytes(envelope), envelope.signature):
            raise refusal("bad_signature", f"the signature of issuer `{envelope.issuer}` does not cover the envelope")
        if not trusted.valid_at(envelope.issued_at):
            raise refusal(
                "key_not_valid",
                f"key `{trusted.key_id}` of issuer `{envelope.issuer}` may not have signed at {envelope.issued_at}",
            )

    def _require_current(self, envelope: Envelope) -> datetime:
        issuer = f"issuer `{envelope.issuer}`"
        if envelope.audience != self.audience:
            raise refusal("other_audience", f"the envelope of {issuer} is meant for another than `{self.audience}`")
        now = self._now()
        if envelope.issued_at > now + self._skew:
            raise refusal("issued_in_future", f"the envelope of {issuer} is dated {envelope.issued_at}, after now")
        lifetime = envelope.expires_at - envelope.issued_at
        if not timedelta(0) < lifetime <= self._max_lifetime:
            raise refusal(
                "lifetime_too_long",
                f"the envelope of {issuer} is valid for {lifetime.total_seconds():g} seconds (more than 0 and at most "
                f"{self._max_lifetime.total_seconds():g})",
            )
        until = envelope.expires_at + self._skew
        if now >= until:
            raise refusal("expired", f"the envelope of {issuer} expired at {envelope.expires_at}")
        return until


def _wire(payload: object) -> tuple[PayloadType, Any]:
    if isinstance(payload, Manifest):
        return "manifest", payload
    if isinstance(payload, Session):
        return "session", wire_session(payload)
    given = cast("Sequence[object]", payload) if isinstance(payload, list | tuple) else ()
    items: list[ContextItem[Any]] = [one for one in given if isinstance(one, ContextItem)]
    if not items or len(items) != len(given):
        raise InputError(
            "`payload` is nothing that can be signed (give a list of items, a Session or a Manifest)", field="payload"
        )
    return "items", WireItems(items=tuple(wire_item(item) for item in items))


def _opened(envelope: Envelope) -> Opened:
    rows: tuple[WireItem, ...] = ()
    turns: tuple[Manifest, ...] = ()
    session: str | None = None
    if (envelope.payload[:1] == b"{") != (envelope.encoding == "json"):
        raise refusal("malformed", f"the payload is not in the encoding that its envelope names, {envelope.encoding}")
    if envelope.payload_type == "items":
        rows = unpack(envelope.payload, WireItems).items
    elif envelope.payload_type == "manifest":
        turns = (unpack(envelope.payload, Manifest),)
    else:
        whole = unpack(envelope.payload, WireSession)
        rows, turns, session = whole.items, whole.turns, whole.session
    for row in rows:
        require_digest(row)
    return Opened(
        issuer=envelope.issuer,
        key_id=envelope.key_id,
        issued_at=envelope.issued_at,
        payload_type=envelope.payload_type,
        rows=rows,
        session=session,
        turns=turns,
    )


def _short(value: object, field: str) -> str:
    text = name(value, field)
    if len(text) > 200:
        raise InputError(f"`{field}` is {len(text)} characters, above the limit of 200 (shorten it)", field=field)
    return text
