"""Tools: declared by code, chosen for the turn, judged before each call, and capped in what they return."""

from rung.tools.declare import Tool, ToolContext, ToolResult, tool
from rung.tools.gate import Approve, Judge, Proposed, Verdict, check_arguments, decide, refusal, signature
from rung.tools.principal import Principal
from rung.tools.resolver import PROVIDER_LIMITS, Resolution, resolve
from rung.tools.results import Shown, shown
from rung.tools.sets import Finding, Offered, ToolSet, ToolSource, digest, offered

__all__ = [
    "PROVIDER_LIMITS",
    "Approve",
    "Finding",
    "Judge",
    "Offered",
    "Principal",
    "Proposed",
    "Resolution",
    "Shown",
    "Tool",
    "ToolContext",
    "ToolResult",
    "ToolSet",
    "ToolSource",
    "Verdict",
    "check_arguments",
    "decide",
    "digest",
    "offered",
    "refusal",
    "resolve",
    "shown",
    "signature",
    "tool",
]
