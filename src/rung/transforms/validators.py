"""Validators: each looks at one item before a transform and gives a failure, or None.

A validator decides on fields, never on meaning, and never with a model. One that raises has refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

import msgspec

from rung.errors import ConfigError, missing_extra, names
from rung.ledger.channels import Endorsement
from rung.ledger.content import text_digest
from rung.policy.rules import Envelope, PolicySet
from rung.records.item import ContextItem, body
from rung.records.labels import Sensitivity


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a validator refused: a stable code and a detail without content."""

    validator: str
    code: str
    detail: str


class Check(msgspec.Struct, frozen=True, kw_only=True):
    """What a validator may look at.

    Attributes:
        item: the item that would change its type.
        target: the name of the type that it would get.
        policy: the store's policy.
        now: the moment, aware UTC.
        argument: what stands behind the colon of `name:argument` in the policy, or an empty text.
        endorsement: who answers for it, or None.
    """

    item: ContextItem[Any]
    target: str
    policy: PolicySet
    now: datetime
    argument: str = ""
    endorsement: Endorsement | None = None


Validator = Callable[[Check], Failure | None]


def run(name: str, validator: Validator, check: Check) -> Failure | None:
    """One validator's answer; one that raises counts as a refusal."""
    try:
        return validator(check)
    except Exception as problem:
        return Failure(validator=name, code="validator_failed", detail=f"it raised {type(problem).__name__}")


def structured(item: ContextItem[Any]) -> Any:
    """The JSON value of an item's text, or None where it is prose."""
    text = body(item)
    if item.media_type != "application/json" and text.lstrip()[:1] not in ("{", "["):
        return None
    try:
        return msgspec.json.decode(text.encode("utf-8"))
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None


_FAILED_STATUS = frozenset(
    {
        "aborted", "crashed", "denied", "error", "errored", "exception", "fail", "failed", "failure", "forbidden",
        "internal_error", "not_found", "timed_out", "timeout", "unauthorized", "unavailable",
    }
)  # fmt: skip
_HTTP_FIELDS = ("status_code", "statusCode", "http_status", "httpStatus", "status")


def envelope(check: Check) -> Failure | None:
    """A result that reports its own failure cannot become evidence.

    Structured results are judged by the source's declared envelope, or else by the top level only:
    `isError`, `error`, `ok` or `success` false, an HTTP status of 400 or more, and `status`. Prose is
    judged by markers that stand where a failure is reported: at the head of its first lines or its last.
    """
    text = body(check.item)
    if not text.strip() and not check.item.parts:
        return Failure(validator="envelope", code="empty", detail="the result is empty")
    source = check.policy.source(check.item.source)
    value = structured(check.item)
    if value is None:
        if source.envelope is not None:
            return Failure(
                validator="envelope",
                code="not_structured",
                detail="an envelope is declared and the result is prose",
            )
        return _prose(text) if source.reports_failure else None
    if not isinstance(value, Mapping):
        if source.envelope is not None:
            return Failure(validator="envelope", code="no_envelope", detail="the declared envelope is not there")
        return None
    fields = cast("Mapping[str, Any]", value)
    found = _declared(fields, source.envelope) if source.envelope is not None else _common(fields)
    return None if found is None else Failure(validator="envelope", code="reported_failure", detail=found)


def _declared(value: Mapping[str, Any], declared: Envelope) -> str | None:
    for name in declared.required:
        if name not in value:
            return f"the field `{name}` is missing"
    if declared.field is None:
        return None
    if declared.field not in value:
        return f"the field `{declared.field}` is missing"
    said = value[declared.field]
    if declared.ok is not None and not _among(said, declared.ok):
        return f"the field `{declared.field}` is not among the values that mean success"
    if declared.failed is not None and _among(said, declared.failed):
        return f"the field `{declared.field}` is among the values that mean failure"
    return None


def _among(said: object, values: tuple[object, ...]) -> bool:
    # 1 == True in Python and not in JSON.
    return any(said == value and isinstance(said, bool) == isinstance(value, bool) for value in values)


def _common(value: Mapping[str, Any]) -> str | None:
    for name in ("isError", "is_error"):
        if value.get(name) is True:
            return f"`{name}` is true"
    for name in ("error", "Error"):
        if value.get(name) not in (None, False, "", [], {}, 0):
            return f"`{name}` is set"
    for name in ("ok", "success"):
        if value.get(name) is False:
            return f"`{name}` is false"
    for name in _HTTP_FIELDS:
        code = value.get(name)
        if isinstance(code, int) and not isinstance(code, bool) and 400 <= code <= 599:
            return f"`{name}` is {code}"
    status = value.get("status")
    if isinstance(status, str):
        word = re.sub(r"[\s-]+", "_", status.strip().lower())
        if word in _FAILED_STATUS or re.fullmatch(r"[45]\d\d", word):
            return "`status` reports a failure"
    return None


_FAILED_WORD = r"(?:failed|failure|error(?:ed)?|unavailable|timed[ -]?out|timeout|aborted|crashed|denied)"
_HTTP_NAMES = (
    "bad request|unauthorized|forbidden|not found|conflict|gone|too many requests|internal server error|"
    "not implemented|bad gateway|service unavailable|gateway time-?out"
)
_DONE = "complete|connect|fetch|find|get|load|open|process|read|reach|retrieve"
_THING = "request|call|lookup|operation|command|query|tool|tool call|connection"
_REPORTED = r"(?:fatal |unexpected |internal |tool |api )?(?:error|exception|failure)"
_MARKERS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        rf"(?:tool |api |call |request |response |result )?status\s*[:=]\s*{_FAILED_WORD}\b",
        rf"{_REPORTED}\s*(?:\([^)]*\)|\[[^\]]*\]|\d+)?\s*[:!—–-]",
        r"failed\s*[:!—–-]",
        r"fatal\s*:",
        r"traceback \(most recent call last\)",
        r"(?:https?(?:/\d(?:\.\d)?)?\s+|status\s+code\s*[:=]?\s*|http status\s*[:=]?\s*)[45]\d\d\b",
        rf"[45]\d\d\s+(?:{_HTTP_NAMES})",
        rf"(?:the |this )?(?:{_THING})\s+(?:has\s+|was\s+)?(?:failed|timed out|aborted|refused|denied)\b",
        r"(?:failed|unable|not able) to\b",
        rf"(?:could not|couldn't|cannot|can't)\s+(?:{_DONE})\b",
        r"(?:[a-z_]\w*\.)*[A-Za-z_]\w*(?:error|exception)\s*:",
        r"(?:permission|access) denied\b",
        r"(?:connection|operation|request) timed out\b",
        r"segmentation fault\b",
    )
)
_REPORTING_LINES = 5


def _prose(text: str) -> Failure | None:
    lines = [line for line in (raw.strip(" \t\r*#>-•`\"'") for raw in text[:20_000].splitlines()) if line]
    tail = [line for line in (raw.strip() for raw in text[-2_000:].splitlines()) if line]
    for line in [*lines[:_REPORTING_LINES], *tail[-1:]]:
        if any(marker.match(line) for marker in _MARKERS):
            return Failure(validator="envelope", code="reported_failure", detail="its text reports a failure")
    return None


def size(check: Check) -> Failure | None:
    """No larger than `size:BYTES` says, or than 65,536 bytes of UTF-8."""
    limit = int(check.argument) if check.argument else 65_536
    found = len(body(check.item).encode("utf-8"))
    if found <= limit:
        return None
    return Failure(validator="size", code="too_large", detail=f"it is {found} bytes, the limit is {limit}")


def freshness(check: Check) -> Failure | None:
    """Not older than `freshness:CLASS` says, than its source's, or than its type's class."""
    item = check.item
    if item.expires_at is not None and item.expires_at <= check.now:
        return Failure(validator="freshness", code="expired", detail="it has expired")
    source = check.policy.source(item.source)
    named = check.argument or source.freshness
    if named is None and source.max_age is None:
        rules = check.policy.types.get(item.type.name)
        named = None if rules is None else rules.freshness
    limit = source.max_age if named is None else check.policy.freshness.get(named)
    if named is not None and limit is None:
        return Failure(validator="freshness", code="unknown_class", detail=f"no freshness class `{named}`")
    age = max(0.0, (check.now - item.seen_at).total_seconds())
    if limit and age > limit:
        return Failure(validator="freshness", code="stale", detail=f"it is {age:.0f} s old, the limit is {limit:.0f} s")
    return None


def schema(check: Check) -> Failure | None:
    """The result fits the JSON Schema that its source declares (`sources.NAME.schema`)."""
    declared = check.policy.source(check.item.source).schema
    if declared is None:
        return Failure(
            validator="schema",
            code="no_schema",
            detail=f"`sources.{check.item.source}.schema` is not declared",
        )
    value = structured(check.item)
    if value is None:
        return Failure(validator="schema", code="not_structured", detail="the result is prose")
    problem = schema_problem(value, declared)
    return None if problem is None else Failure(validator="schema", code="schema_mismatch", detail=problem)


def schema_problem(value: object, declared: Mapping[str, object]) -> str | None:
    """Where a value breaks a JSON Schema and by which keyword, without the value; None where it fits.

    Raises:
        MissingExtraError: jsonschema is not installed.
    """
    try:
        from jsonschema.validators import validator_for
    except ImportError:
        raise missing_extra("jsonschema", "schema") from None
    kind: Any = validator_for(declared)
    checker: Any = kind(declared)
    problems = sorted(checker.iter_errors(value), key=lambda problem: str(problem.json_path))
    if not problems:
        return None
    first = problems[0]
    return f"`{first.json_path}` breaks `{first.validator}`"


def approval(check: Check) -> Failure | None:
    """A person answers for exactly this text: an endorsement whose digest is the text's."""
    given = check.endorsement
    if given is None:
        return Failure(
            validator="approval",
            code="no_approval",
            detail="nobody approved it (pass endorsement=Endorsement(by=…, reason=…))",
        )
    if given.digest and given.digest != text_digest(body(check.item)):
        return Failure(validator="approval", code="other_text", detail="the endorsement is bound to another text")
    return None


BUILTIN: Mapping[str, Validator] = {
    "envelope": envelope,
    "size": size,
    "freshness": freshness,
    "schema": schema,
    "approval": approval,
}


def require_known(policy: PolicySet, known: Mapping[str, Validator]) -> None:
    """Refuse a policy that names a validator nobody gave.

    Raises:
        ConfigError: it names the transition and the validator.
    """
    for number, step in enumerate(policy.transitions):
        for given in step.validators:
            if given.partition(":")[0] not in known:
                raise ConfigError(
                    f"`transitions[{number}].validators` names the unknown validator `{given}` "
                    f"(one of {names(sorted(known), 20)}; pass your own as ContextStore(validators=…))",
                    path=f"transitions[{number}].validators",
                )


def excerpt(item: ContextItem[Any], length: int = 80) -> str:
    """The start of an item's text for an error message, unless it is personal or restricted."""
    if item.labels.sensitivity >= Sensitivity.PERSONAL:
        return "(not shown: personal or restricted)"
    text = " ".join(body(item).split())
    return repr(text if len(text) <= length else text[: length - 1] + "…")
