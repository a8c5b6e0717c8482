"""Anthropic's Messages API through the `anthropic` package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from rung.assembly.reply import Reply
from rung.errors import missing_extra
from rung.models.messages_wire import MessagesStream, messages_reply
from rung.models.provider import ProviderModel


class AnthropicMessages(ProviderModel):
    """Messages, of Anthropic or of any server that speaks it (`base_url`).

    Takes the requests of target `anthropic`; cache markers in them go out as they are. Thinking blocks come back as
    opaque parts and are sent again as they came, signature included. Anthropic wants a limit on every call:
    `max_tokens` is 4,096 where nobody gives one. Arguments: see `ProviderModel`.
    """

    provider: ClassVar[str] = "anthropic"
    target: ClassVar[str] = "anthropic"
    key_env: ClassVar[str] = "ANTHROPIC_API_KEY"
    base_url_env: ClassVar[str] = "ANTHROPIC_BASE_URL"
    default_max_tokens: ClassVar[int | None] = 4_096

    def _package(self) -> Any:
        try:
            import anthropic
        except ImportError:
            raise missing_extra("anthropic", "anthropic") from None
        return anthropic

    def _make(self, **options: Any) -> Any:
        return self._package().AsyncAnthropic(**options)

    def _endpoint(self, client: Any) -> Any:
        return client.messages

    def _arguments(self, request: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
        return {"max_tokens": max_tokens, **self._options, **request, "model": self._model}

    def _parse(self, raw: bytes) -> Reply:
        return messages_reply(self.provider, raw)

    def _assembler(self) -> MessagesStream:
        return MessagesStream(self.provider)
