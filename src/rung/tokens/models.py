"""Which tokenizer counts for which model: a table."""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

from rung.errors import ConfigError, InputError
from rung.tokens.encodings import ENCODINGS, TiktokenTokenizer
from rung.tokens.estimate import EstimateTokenizer
from rung.tokens.protocol import Tokenizer

# Model name prefix → encoding; the longest prefix that ends at a name boundary wins. OpenAI's assignments are
# those of `tiktoken.model`; a family with no published encoding is counted by the estimate.
MODEL_ENCODINGS: dict[str, str] = {
    "gpt-5": "o200k_base",
    "gpt-4.5": "o200k_base",
    "gpt-4.1": "o200k_base",
    "gpt-4o": "o200k_base",
    "chatgpt-4o": "o200k_base",
    "gpt-oss": "o200k_base",  # o200k_harmony differs in special tokens only
    "codex-mini": "o200k_base",
    "o1": "o200k_base",
    "o3": "o200k_base",
    "o4-mini": "o200k_base",
    "gpt-4": "cl100k_base",
    "gpt-3.5": "cl100k_base",
    "gpt-35": "cl100k_base",
    "davinci-002": "cl100k_base",
    "babbage-002": "cl100k_base",
    "text-embedding-3": "cl100k_base",
    "text-embedding-ada-002": "cl100k_base",
    "claude": "estimate",
    "gemini": "estimate",
    "llama": "estimate",
    "mistral": "estimate",
    "qwen": "estimate",
    "deepseek": "estimate",
    "command": "estimate",
    "grok": "estimate",
}


def tokenizer_for(name: str, *, fallback: Literal["estimate"] | None = None) -> Tokenizer:
    """The tokenizer of an encoding (`o200k_base`, `cl100k_base`, `estimate`) or of a model (`gpt-4o`).

    Prefixes of deployments are understood: `openai/gpt-4o`, `ft:gpt-4o:acme`. A model whose encoding is not
    published (`claude-…`) gets an estimate that is named as one. With `fallback="estimate"` an unknown name
    does too; otherwise it raises `ConfigError`.
    """
    if not isinstance(name, str) or not name:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise InputError("the tokenizer's name is the name of an encoding or a model", field="name")
    if name in ENCODINGS:
        return _exact(name)
    if name == "estimate":
        return EstimateTokenizer()
    model = name.lower().rpartition("/")[2].removeprefix("ft:")
    encoding = _encoding(model)
    if encoding is None and "." in model:  # a deployment's vendor prefix: `us.anthropic.claude-…`
        encoding = next(filter(None, map(_encoding, _tails(model))), None)
    if encoding in ENCODINGS:
        return _exact(encoding)
    if encoding == "estimate" or fallback == "estimate":
        return EstimateTokenizer(name=f"estimate({name})")
    raise ConfigError(
        f"no tokenizer is known for `{name}` (name an encoding: `o200k_base`, `cl100k_base` or `estimate`, "
        'or pass fallback="estimate")',
        path="tokenizer",
    )


def _tails(model: str) -> list[str]:
    parts = model.split(".")
    return [".".join(parts[start:]) for start in range(1, len(parts))]


def _encoding(model: str) -> str | None:
    fits = [
        prefix
        for prefix in MODEL_ENCODINGS
        if model.startswith(prefix) and not model[len(prefix) : len(prefix) + 1].isalnum()
    ]
    # `llama3`, `qwen2.5`: a family name may run into its number.
    fits = fits or [prefix for prefix, own in MODEL_ENCODINGS.items() if own == "estimate" and model.startswith(prefix)]
    return MODEL_ENCODINGS[max(fits, key=len)] if fits else None


@lru_cache(maxsize=8)
def _exact(encoding: str) -> TiktokenTokenizer:
    return TiktokenTokenizer(encoding)
