"""The three wire formats: how a test writes a reply in each, reads it, and calls it with the official client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from rung.assembly.reply import Reply
from rung.models import AnthropicMessages, OpenAIChat, OpenAIResponses
from rung.models.chat_wire import ChatStream, chat_reply
from rung.models.messages_wire import MessagesStream, messages_reply
from rung.models.provider import ProviderModel
from rung.models.responses_wire import ResponsesStream, responses_reply
from rung.testing import wire
from rung.testing.server import ScriptedServer


class Format(NamedTuple):
    target: str
    adapter: type[ProviderModel]
    request: dict[str, Any]
    limit: str
    body: Callable[[Reply, int], dict[str, Any]]
    events: Callable[[Reply, int], list[wire.Event]]
    parse: Callable[[str, Any], Reply]
    stream: Callable[[str], Any]

    def model(self, server: ScriptedServer, **options: Any) -> ProviderModel:
        url = server.url if self.target == "anthropic" else server.openai_url
        return self.adapter("small", base_url=url, **{"max_retries": 0, "timeout": 20.0, **options})


_HI = [{"role": "user", "content": "Where is my order?"}]

FORMATS = (
    Format(
        "openai-chat",
        OpenAIChat,
        {"messages": _HI},
        "max_tokens",
        wire.chat_body,
        lambda reply, number: wire.chat_events(reply, number, usage=True),
        chat_reply,
        ChatStream,
    ),
    Format(
        "openai-responses",
        OpenAIResponses,
        {"input": _HI},
        "max_output_tokens",
        wire.responses_body,
        wire.responses_events,
        responses_reply,
        ResponsesStream,
    ),
    Format(
        "anthropic",
        AnthropicMessages,
        {"messages": _HI},
        "max_tokens",
        wire.messages_body,
        wire.messages_events,
        messages_reply,
        MessagesStream,
    ),
)
