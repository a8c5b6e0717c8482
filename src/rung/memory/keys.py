"""When two memories say the same: keys of normalised text, each with its rule's version."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from rung.ledger.content import CONTENT_KEY_VERSION, content_key

KeyRule = Callable[[str], bytes]
"""From a text to what equal texts share; empty for a text that says nothing."""

KEY_RULES: Mapping[int, KeyRule] = {CONTENT_KEY_VERSION: content_key}
"""The rules by version. The highest is written; all are looked up, so that a new rule forgets nothing."""


def written_key(text: str, rules: Mapping[int, KeyRule]) -> str | None:
    """The key that is kept with a memory: the latest rule's, as `version:hexadecimal`."""
    version = max(rules)
    key = rules[version](text)
    return f"{version}:{key.hex()}" if key else None


def keys(text: str, rules: Mapping[int, KeyRule]) -> Iterator[str]:
    """The keys of a text under every rule that is known."""
    for version, rule in rules.items():
        key = rule(text)
        if key:
            yield f"{version}:{key.hex()}"
