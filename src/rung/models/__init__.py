"""Models: adapters for providers' official clients and for any callable. No package is imported before a call."""

from rung.models.anthropic import AnthropicMessages
from rung.models.function import CallableModel
from rung.models.openai import OpenAIChat, OpenAIResponses
from rung.models.prices import Prices

__all__ = ["AnthropicMessages", "CallableModel", "OpenAIChat", "OpenAIResponses", "Prices"]
