"""Counting tokens: exactly, once, and for the whole request."""

from rung.tokens.encodings import TiktokenTokenizer
from rung.tokens.protocol import Tokenizer, count_many

__all__ = ["TiktokenTokenizer", "Tokenizer", "count_many"]
