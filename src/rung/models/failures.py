"""Providers' errors become ours here, once: one table for each package, and one function.

A table names classes, so that no package is imported. A class that is not named is taken by the nearest named one
that it derives from; the tests hold each table against everything that its package exports.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, cast

from rung.errors import (
    ModelAuthError,
    ModelError,
    ModelRateLimitError,
    ModelReplyError,
    ModelRequestError,
    ModelTimeoutError,
    RungError,
)

Failure = type[ModelError]

_COMMON: dict[str, Failure] = {
    "APIConnectionError": ModelTimeoutError,
    "APIError": ModelError,
    "APIResponseValidationError": ModelReplyError,
    "APIStatusError": ModelError,
    "APITimeoutError": ModelTimeoutError,
    "AuthenticationError": ModelAuthError,
    "BadRequestError": ModelRequestError,
    "ConflictError": ModelError,
    "InternalServerError": ModelError,
    "NotFoundError": ModelRequestError,
    "PermissionDeniedError": ModelAuthError,
    "RateLimitError": ModelRateLimitError,
    "UnprocessableEntityError": ModelRequestError,
}

OPENAI: dict[str, Failure] = {
    **_COMMON,
    "ContentFilterFinishReasonError": ModelReplyError,
    "InvalidWebhookSignatureError": ModelReplyError,
    "LengthFinishReasonError": ModelReplyError,
    "OAuthError": ModelAuthError,
    "OpenAIError": ModelError,
    "SubjectTokenProviderError": ModelAuthError,
    "WebSocketConnectionClosedError": ModelTimeoutError,
    "WebSocketQueueFullError": ModelError,
}
"""The classes of `openai`. A 404 is a wrong model or address, so the request is to blame."""

ANTHROPIC: dict[str, Failure] = {
    **_COMMON,
    "APIWebhookValidationError": ModelReplyError,
    "AnthropicError": ModelError,
    "CMEKContextUnavailableError": ModelError,
    "CMEKKeyDisabledError": ModelAuthError,
    "CMEKKeyNetworkBlockedError": ModelAuthError,
    "CMEKKeyUnreachableError": ModelError,
    "ClaudeCodeKeyCreatorNotMemberError": ModelAuthError,
    "ClaudeCodeVersionTooOldError": ModelRequestError,
    "ClientClosedRequestError": ModelTimeoutError,
    "ContentTooLargeError": ModelRequestError,
    "ContractSpendLimitReachedError": ModelAuthError,
    "CredentialsError": ModelAuthError,
    "DeadlineExceededError": ModelTimeoutError,
    "EnforcedSpendLimitReachedError": ModelAuthError,
    "GatewayTimeoutError": ModelTimeoutError,
    "HTTPNotImplementedError": ModelRequestError,
    "IdentityTokenFileError": ModelAuthError,
    "LinkedOrganizationBillingUnavailableError": ModelAuthError,
    "LinkedOrganizationSpendLimitReachedError": ModelAuthError,
    "OrganizationOnHoldError": ModelAuthError,
    "OrganizationTypeNotSupportedError": ModelAuthError,
    "OverloadedError": ModelRateLimitError,
    "ParentOrganizationRequiredError": ModelAuthError,
    "PaymentRequiredError": ModelAuthError,
    "PreconditionFailedError": ModelRequestError,
    "RampLimitExceededError": ModelRateLimitError,
    "RequestBodyEncodingInvalidError": ModelRequestError,
    "RequestBodyEncodingUnsupportedError": ModelRequestError,
    "RequestBodyTooLargeAfterDecodingError": ModelRequestError,
    "RequestHeaderFieldsTooLargeError": ModelRequestError,
    "RequestTimeoutError": ModelTimeoutError,
    "RequestTooLargeError": ModelRequestError,
    "RetryableError": ModelError,
    "SandboxEgressRestrictedError": ModelAuthError,
    "ServiceUnavailableError": ModelError,
    "WorkloadIdentityError": ModelAuthError,
    "WorkspaceHumanReviewDisabledError": ModelAuthError,
}
"""The classes of `anthropic`. What the account may not pay for is a key that the provider refuses: waiting a
second does not mend it, so it is no rate limit."""

TRANSPORT: dict[str, Failure] = {
    "StreamError": ModelReplyError,
    "DecodingError": ModelReplyError,
    "TransportError": ModelTimeoutError,
    "InvalidURL": ModelRequestError,
    "HTTPError": ModelError,
}
"""The classes of `httpx` and `httpx2`, which clients let through while a stream is read."""

_TABLES: dict[str, dict[str, Failure]] = {
    "openai": OPENAI,
    "litellm": OPENAI,  # its errors derive from those of `openai`
    "anthropic": ANTHROPIC,
    "httpx": TRANSPORT,
    "httpx2": TRANSPORT,
    "httpcore": TRANSPORT,
    "httpcore2": TRANSPORT,
}
_NO_MONEY = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"})
_BY_CODE: dict[str, Failure] = {
    "rate_limit_error": ModelRateLimitError,
    "rate_limit_exceeded": ModelRateLimitError,
    "overloaded_error": ModelRateLimitError,
    "invalid_request_error": ModelRequestError,
    "invalid_prompt": ModelRequestError,
    "authentication_error": ModelAuthError,
    "permission_error": ModelAuthError,
    "timeout_error": ModelTimeoutError,
}
_BY_STATUS: dict[int | None, Failure] = {
    402: ModelAuthError,
    408: ModelTimeoutError,
    413: ModelRequestError,
    504: ModelTimeoutError,
    529: ModelRateLimitError,
}
"""Statuses for which a package has no class of its own."""
_SAID: dict[Failure, str] = {
    ModelAuthError: "refuses the key (set a valid one, or look at the account's rights and billing)",
    ModelRateLimitError: "asks to slow down (wait, or raise the account's limits)",
    ModelTimeoutError: "did not answer in time, or the connection broke (raise `timeout`, or look at the address)",
    ModelRequestError: "calls the request invalid (see `detail`)",
    ModelReplyError: "sent a reply that breaks its protocol",
    ModelError: "failed (see `detail`)",
}


def failure_of(error: BaseException) -> Failure | None:
    """Our class for a provider's error, or None where the error is none of theirs."""
    for kind in type(error).__mro__:
        table = _TABLES.get(kind.__module__.partition(".")[0])
        if table is not None and kind.__name__ in table:
            return _refined(table[kind.__name__], error)
    if isinstance(error, TimeoutError | ConnectionError):
        return ModelTimeoutError
    return None


def _refined(failure: Failure, error: BaseException) -> Failure:
    """What one class says is not always the whole: its code or status may say more."""
    code = _code(error)
    if code in _NO_MONEY:
        return ModelAuthError
    if failure is ModelError:
        status = getattr(error, "status_code", None)
        if status is None or status < 400:  # reported inside a stream, which began well
            return _BY_CODE.get(code, failure)
        return _BY_STATUS.get(status, failure)
    return failure


def failed(provider: str, error: BaseException, *, secret: str | None = None) -> ModelError | None:
    """A provider's error as ours, or None where it is none of theirs. Never holds the key.

    Args:
        provider: the name that the message shows.
        error: what the client raised.
        secret: the key in use; it is taken out of what the provider said.
    """
    failure = failure_of(error)
    if failure is None:
        return None
    fields: dict[str, Any] = {
        "provider": provider,
        "status": getattr(error, "status_code", None),
        "code": _code(error),
        "detail": scrub(str(error), secret)[:500],
        "request_id": getattr(error, "request_id", None),
    }
    if failure is ModelRateLimitError:
        fields["retry_after"] = _retry_after(error)
    status, code = fields["status"], scrub(fields["code"], secret)[:80]
    fields["code"] = code
    facts = ", ".join(str(fact) for fact in (status, code) if fact)
    return failure(f"`{provider}` {_SAID[failure]}{f': {facts}' if facts else ''}", **fields)


def raised(provider: str, error: Exception, *, secret: str | None = None, address: str = "") -> RungError:
    """Our error for anything that a call to a model raised; what is ours already stays.

    The cause is kept, unless it spells the key. `address` is shown where nobody answers at it.
    """
    if isinstance(error, RungError):
        return error
    ours = _unreachable(provider, error, address) or failed(provider, error, secret=secret)
    if ours is None:
        ours = _unknown(provider, error, scrub(str(error), secret)[:500])
    if not (secret and secret in repr(error)):
        ours.__cause__ = error
    return ours


def _unreachable(provider: str, error: Exception, address: str) -> ModelError | None:
    if type(error).__name__ != "APIConnectionError" or not address:
        return None
    return ModelTimeoutError(
        f"`{provider}` cannot be reached at `{address}`, or the connection broke (start the server, or set "
        "`base_url` to its address)",
        provider=provider,
    )


def _unknown(provider: str, error: Exception, detail: str) -> ModelError:
    if isinstance(error, TypeError):
        named = re.search(r"unexpected keyword argument '(\w+)'", detail)
        fact = f"no argument `{named[1]}` (send it in `extra_body`)" if named else "no such request (see `detail`)"
        return ModelRequestError(f"the client of `{provider}` takes {fact}", provider=provider, detail=detail)
    if isinstance(error, ValueError):  # JSON or text that cannot be decoded, while a stream is read
        return ModelReplyError(f"`{provider}` sent what cannot be decoded", provider=provider)
    return ModelError(
        f"the call to `{provider}` raised `{type(error).__name__}` (see `detail`)", provider=provider, detail=detail
    )


def scrub(text: str, secret: str | None) -> str:
    """The text without the key."""
    return text.replace(secret, "***") if secret else text


def event_failure(provider: str, code: str, detail: str) -> ModelError:
    """Our error for a failure that a provider reports inside a reply or a stream."""
    failure = ModelAuthError if code in _NO_MONEY else _BY_CODE.get(code, ModelError)
    fields: dict[str, Any] = {"provider": provider, "status": None, "code": code, "detail": detail[:500]}
    if failure is ModelRateLimitError:
        fields["retry_after"] = None
    return failure(f"`{provider}` {_SAID[failure]}{f': {code[:80]}' if code else ''}", **fields)


def _code(error: BaseException) -> str:
    for name in ("error_code", "code", "type"):
        value = getattr(error, name, None)
        if isinstance(value, str) and value:
            return value
    return ""


def _retry_after(error: BaseException) -> float | None:
    """Seconds to wait, as the reply's headers say: `retry-after-ms`, or `Retry-After` (RFC 9110, 10.2.3)."""
    headers = cast("Mapping[str, str]", getattr(getattr(error, "response", None), "headers", None) or {})
    for name, divisor in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            wait = float(headers.get(name, ""))
        except ValueError:
            continue
        if 0 <= wait < float("inf"):
            return wait / divisor
    try:
        # A date counts from the server's own clock, so that ours plays no part.
        until, now = (parsedate_to_datetime(headers.get(name, "")) for name in ("retry-after", "date"))
        return max(0.0, (until - now).total_seconds())
    except (TypeError, ValueError):
        return None
