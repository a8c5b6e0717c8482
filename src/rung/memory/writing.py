"""What may be kept: checks of a memory's text, beside the policy's own on what it is derived from."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any, NoReturn

from rung.errors import ContextTypeError, InputError, TransformError
from rung.ledger.content import content_key
from rung.ledger.ledger import Ledger
from rung.ledger.reach import Reach
from rung.memory.values import Proposal, Validate
from rung.policy.decision import Reason
from rung.policy.rules import USER_INTEGRITY
from rung.records.item import ContextItem, body
from rung.records.text import LabelledText
from rung.transforms.validators import Failure

FROM = frozenset({"user", "evidence", "memory"})
"""Types whose text may be kept. What a tool returned or a model said must have become evidence before."""

_LITERAL = re.compile(r"[^\s\"'<>()\[\]{},;]+")
_TRAILING = ".,:;!?。！？、"


def check(
    ledger: Ledger, reach: Reach, proposal: Proposal, validators: Sequence[Validate], most_bytes: int, source: str
) -> None:
    """Refuse what may not be kept; a refusal is recorded like every other.

    Raises:
        ContextTypeError: the very text came in as a tool's result or a model's reply.
        TransformError: a validator refused; `failures` says which and why.
    """
    first = _foreign_origin(ledger, reach, proposal)
    if first is not None:
        name, item_id = first
        message = f"{name} cannot be turned into memory context (content first registered as {name}, id={item_id})"
        _record(ledger, reach, Reason(rule="transition", code="no_transition", message=message), proposal, source)
        raise ContextTypeError(message, origin_id=item_id, item_type=name, target="memory", code="no_transition")
    failures = list(_failures(proposal, validators, most_bytes))
    if failures:
        _refuse(ledger, reach, proposal, failures, source)


def _failures(proposal: Proposal, validators: Sequence[Validate], most_bytes: int) -> Iterator[Failure]:
    size = len(proposal.text.encode("utf-8", "replace"))
    if not proposal.text.strip():
        yield Failure(validator="size", code="empty", detail="it says nothing")
    elif size > most_bytes:
        yield Failure(validator="size", code="too_large", detail=f"it is {size} bytes, the limit is {most_bytes}")
    ungrounded = _ungrounded(proposal)
    if ungrounded:
        yield Failure(
            validator="grounded",
            code="not_in_origin",
            detail=f"{ungrounded} of its figures, addresses or ids do not occur in what it is derived from",
        )
    for validate in validators:
        try:
            found = validate(proposal)
        except Exception as problem:
            found = Failure(
                validator=getattr(validate, "__name__", "validator"),
                code="validator_failed",
                detail=f"it raised {type(problem).__name__}",
            )
        if found is not None:
            yield found


def _refuse(ledger: Ledger, reach: Reach, proposal: Proposal, failures: Sequence[Failure], source: str) -> NoReturn:
    told = "; ".join(f"{failure.validator}: {failure.detail}" for failure in failures)
    message = f"this cannot be kept as memory ({told})"
    _record(ledger, reach, Reason(rule="validators", code=failures[0].code, message=message), proposal, source)
    raise TransformError(message, failures=tuple(failures), item_id=proposal.items[0].id, target="memory")


def _record(ledger: Ledger, reach: Reach, reason: Reason, proposal: Proposal, source: str) -> None:
    ledger.record_refusal(reason, reach, target="memory", source=source, text=proposal.text)


def _foreign_origin(ledger: Ledger, reach: Reach, proposal: Proposal) -> tuple[str, str] | None:
    """The type and id under which a text first came in, where that is not one that may be kept."""
    key = content_key(proposal.text)
    if not key or any(content_key(body(item)) == key for item in proposal.items):
        return None
    with ledger.backend.write(reach.tenant) as tx:
        rows = tx.origins([key], reach.tenants).get(key, ())
    if not rows or any(row.type in FROM or ledger.policy.integrity(row.type) >= USER_INTEGRITY for row in rows):
        return None
    first = min(rows, key=lambda row: row.ordinal)
    return first.type, first.item_id


def _ungrounded(proposal: Proposal) -> int:
    """How many of the text's literals (anything with a digit, an `@` or `://`) its origins do not hold."""
    held = _plain(" ".join(body(item) for item in proposal.items))
    return sum(1 for literal in _literals(_plain(proposal.text)) if literal not in held)


def _literals(text: str) -> Iterator[str]:
    for found in _LITERAL.finditer(text):
        word = found[0].strip(_TRAILING)
        if any(char.isdigit() for char in word) or "@" in word or "://" in word:
            yield word


def _plain(text: str) -> str:
    return unicodedata.normalize("NFKC", text).casefold()


def plain_text(ledger: Ledger, reach: Reach, text: str | LabelledText | None) -> str | None:
    """The text to keep, after a look at the labels that it carries.

    Raises:
        ContextTypeError: a piece of it came from an item whose text may not be kept.
    """
    if text is None:
        return None
    if isinstance(text, LabelledText):
        ids = list(dict.fromkeys(origin.item_id for origin in text.origins))
        for item in ledger.get(ids, reach):
            if item.type.name not in FROM:
                raise ContextTypeError(
                    f"{item.type.name} cannot be turned into memory context (the text carries labels of item "
                    f"`{item.id}` from `{item.source}`)",
                    item_id=item.id,
                    item_type=item.type.name,
                    target="memory",
                )
        return text.reveal("kept as a memory")
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("`text` of a memory is text (reveal nothing: give item.text)", field="text")
    return text


def origin_of(items: Sequence[ContextItem[Any]]) -> str:
    """Who said it: the documents or sources of what it is derived from."""
    named = (item.attr("origin") or item.attr("document") or item.source for item in items)
    return ", ".join(dict.fromkeys(named))
