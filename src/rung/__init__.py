"""rung: a typed context runtime for LLM agents.

Names are loaded when they are first used, so that importing the package costs next to nothing.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rung.assembly.messages import ToolSchema
    from rung.compiler.manifest import Manifest
    from rung.compiler.turn import Turn
    from rung.engine.engine import ContextEngine
    from rung.engine.limits import RunLimits
    from rung.engine.outcome import Outcome
    from rung.errors import (
        BudgetError,
        ConfigError,
        ContextTypeError,
        InputError,
        LaunderingError,
        PolicyError,
        RungError,
        ScopeError,
        SourceError,
        StoreError,
        TransformError,
    )
    from rung.gather import compile_context
    from rung.ledger.channels import Endorsement, InstructionSource
    from rung.ledger.entries import ContextTypeWarning
    from rung.policy.decision import Refusal
    from rung.policy.load import default_policy, explain, load_policy
    from rung.policy.rules import (
        Budget,
        Limits,
        PolicySet,
        SourcePolicy,
        Transition,
        TurnIntent,
        TypePolicy,
    )
    from rung.records.draft import Draft
    from rung.records.item import ContextItem, Media, Opaque, ToolCall
    from rung.records.labels import Labels, Sensitivity
    from rung.records.template import Template
    from rung.records.types import (
        Assistant,
        ContextType,
        Evidence,
        Instruction,
        Memory,
        Policy,
        Summary,
        TaskState,
        ToolOutput,
        User,
    )
    from rung.sources.protocol import ContextSource, Fetch
    from rung.store import ContextStore
    from rung.tools.declare import Tool, ToolContext, ToolResult, tool
    from rung.tools.principal import Principal
    from rung.tools.sets import ToolSet

_HOME = {
    "Assistant": "rung.records.types",
    "Budget": "rung.policy.rules",
    "BudgetError": "rung.errors",
    "ConfigError": "rung.errors",
    "ContextEngine": "rung.engine.engine",
    "ContextItem": "rung.records.item",
    "ContextSource": "rung.sources.protocol",
    "ContextStore": "rung.store",
    "ContextType": "rung.records.types",
    "ContextTypeError": "rung.errors",
    "ContextTypeWarning": "rung.ledger.entries",
    "Draft": "rung.records.draft",
    "Endorsement": "rung.ledger.channels",
    "Evidence": "rung.records.types",
    "Fetch": "rung.sources.protocol",
    "InputError": "rung.errors",
    "Instruction": "rung.records.types",
    "InstructionSource": "rung.ledger.channels",
    "Labels": "rung.records.labels",
    "LaunderingError": "rung.errors",
    "Limits": "rung.policy.rules",
    "Manifest": "rung.compiler.manifest",
    "Media": "rung.records.item",
    "Memory": "rung.records.types",
    "Opaque": "rung.records.item",
    "Outcome": "rung.engine.outcome",
    "Policy": "rung.records.types",
    "PolicyError": "rung.errors",
    "PolicySet": "rung.policy.rules",
    "Principal": "rung.tools.principal",
    "Refusal": "rung.policy.decision",
    "RunLimits": "rung.engine.limits",
    "RungError": "rung.errors",
    "ScopeError": "rung.errors",
    "Sensitivity": "rung.records.labels",
    "SourceError": "rung.errors",
    "SourcePolicy": "rung.policy.rules",
    "StoreError": "rung.errors",
    "Summary": "rung.records.types",
    "TaskState": "rung.records.types",
    "Template": "rung.records.template",
    "Tool": "rung.tools.declare",
    "ToolCall": "rung.records.item",
    "ToolContext": "rung.tools.declare",
    "ToolOutput": "rung.records.types",
    "ToolResult": "rung.tools.declare",
    "ToolSchema": "rung.assembly.messages",
    "ToolSet": "rung.tools.sets",
    "TransformError": "rung.errors",
    "Transition": "rung.policy.rules",
    "Turn": "rung.compiler.turn",
    "TurnIntent": "rung.policy.rules",
    "TypePolicy": "rung.policy.rules",
    "User": "rung.records.types",
    "compile_context": "rung.gather",
    "default_policy": "rung.policy.load",
    "explain": "rung.policy.load",
    "load_policy": "rung.policy.load",
    "tool": "rung.tools.declare",
}

__all__ = [
    "Assistant",
    "Budget",
    "BudgetError",
    "ConfigError",
    "ContextEngine",
    "ContextItem",
    "ContextSource",
    "ContextStore",
    "ContextType",
    "ContextTypeError",
    "ContextTypeWarning",
    "Draft",
    "Endorsement",
    "Evidence",
    "Fetch",
    "InputError",
    "Instruction",
    "InstructionSource",
    "Labels",
    "LaunderingError",
    "Limits",
    "Manifest",
    "Media",
    "Memory",
    "Opaque",
    "Outcome",
    "Policy",
    "PolicyError",
    "PolicySet",
    "Principal",
    "Refusal",
    "RunLimits",
    "RungError",
    "ScopeError",
    "Sensitivity",
    "SourceError",
    "SourcePolicy",
    "StoreError",
    "Summary",
    "TaskState",
    "Template",
    "Tool",
    "ToolCall",
    "ToolContext",
    "ToolOutput",
    "ToolResult",
    "ToolSchema",
    "ToolSet",
    "TransformError",
    "Transition",
    "Turn",
    "TurnIntent",
    "TypePolicy",
    "User",
    "compile_context",
    "default_policy",
    "explain",
    "load_policy",
    "tool",
]


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module `rung` has no attribute `{name}`")
    from importlib import import_module

    value = getattr(import_module(home), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
