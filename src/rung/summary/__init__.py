"""Summaries: a session's older exchanges in a shorter form, by a model or by a deterministic extract."""

from rung.summary.checks import BUILTIN_CHECKS, Check, SummaryCheck
from rung.summary.compactor import Compactor
from rung.summary.extract import extract
from rung.summary.values import Compaction, Line, Summariser, SummaryRequest

__all__ = [
    "BUILTIN_CHECKS",
    "Check",
    "Compaction",
    "Compactor",
    "Line",
    "Summariser",
    "SummaryCheck",
    "SummaryRequest",
    "extract",
]
