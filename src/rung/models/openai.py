"""OpenAI and everything that speaks its two APIs: Chat Completions and Responses, through the `openai` package."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar
from urllib.parse import urlsplit

from rung.assembly.reply import Reply
from rung.errors import missing_extra
from rung.models.chat_wire import ChatStream, chat_reply
from rung.models.provider import ProviderModel
from rung.models.responses_wire import ResponsesStream, responses_reply

_OWN_HOST = "api.openai.com"


class _OpenAI(ProviderModel):
    provider: ClassVar[str] = "openai"
    key_env: ClassVar[str] = "OPENAI_API_KEY"
    base_url_env: ClassVar[str] = "OPENAI_BASE_URL"

    def _package(self) -> Any:
        try:
            import openai
        except ImportError:
            raise missing_extra("openai", "openai") from None
        return openai

    def _make(self, **options: Any) -> Any:
        return self._package().AsyncOpenAI(**options)

    @property
    def compatible(self) -> bool:
        """Whether requests go to a server that speaks OpenAI's API without being OpenAI."""
        host = urlsplit(self.address).hostname
        return host is not None and host != _OWN_HOST and not host.endswith(f".{_OWN_HOST}")


class OpenAIChat(_OpenAI):
    """Chat Completions, of OpenAI or of any server that speaks it (`base_url`): vLLM, llama.cpp, Ollama, …

    Takes the requests of target `openai-chat`. Arguments: see `ProviderModel`.
    """

    target: ClassVar[str] = "openai-chat"

    def _endpoint(self, client: Any) -> Any:
        return client.chat.completions

    def _arguments(self, request: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
        arguments = {**self._options, **request, "model": self._model}
        if max_tokens is not None:
            # OpenAI's reasoning models refuse `max_tokens`; many compatible servers know no other name.
            arguments.setdefault("max_tokens" if self.compatible else "max_completion_tokens", max_tokens)
        return arguments

    def _stream_arguments(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        usage = {} if "stream_options" in arguments else {"stream_options": {"include_usage": True}}
        return {"stream": True, **usage}

    def _parse(self, raw: bytes) -> Reply:
        return chat_reply(self.provider, raw)

    def _assembler(self) -> ChatStream:
        return ChatStream(self.provider)


class OpenAIResponses(_OpenAI):
    """The Responses API. Reasoning items come back as opaque parts and are sent again as they are.

    Takes the requests of target `openai-responses`. Arguments: see `ProviderModel`. Where nothing may be kept at
    the provider: `options={"store": False, "include": ["reasoning.encrypted_content"]}`.
    """

    target: ClassVar[str] = "openai-responses"

    def _endpoint(self, client: Any) -> Any:
        return client.responses

    def _arguments(self, request: Mapping[str, Any], max_tokens: int | None) -> dict[str, Any]:
        arguments = {**self._options, **request, "model": self._model}
        if max_tokens is not None:
            arguments.setdefault("max_output_tokens", max_tokens)
        return arguments

    def _parse(self, raw: bytes) -> Reply:
        return responses_reply(self.provider, raw)

    def _assembler(self) -> ResponsesStream:
        return ResponsesStream(self.provider)
