"""Two deployments that speak by wire: `planner` sends, `orders` receives. Time is a number that a test turns."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from rung import ContextStore
from rung.wire import Ed25519Key, Signer, TrustedKey, TrustPolicy, Verifier

KEY = Ed25519Key(bytes(range(32)))


class Time:
    """A clock that stands still until it is moved."""

    def __init__(self) -> None:
        self.now = datetime(2026, 11, 30, 12, 0, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.now

    def pass_by(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)


@pytest.fixture
def time() -> Time:
    return Time()


@pytest.fixture
def sender(time: Time) -> ContextStore:
    return ContextStore(clock=time)


@pytest.fixture
def receiver(time: Time) -> ContextStore:
    return ContextStore(clock=time)


@pytest.fixture
def signer(time: Time) -> Signer:
    return Signer("planner", "k1", KEY, clock=time)


@pytest.fixture
def verifier(time: Time) -> Verifier:
    return Verifier("orders", issuers={"planner": [TrustedKey(key_id="k1", key=KEY.public)]}, clock=time)


@pytest.fixture
def trust() -> TrustPolicy:
    return TrustPolicy(issuer="planner")
