"""Which envelopes were received before: in this process, or in the ledger that several workers share."""

from __future__ import annotations

import threading
import time
from datetime import datetime
from hashlib import blake2b
from typing import Protocol

import msgspec

from rung.errors import ConfigError, ConflictError, InputError, StoreBusyError
from rung.ledger.backend import Document
from rung.store import ContextStore, core

_TRIES = 50


class NonceStore(Protocol):
    """Remembers nonces until their envelopes have expired. Safe to call from any thread."""

    def claim(self, key: bytes, *, until: datetime, now: datetime) -> bool:
        """Take a nonce: True for the first claim, False for any later one.

        Args:
            key: what the envelope is known by (audience, issuer and nonce, hashed).
            until: when the envelope is refused as expired anyway; aware.
            now: the verifier's moment; aware.
        """
        ...


class MemoryNonces:
    """Nonces of one process: enough where one process receives, and forgets at restart."""

    def __init__(self) -> None:
        self._until: dict[bytes, datetime] = {}
        self._lock = threading.Lock()
        self._sweep_at = 1024

    def claim(self, key: bytes, *, until: datetime, now: datetime) -> bool:
        with self._lock:
            if key in self._until:
                return False
            if len(self._until) >= self._sweep_at:
                self._until = {held: end for held, end in self._until.items() if end >= now}
                self._sweep_at = max(1024, 2 * len(self._until))
            self._until[key] = until
            return True


class _Slot(msgspec.Struct, frozen=True):
    """The nonces of one period. A period lasts as long as an envelope can live, so of three slots one is free."""

    period: int
    nonces: tuple[str, ...] = ()


class StoreNonces:
    """Nonces in the ledger's backend: several workers and machines share them, and a restart keeps them.

    They are kept outside any tenant, because an envelope is received once, not once in each tenant. What they
    take is bounded: documents of past periods are written over.

    Args:
        store: any handle of the store.
        longest: the longest time for which an envelope may be received, in seconds; at least the verifier's
            `max_lifetime` and twice its `skew`.
    """

    def __init__(self, store: ContextStore, *, longest: float = 7_200.0) -> None:
        if longest <= 0:
            raise InputError(f"`longest` is {longest} seconds (give more than 0)", field="longest")
        self._backend = core(store)[0].backend
        self._longest = longest

    def claim(self, key: bytes, *, until: datetime, now: datetime) -> bool:
        if (until - now).total_seconds() > self._longest:
            raise ConfigError(
                f"an envelope may be received for longer than {self._longest:g} seconds (raise StoreNonces(longest=…) "
                "to the verifier's max_lifetime and twice its skew)",
                path="longest",
            )
        digest = blake2b(key, digest_size=16, person=b"rung nonce v1").hexdigest()
        period = int(until.timestamp() // self._longest)
        place = f"{period % 3}-{digest[:2]}"
        for attempt in range(_TRIES):
            kept = self._backend.document("wire_nonces", place, (None,))
            slot = _Slot(period) if kept is None else msgspec.json.decode(kept.body, type=_Slot)
            if slot.period > period or (slot.period == period and digest in slot.nonces):
                return False
            nonces = (*slot.nonces, digest) if slot.period == period else (digest,)
            body = msgspec.json.encode(_Slot(period, nonces)).decode()
            try:
                with self._backend.write(None) as tx:
                    tx.put(
                        Document(kind="wire_nonces", id=place, body=body), expected=0 if kept is None else kept.version
                    )
            except ConflictError:
                time.sleep(0.001 * attempt)
            else:
                return True
        raise StoreBusyError(
            f"a nonce could not be written in {_TRIES} tries (receive with fewer workers at once)", waited=0.0
        )
