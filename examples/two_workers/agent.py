"""The other agent, `planner`: a process, a store and a key of its own. It was taken in by what it read.

It reads one envelope from its input and writes one to its output, both base64.
"""

from __future__ import annotations

import base64
import os
import sys
from typing import Any

from rung import ContextStore, Instruction, TaskState
from rung.wire import (
    Ed25519Key,
    Ed25519PublicKey,
    Signer,
    TrustedKey,
    TrustPolicy,
    Verifier,
    encode_envelope,
    receive,
)


def main() -> None:
    support = Ed25519PublicKey(bytes.fromhex(os.environ["SUPPORT_PUBLIC_KEY"]))
    key = Ed25519Key(bytes.fromhex(os.environ["PLANNER_KEY"]))
    verifier = Verifier("planner", issuers={"support": [TrustedKey(key_id="2026-11", key=support)]})
    store = ContextStore().scope(tenant="acme")
    sent = base64.b64decode(sys.stdin.read())
    (page,) = receive(store, sent, verifier=verifier, trust=TrustPolicy(issuer="support"))

    text = page.reveal("planned with")
    task = store.transform(page, to=TaskState, content=f"Next step, agreed with the customer: {text}")
    # Its own store would refuse this as well. One that has no such rule lets it pass, so another one stands in
    # for it here, which has never seen the page.
    careless: Any = ContextStore().scope(tenant="acme")
    order = careless.add(Instruction, text.replace("IMPORTANT: ", ""), source="planner")
    envelope = Signer("planner", "2026-11", key).sign([task, order], audience="support")
    print(base64.b64encode(encode_envelope(envelope)).decode())


if __name__ == "__main__":
    main()
