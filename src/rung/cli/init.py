"""`rung init`: a commented configuration to start from; and reading a policy out of any file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rung.config import load_configuration
from rung.errors import ConfigError
from rung.policy.load import policy_from, read_toml
from rung.policy.rules import PolicySet

TEMPLATE = """\
# rung.toml: what an agent may see, how it is told, and where it comes from.
# Try it:  rung compile -c rung.toml "How long do refunds take?"

[agent]
target = "openai-chat"       # openai-chat, openai-responses, anthropic or text
tokenizer = "o200k_base"     # an encoding, or a model's name
# intent = "support"         # the intent used where the command names none
# store = "agent.db"         # keep items and turns in a file; empty: in memory
# subject = "u7"             # whose memories may be read

[system]                     # or: agent.system = "system.toml"
role = "You are a support agent. Answer from the documents in front of you."
constraints = ["Where the documents do not say, say so."]
personality = "Calm and brief."
escalation_rules = ["Hand over to a person when a customer reports fraud."]
output_format = "Plain text, at most 100 words."

[budget]
input = 6000                 # tokens of the whole request, framing included
# window = 128000            # with it, input is at most window - reserve_output
# reserve_output = 1000
history = 8000
# system = 2000              # of the instructions; more of them fail the turn
# knowledge = 3000           # of evidence, whatever its source
# memory = 1000
# tools = 4000               # of the schemas of tools

# Each source: where it comes from (kind, path) and how it is treated.
[sources.knowledge]
kind = "documents"           # a folder of Markdown or text
path = "documents"
priority = 10
max_tokens = 3000
produces = ["evidence"]      # it may register evidence of its own
truncation = "section"

[sources.memory]
kind = "memories"            # JSON lines with text, category, subject, observed_at, key, ...
path = "memories.jsonl"
priority = 5
max_tokens = 1000
limit = 10
min_score = 0.3              # a memory fits by the words that it shares with the message
always = ["preference"]      # categories that fit every message
sensitivity = "PERSONAL"

# [sources.conversation]
# kind = "transcript"        # JSON lines in OpenAI's chat format
# path = "conversation.jsonl"

# [sources."tool:get_accounts"]
# kind = "tool_result"       # one JSON file
# path = "result.json"
# truncation = "json"

[freshness]                  # seconds, or 5m, 12h, 30d; 0: no limit of age
live = "5m"                  # tool results
memory = "30d"

[intents.support]            # what a turn may use
sources = ["knowledge", "memory"]
clearance = "PERSONAL"       # PUBLIC, INTERNAL, PERSONAL or RESTRICTED

[rules]                      # enforce (default), warn or observe
# laundering = "observe"     # let it pass over live traffic and list it: rung store refusals
"""

_DOCUMENT = """\
# Refunds

## How long a refund takes

A refund reaches the card it came from within five working days. A refund to a gift card is there at once.
"""
_MEMORY = (
    '{"id": "m1", "text": "Prefers to be contacted by email.", "category": "preference", '
    '"observed_at": "%s", "key": "contact_channel"}\n'
)


def run_init(folder: Path, *, force: bool, echo: Callable[[str], Any]) -> None:
    """Write `rung.toml` and a small example beside it; nothing that exists is overwritten without `force`.

    Raises:
        ConfigError: the file exists already.
    """
    from datetime import UTC, datetime

    target = folder / "rung.toml"
    if target.exists() and not force:
        raise ConfigError(f"`{target}` exists already (use --force to overwrite it)", path=str(target))
    (folder / "documents").mkdir(parents=True, exist_ok=True)
    files = {
        target: TEMPLATE,
        folder / "documents" / "refunds.md": _DOCUMENT,
        folder / "memories.jsonl": _MEMORY % datetime.now(UTC).isoformat(timespec="seconds"),
    }
    for path, text in files.items():
        if path == target or not path.exists():
            path.write_text(text, encoding="utf-8")
            echo(f"wrote {path}")
    echo(f'next: rung compile -c {target} "How long do refunds take?"')


def read_any_policy(file: Path) -> PolicySet:
    """The policy of a policy file or of a whole `rung.toml`.

    Raises:
        ConfigError, PolicyError: as `load_policy`.
    """
    tables = read_toml(file)
    if "agent" in tables or "system" in tables:
        return load_configuration(file).policy
    return policy_from(tables, origin=str(file))
