"""Why an envelope is refused: stable codes, and the error that carries one."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from rung.errors import WireError

REASONS: Mapping[str, str] = {
    "malformed": "its bytes are no envelope, or its payload is not what it says it is",
    "too_large": "it is larger than the verifier takes",
    "unsupported_version": "it is of another version of the format",
    "not_canonical": "its bytes are not the one way to write it",
    "unknown_issuer": "no key of its issuer is known here",
    "unknown_key": "its issuer has no key of this id here",
    "algorithm_mismatch": "it names another algorithm than its key's",
    "bad_signature": "its signature does not cover its bytes",
    "key_not_valid": "its key was not valid when it was signed",
    "other_audience": "it is meant for somebody else",
    "issued_in_future": "it was signed later than now, beyond the clock skew",
    "expired": "its time is over",
    "lifetime_too_long": "it claims to be valid for longer than the verifier allows",
    "replayed": "it was received before",
    "wrong_payload": "it carries something else than items",
    "digest_mismatch": "an item contradicts its own digest",
    "duplicate_item": "two of its items have one id",
    "lineage_cycle": "its items are derived from each other in a circle",
    "lineage_labels": "an item combines two tenants or two subjects",
    "not_trusted": "no trust policy names its issuer",
    "type_not_trusted": "its issuer may not assert this type",
    "tenant_not_trusted": "its issuer may not speak in this tenant",
    "other_tenant": "an item belongs to another tenant than the receiving handle's",
    "subject_not_trusted": "its issuer may not speak of this subject",
    "other_subject": "an item belongs to another subject than the receiving handle's",
    "scope_not_trusted": "its issuer may not assert this scope",
    "above_sensitivity": "an item is more sensitive than its issuer may send",
    "refused_by_store": "a rule of the receiving store refuses an item",
}
"""Every `WireError.reason`, with what it means."""


_ID = re.compile(r"[0-9A-Za-z_.:-]{1,64}\Z")


def shown(foreign_id: str) -> str:
    """An id that somebody else chose, for a message: `?` where it could be anything but an id."""
    return foreign_id if _ID.match(foreign_id) else "?"


def refusal(reason: str, message: str, **fields: Any) -> WireError:
    """The error of one of `REASONS`."""
    return WireError(message, reason=reason, **fields)
