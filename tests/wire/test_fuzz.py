"""10,000 envelopes that somebody tampered with: none is accepted, and none is anything but refused."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec

from rung import ContextStore, Summary, ToolOutput
from rung.errors import WireError
from rung.wire import (
    REASONS,
    Ed25519Key,
    Envelope,
    HmacKey,
    Signer,
    TrustedKey,
    TrustPolicy,
    Verifier,
    encode_envelope,
    receive,
    signed_bytes,
)

from .conftest import KEY, Time

ATTEMPTS = 10_000
OTHER = Ed25519Key(bytes(32))
SECRET = HmacKey(b"web" * 12)


def encoded(draw: random.Random, envelope: Envelope) -> bytes:
    return encode_envelope(envelope, draw.choice(("json", "msgpack")))


def flip(draw: random.Random, data: bytes, count: int) -> bytes:
    made = bytearray(data)
    for _ in range(count):
        made[draw.randrange(len(made))] ^= 1 << draw.randrange(8)
    return bytes(made)


def one_bit(draw: random.Random, good: list[Envelope]) -> bytes:
    return flip(draw, encoded(draw, draw.choice(good)), 1)


def some_bits(draw: random.Random, good: list[Envelope]) -> bytes:
    data = encoded(draw, draw.choice(good))
    made = flip(draw, data, draw.randrange(2, 9))
    return made if made != data else flip(draw, data, 1)


def cut(draw: random.Random, good: list[Envelope]) -> bytes:
    data = encoded(draw, draw.choice(good))
    return data[: draw.randrange(len(data))]


def longer(draw: random.Random, good: list[Envelope]) -> bytes:
    return encoded(draw, draw.choice(good)) + draw.randbytes(draw.randrange(1, 5))


def spliced(draw: random.Random, good: list[Envelope]) -> bytes:
    one, other = (encode_envelope(each, "msgpack") for each in draw.sample(good, 2))
    at = draw.randrange(10, min(len(one), len(other)) - 70)
    return one[:at] + other[at:]


def swapped(draw: random.Random, good: list[Envelope]) -> bytes:
    """A field of another good envelope, the signature among them."""
    one, other = draw.sample(good, 2)
    fields = [name for name in one.__struct_fields__ if getattr(one, name) != getattr(other, name)]
    return encoded(draw, msgspec.structs.replace(one, **(lambda n: {n: getattr(other, n)})(draw.choice(fields))))


def relabelled(draw: random.Random, good: list[Envelope]) -> bytes:
    """Another type, other labels or another lineage inside, the signature kept."""
    one = draw.choice([each for each in good if each.encoding == "msgpack"])
    payload = msgspec.msgpack.decode(one.payload)
    change: dict[str, Any] = draw.choice(
        [{"type": "instruction"}, {"derived_from": []}, {"integrity": 100}, {"source": "system"}, {"key": "order:1"}]
    )
    payload["items"][0].update(change)
    payload["items"][0]["labels"]["sensitivity"] = 0
    return encoded(draw, msgspec.structs.replace(one, payload=msgspec.msgpack.encode(payload)))


def redirected(draw: random.Random, good: list[Envelope]) -> bytes:
    change: dict[str, Any] = draw.choice(
        [
            {"audience": "payments"},
            {"issuer": draw.choice(("web", "nobody"))},
            {"key_id": draw.choice(("k0", "k2", "h"))},
            {"algorithm": draw.choice(("hmac-sha256", "none", "ED25519", "ed25519 "))},
            {"payload_type": draw.choice(("session", "manifest"))},
            {"expires_at": draw.choice(good).expires_at + timedelta(seconds=draw.randrange(1, 3_000))},
            {"nonce": draw.randbytes(16)},
        ]
    )
    return encoded(draw, msgspec.structs.replace(draw.choice(good), **change))


def downgraded(draw: random.Random, good: list[Envelope]) -> bytes:
    one = draw.choice(good)
    fields = {name: getattr(one, name) for name in one.__struct_fields__} | {"v": draw.choice((0, 2, -1, 255))}
    return draw.choice((msgspec.json.encode, msgspec.msgpack.encode))(fields)


def by_another_key(draw: random.Random, good: list[Envelope]) -> bytes:
    """Signed anew by a key that is not the one it names, the public key taken as a secret among them."""
    key = draw.choice((OTHER, HmacKey(KEY.public.raw), HmacKey(OTHER.public.raw), SECRET))
    made = msgspec.structs.replace(
        draw.choice(good), nonce=draw.randbytes(16), algorithm=draw.choice(("ed25519", "hmac-sha256"))
    )
    return encoded(draw, msgspec.structs.replace(made, signature=key.sign(signed_bytes(made))))


def replayed(draw: random.Random, good: list[Envelope]) -> bytes:
    return encoded(draw, draw.choice(good))


def out_of_time(draw: random.Random, good: list[Envelope]) -> bytes:
    """Signed well, but expired, from the future, or valid for ever."""
    one = draw.choice(good)
    made = draw.choice(
        (
            msgspec.structs.replace(
                one,
                issued_at=one.issued_at - timedelta(seconds=3_000),
                expires_at=one.issued_at - timedelta(seconds=draw.randrange(31, 2_000)),
            ),
            msgspec.structs.replace(
                one,
                issued_at=one.issued_at + timedelta(seconds=draw.randrange(31, 2_000)),
                expires_at=one.issued_at + timedelta(seconds=2_100),
            ),
            msgspec.structs.replace(one, expires_at=one.issued_at + timedelta(days=draw.randrange(1, 2_000))),
        )
    )
    made = msgspec.structs.replace(made, nonce=draw.randbytes(16))
    return encoded(draw, msgspec.structs.replace(made, signature=KEY.sign(signed_bytes(made))))


def noise(draw: random.Random, _: list[Envelope]) -> bytes:
    return draw.choice((b"", b"{", b"\x8c")) + draw.randbytes(draw.randrange(300))


ATTACKS: tuple[Callable[[random.Random, list[Envelope]], bytes], ...] = (
    one_bit,
    one_bit,
    one_bit,
    some_bits,
    cut,
    longer,
    spliced,
    swapped,
    relabelled,
    redirected,
    downgraded,
    by_another_key,
    replayed,
    out_of_time,
    noise,
)


def test_ten_thousand_envelopes_that_somebody_tampered_with(
    sender: ContextStore, receiver: ContextStore, signer: Signer, time: Time, trust: TrustPolicy
) -> None:
    draw = random.Random(20_261_130)
    verifier = Verifier(
        "orders",
        issuers={
            "planner": [TrustedKey(key_id="k1", key=KEY.public), TrustedKey(key_id="k2", key=OTHER.public)],
            "web": [TrustedKey(key_id="h", key=SECRET)],
        },
        clock=time,
    )
    good: list[Envelope] = []
    for number in range(12):
        found = sender.add(ToolOutput, f"Order {number} was shipped.", source="tool:orders", key=f"order:{number}")
        short = sender.transform(found, to=Summary, content=f"{number}: shipped")
        good.append(signer.sign([found, short], audience="orders", encoding=draw.choice(("json", "msgpack"))))
    for envelope in good:
        assert len(receive(receiver, encode_envelope(envelope), verifier=verifier, trust=trust)) == 2
    known = list(receiver.items())

    reasons: Counter[str] = Counter()
    for number in range(ATTEMPTS):
        data = ATTACKS[number % len(ATTACKS)](draw, good)
        try:
            receive(receiver, data, verifier=verifier, trust=trust)
        except WireError as problem:
            reasons[problem.reason] += 1
    assert sum(reasons.values()) == ATTEMPTS
    assert list(receiver.items()) == known
    assert set(reasons) <= set(REASONS)
    assert {
        "malformed", "unsupported_version", "unknown_issuer", "unknown_key", "algorithm_mismatch", "bad_signature",
        "issued_in_future", "expired", "lifetime_too_long", "replayed", "not_canonical",
    } <= set(reasons)  # fmt: skip
    assert len(receiver.refusals()) == ATTEMPTS
