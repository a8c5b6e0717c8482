"""Memory: what is kept of a person from session to session, attributed, searched and reviewable."""

from rung.memory.extract import explicit
from rung.memory.keys import KEY_RULES, KeyRule
from rung.memory.source import MemorySource
from rung.memory.store import MemoryStore
from rung.memory.values import (
    CATEGORIES,
    Extract,
    Forgotten,
    MemoryHit,
    MemoryRecord,
    Proposal,
    Remembered,
    Validate,
)

__all__ = [
    "CATEGORIES",
    "KEY_RULES",
    "Extract",
    "Forgotten",
    "KeyRule",
    "MemoryHit",
    "MemoryRecord",
    "MemorySource",
    "MemoryStore",
    "Proposal",
    "Remembered",
    "Validate",
    "explicit",
]
