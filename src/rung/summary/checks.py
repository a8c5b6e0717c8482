"""What a summary must be before it stands for anything."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from rung.ledger.content import folded
from rung.transforms.validators import Failure

SHORTEST_ECHO = 40
"""Letters and digits: a shorter earlier summary may come back whole."""


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What a check of a summary looks at.

    Attributes:
        text: the summary; `tokens` of it, of at most `budget`.
        previous: the summary before it, or an empty text.
        is_model: whether a summariser wrote it; the extract merges by construction.
        before, after: tokens of the request's part that it replaces, and that it would take, frames included.
        required: texts that must go on.
        carried: texts that go on beside it.
    """

    text: str
    tokens: int
    budget: int
    previous: str = ""
    is_model: bool = True
    before: int = 0
    after: int = 0
    required: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()


SummaryCheck = Callable[[Check], Failure | None]


def says_something(check: Check) -> Failure | None:
    """It is not empty."""
    if check.text.strip():
        return None
    return Failure(validator="says_something", code="empty", detail="the summary is empty")


def budget(check: Check) -> Failure | None:
    """It takes no more than its budget."""
    if check.tokens <= check.budget:
        return None
    return Failure(
        validator="budget", code="over_budget", detail=f"it has {check.tokens} tokens, the budget is {check.budget}"
    )


def repeats(check: Check) -> Failure | None:
    """It does not contain the summary before it word for word: such summaries only ever grow."""
    if not check.is_model:
        return None
    earlier = folded(check.previous)
    if len(earlier) < SHORTEST_ECHO or earlier not in folded(check.text):
        return None
    return Failure(validator="repeats", code="repeats_previous", detail="it contains the previous summary verbatim")


def shrinks(check: Check) -> Failure | None:
    """The request gets smaller by it."""
    if check.after < check.before:
        return None
    return Failure(
        validator="shrinks",
        code="does_not_shrink",
        detail=f"it would take {check.after} tokens in the place of {check.before}",
    )


def constraints(check: Check) -> Failure | None:
    """What is required goes on: in the summary, or beside it."""
    held = [folded(check.text), *(folded(text) for text in check.carried)]
    missing = sum(1 for text in check.required if not any(folded(text) in one for one in held))
    if not missing:
        return None
    return Failure(
        validator="constraints", code="constraint_missing", detail=f"{missing} required constraints are missing"
    )


BUILTIN_CHECKS: tuple[SummaryCheck, ...] = (says_something, budget, repeats, shrinks, constraints)


def failures_of(check: Check, checks: Sequence[SummaryCheck]) -> tuple[Failure, ...]:
    """What is wrong with a summary; a check that raises has refused it."""
    found: list[Failure] = []
    for one in checks:
        try:
            failure = one(check)
        except Exception as problem:
            name = getattr(one, "__name__", "check")
            failure = Failure(validator=name, code="validator_failed", detail=f"it raised {type(problem).__name__}")
        if failure is not None:
            found.append(failure)
    return tuple(found)
