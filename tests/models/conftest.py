from __future__ import annotations

from collections.abc import Iterator

import pytest

from rung.testing.local import LocalModel, available, local_model


@pytest.fixture(scope="session")
def local() -> Iterator[LocalModel]:
    there = available()
    if not there:
        pytest.fail(there.reason)
    with local_model() as model:
        yield model


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or address of the developer's own plays a part."""
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_BASE_URL",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_BASE_URL",
        "ANTHROPIC_AUTH_TOKEN",
    ):
        monkeypatch.delenv(name, raising=False)
