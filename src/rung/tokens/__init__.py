"""Counting tokens: exactly, once, and for the whole request."""

from rung.tokens.adapters import CallableTokenizer, HuggingFaceTokenizer
from rung.tokens.anthropic import AnthropicCounter
from rung.tokens.blocks import BlockCounter, safe_joint
from rung.tokens.encodings import TiktokenTokenizer
from rung.tokens.estimate import EstimateTokenizer
from rung.tokens.framing import FRAMINGS, Framing, framing_for
from rung.tokens.models import MODEL_ENCODINGS, tokenizer_for
from rung.tokens.protocol import Tokenizer, count_many
from rung.tokens.request import (
    RequestCount,
    canonical_json,
    count_message,
    count_request,
    count_response_schema,
    count_tool,
    response_schema,
)
from rung.tokens.take import grapheme_boundary, take_tokens

__all__ = [
    "FRAMINGS",
    "MODEL_ENCODINGS",
    "AnthropicCounter",
    "BlockCounter",
    "CallableTokenizer",
    "EstimateTokenizer",
    "Framing",
    "HuggingFaceTokenizer",
    "RequestCount",
    "TiktokenTokenizer",
    "Tokenizer",
    "canonical_json",
    "count_many",
    "count_message",
    "count_request",
    "count_response_schema",
    "count_tool",
    "framing_for",
    "grapheme_boundary",
    "response_schema",
    "safe_joint",
    "take_tokens",
    "tokenizer_for",
]
