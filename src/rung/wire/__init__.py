"""Items between processes and languages: a versioned schema, signed envelopes, and what they count for here.

    signer = Signer("planner", "2026-11", key)
    sent = encode_envelope(signer.sign(items, audience="orders"))          # … any transport …
    items = receive(view, sent, verifier=verifier, trust=TrustPolicy(issuer="planner"))

Signatures need `rung[wire]`; encodings and HMAC do not.
"""

from rung.wire.envelope import Envelope, decode_envelope, encode_envelope, signed_bytes
from rung.wire.keys import Ed25519Key, Ed25519PublicKey, HmacKey, SigningKey, TrustedKey, VerifyingKey
from rung.wire.nonces import MemoryNonces, NonceStore, StoreNonces
from rung.wire.reasons import REASONS
from rung.wire.receive import receive
from rung.wire.schema import (
    Session,
    decode_item,
    decode_manifest,
    decode_session,
    encode_item,
    encode_manifest,
    encode_session,
    schemas,
    session_of,
)
from rung.wire.sign import Opened, Signer, Verifier
from rung.wire.trust import ARRIVES_AS, TrustPolicy

__all__ = [
    "ARRIVES_AS",
    "REASONS",
    "Ed25519Key",
    "Ed25519PublicKey",
    "Envelope",
    "HmacKey",
    "MemoryNonces",
    "NonceStore",
    "Opened",
    "Session",
    "Signer",
    "SigningKey",
    "StoreNonces",
    "TrustPolicy",
    "TrustedKey",
    "Verifier",
    "VerifyingKey",
    "decode_envelope",
    "decode_item",
    "decode_manifest",
    "decode_session",
    "encode_envelope",
    "encode_item",
    "encode_manifest",
    "encode_session",
    "receive",
    "schemas",
    "session_of",
    "signed_bytes",
]
