"""Every backend keeps the contract, and keeps it alike."""

from __future__ import annotations

import pytest

from rung.testing import backend_contract
from rung.testing.backend_contract import CHECKS, Check, OpenHandle


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_contract(check: Check, open_handle: OpenHandle) -> None:
    check(open_handle)


def test_an_exported_log_is_taken_in_as_it_was(open_handle: OpenHandle, open_other: OpenHandle) -> None:
    backend_contract.an_exported_log_is_taken_in_as_it_was(open_handle, open_other)


def test_every_check_is_in_the_table() -> None:
    named = {
        name
        for name, value in vars(backend_contract).items()
        if callable(value) and getattr(value, "__annotations__", {}).keys() >= {"open_handle"} and name[0] != "_"
    }
    assert named - {"opened"} == {check.__name__ for check in CHECKS}
