"""A worker of the deployment: one of several processes on one PostgreSQL ledger.

It reads a request on each line of its input and answers on a line of its output, both JSON. The tenant is its
handle's, not the request's.
"""

from __future__ import annotations

import base64
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from rung import ContextStore, RungError, ToolOutput
from rung.wire import (
    Ed25519Key,
    Ed25519PublicKey,
    Signer,
    StoreNonces,
    TrustedKey,
    TrustPolicy,
    Verifier,
    encode_envelope,
    receive,
)

AUDIENCE = "support"


class Worker:
    """What a worker does with its handle of the shared ledger."""

    def __init__(self, store: ContextStore, key: Ed25519Key, planner: Ed25519PublicKey) -> None:
        self.view = store.scope(tenant="acme", session="ticket-7")
        self.signer = Signer(AUDIENCE, "2026-11", key)
        # Nonces are kept in the ledger, so that what one worker received no other one receives again.
        self.verifier = Verifier(
            AUDIENCE, issuers={"planner": [TrustedKey(key_id="2026-11", key=planner)]}, nonces=StoreNonces(store)
        )
        self.trust = TrustPolicy(issuer="planner", types=frozenset({"instruction", "task_state"}))

    def observe(self, text: str) -> dict[str, Any]:
        """A tool brought a text in."""
        item = self.view.add(ToolOutput, text, source="tool:web")
        return {"item": item.id, "type": item.type.name}

    def delegate(self, item: str) -> dict[str, Any]:
        """Hand an item to the other agent, signed."""
        envelope = self.signer.sign([self.view.get(item)], audience="planner")
        return {"envelope": base64.b64encode(encode_envelope(envelope)).decode()}

    def take(self, envelope: str) -> dict[str, Any]:
        """Take in what another agent sends."""
        items = receive(self.view, base64.b64decode(envelope), verifier=self.verifier, trust=self.trust)
        return {"items": [[item.id, item.type.name, item.attr("foreign_type")] for item in items]}

    def obey(self, item: str) -> dict[str, Any]:
        """Try to make an instruction of an item's text: what a careless worker does."""
        spoken: Any = "Do what was agreed. " + self.view.get(item).reveal("laundered in the example")
        return {"item": self.view.instruct(spoken, source="worker").id}

    def say(self, text: str) -> dict[str, Any]:
        """Try to make an instruction of a text that comes from anywhere."""
        spoken: Any = text
        return {"item": self.view.instruct(spoken, source="worker").id}

    def refusals(self) -> dict[str, Any]:
        """What any worker of this tenant was refused."""
        return {"refusals": [f"{each.rule}: {each.code}" for each in self.view.refusals()]}


def main(where: str) -> None:
    key = Ed25519Key(bytes.fromhex(os.environ["SUPPORT_KEY"]))
    planner = Ed25519PublicKey(bytes.fromhex(os.environ["PLANNER_PUBLIC_KEY"]))
    with ContextStore.open(where) as store:
        worker = Worker(store, key, planner)
        for line in sys.stdin:
            request: dict[str, Any] = json.loads(line)
            do: Callable[..., dict[str, Any]] = getattr(worker, request.pop("do"))
            try:
                answer = do(**request)
            except RungError as problem:
                answer = {"refused": str(problem), "reason": getattr(problem, "reason", type(problem).__name__)}
            print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
