"""Anthropic's token-count endpoint: the authority for Claude models, at the price of a request each."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rung.errors import (
    ModelAuthError,
    ModelError,
    ModelRateLimitError,
    ModelReplyError,
    ModelRequestError,
    ModelTimeoutError,
    missing_extra,
)

# What `POST /v1/messages/count_tokens` takes; the rest of a messages request does not change the count.
_FIELDS = frozenset(
    {
        "cache_control",
        "messages",
        "model",
        "output_config",
        "output_format",
        "system",
        "thinking",
        "tool_choice",
        "tools",
    }
)


class AnthropicCounter:
    """Counts whole requests by `client.messages.count_tokens` of the official `anthropic` client.

    `client` is your `anthropic.Anthropic`, or one is made from the environment. `model` is used where a
    request names none. Anthropic calls the number an estimate that may differ slightly from what a message
    uses, so `exact` is false.

    Raises `MissingExtraError` without the package, and the `ModelError` family for what the client raises.
    """

    __slots__ = ("_client", "exact", "model", "name")

    def __init__(self, client: Any = None, *, model: str | None = None) -> None:
        try:
            import anthropic
        except ImportError:
            raise missing_extra("anthropic", "anthropic") from None
        self._client: Any = anthropic.Anthropic() if client is None else client
        self.model = model
        self.name = "anthropic:count_tokens"
        self.exact = False

    def count_request(self, request: Mapping[str, Any]) -> int:
        """The input tokens of a messages request, as the provider counts them."""
        import anthropic

        fields = {name: value for name, value in request.items() if name in _FIELDS}
        if self.model is not None:
            fields.setdefault("model", self.model)
        try:
            answer = self._client.messages.count_tokens(**fields)
        except anthropic.APIError as error:
            raise _mapped(error) from error
        except TypeError as error:
            raise ModelRequestError(
                "the request misses a field that counting needs (give `model` and `messages`)",
                provider="anthropic",
            ) from error
        tokens = getattr(answer, "input_tokens", None)
        if not isinstance(tokens, int) or tokens < 0:
            raise ModelReplyError("the count endpoint sent no `input_tokens`", provider="anthropic")
        return tokens


def _mapped(error: Any) -> ModelError:
    import anthropic

    status = getattr(error, "status_code", None)
    fields: dict[str, Any] = {"provider": "anthropic", "status": status}
    if isinstance(error, anthropic.APIConnectionError):  # timeouts too
        return ModelTimeoutError("no answer from the count endpoint (check address and network)", **fields)
    if status in (401, 403):
        return ModelAuthError("the count endpoint refused the key", **fields)
    if status == 429:
        after = error.response.headers.get("retry-after", "")
        fields["retry_after"] = float(after) if after.replace(".", "", 1).isdigit() else None
        return ModelRateLimitError("the count endpoint asks to slow down", **fields)
    if status is not None and 400 <= status < 500:
        return ModelRequestError(f"the count endpoint calls the request invalid (status {status})", **fields)
    if isinstance(error, anthropic.APIResponseValidationError):
        return ModelReplyError("the count endpoint's reply cannot be read", **fields)
    return ModelError(f"the count endpoint failed (status {status})", **fields)
