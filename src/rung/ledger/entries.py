"""What is logged of a decision, and how a refusal is told."""

from __future__ import annotations

import inspect
import logging
import warnings
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from rung.errors import (
    ContextTypeError,
    LaunderingError,
    RungError,
)
from rung.ledger.backend import LogEntry
from rung.ledger.channels import Endorsement
from rung.ledger.content import text_digest
from rung.ledger.declassification import Declassification
from rung.ledger.prepare import Prepared
from rung.ledger.reach import Reach
from rung.policy.decision import Reason
from rung.records.canonical import canonical_json, json_of
from rung.records.draft import Draft
from rung.records.item import ContextItem

_log = logging.getLogger("rung")


def registered(item: ContextItem[Any], now: datetime, channel: str | None) -> LogEntry:
    facts: dict[str, object] = {
        "item": item.id,
        "type": item.type.name,
        "source": item.source,
        "digest": item.digest.hex(),
    }
    if item.derived_from:
        facts |= {"from": list(item.derived_from), "via": item.via}
    if channel is not None:
        facts["channel"] = channel
    return LogEntry(
        tenant=item.labels.tenant,
        at=now,
        kind="transform" if item.via else "registration",
        body=json_of(facts),
    )


def endorsement_entry(word: Endorsement, item_id: str, now: datetime, reach: Reach) -> LogEntry:
    return LogEntry(
        tenant=reach.tenant,
        at=now,
        kind="endorsement",
        body=canonical_json({"item": item_id, **msgspec.to_builtins(word)}),
    )


def declassification_entry(
    word: Declassification, item_id: str, parents: Sequence[str], now: datetime, reach: Reach
) -> LogEntry:
    facts = {"item": item_id, "from": list(parents), **msgspec.to_builtins(word, order="deterministic")}
    return LogEntry(tenant=reach.tenant, at=now, kind="declassification", body=canonical_json(facts))


def refused(made: Prepared | Draft, reason: Reason, now: datetime, reach: Reach) -> LogEntry:
    text = made.text if isinstance(made, Prepared) else ""
    return refusal_entry(reason, now, reach, made.type.name, made.source, text)


def refusal_entry(reason: Reason, now: datetime, reach: Reach, target: str, source: str, text: str) -> LogEntry:
    return LogEntry(
        tenant=reach.tenant,
        at=now,
        kind="refusal",
        body=canonical_json(
            {
                "rule": reason.rule,
                "code": reason.code,
                "mode": reason.mode,
                "target": target,
                "source": source,
                "message": reason.message,
                "digest": text_digest(text),
                "hits": [msgspec.to_builtins(hit) for hit in reason.hits],
            }
        ),
    )


def error(reason: Reason) -> RungError:
    if reason.hits:
        return LaunderingError(reason.message, hits=reason.hits, rule=reason.rule, code=reason.code, **reason.fields)
    return ContextTypeError(reason.message, rule=reason.rule, code=reason.code, **reason.fields)


def tell(reason: Reason) -> None:
    if reason.mode == "warn":
        warnings.warn(f"{reason.message} [rule `{reason.rule}` warns]", ContextTypeWarning, stacklevel=_depth())
    elif reason.mode == "observe":
        _log.info("would refuse: %s", reason.message)


def _depth() -> int:
    """How far above the caller the application's own line is, as `warnings` counts."""
    frame, depth = inspect.currentframe(), 0
    while frame is not None and frame.f_globals.get("__name__", "").partition(".")[0] == "rung":
        frame, depth = frame.f_back, depth + 1
    return depth


class ContextTypeWarning(UserWarning):
    """A rule in mode `warn` would have refused this."""
