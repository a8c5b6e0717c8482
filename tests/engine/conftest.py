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
