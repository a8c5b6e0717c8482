"""The engine: a whole turn. Read `rung.engine.run` first."""

from rung.engine.engine import Compactor, ContextEngine, MemoryLike
from rung.engine.limits import RunBudget, RunLimits
from rung.engine.outcome import (
    REASONS,
    CallEnded,
    CallStarted,
    Decision,
    Done,
    Event,
    ManifestMade,
    Outcome,
)

__all__ = [
    "REASONS",
    "CallEnded",
    "CallStarted",
    "Compactor",
    "ContextEngine",
    "Decision",
    "Done",
    "Event",
    "ManifestMade",
    "MemoryLike",
    "Outcome",
    "RunBudget",
    "RunLimits",
]
