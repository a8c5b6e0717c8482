"""An engine from a `rung.toml`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from rung.assembly.reply import Model
from rung.config import Configuration, DocumentFolder, load_configuration
from rung.engine.limits import RunLimits
from rung.errors import ConfigError
from rung.models import AnthropicMessages, OpenAIChat, OpenAIResponses
from rung.store import ContextStore
from rung.tools.declare import Tool
from rung.tools.sets import ToolSource

if TYPE_CHECKING:
    from rung.engine.engine import ContextEngine

_PROVIDERS = {"openai": OpenAIChat, "openai-responses": OpenAIResponses, "anthropic": AnthropicMessages}


def configured(
    kind: type[ContextEngine],
    path: Path,
    *,
    model: Model | None,
    tools: Iterable[Tool | ToolSource],
    store: str | None,
    more: Mapping[str, Any],
) -> ContextEngine:
    """See `ContextEngine.from_config`."""
    found = load_configuration(path)
    chosen = configured_model(found) if model is None else model
    agent = found.agent
    where = agent.store if store is None else store
    if store is None and where and "://" not in where:
        where = str(found.path.resolve().parent / where)
    sources = found.sources()
    opened = ContextStore.open(
        where or ":memory:",
        policy=found.policy,
        instruction_sources=[found.instruction_source()],
        clock=agent.clock(),
    )
    try:
        rules = opened.load_instruction("system")
        given: dict[str, Any] = {
            "system": (rules,),
            "sources": sources,
            "tools": tools,
            "intent": agent.intent,
            "limits": RunLimits(rounds=found.model.max_rounds),
            "max_output": found.model.max_output,
            "tokenizer": agent.tokenizer,
            **more,
        }
        engine = kind(opened, chosen, **given)
    except BaseException:
        opened.close()
        raise
    engine.own(opened.close)
    for source in sources:
        if isinstance(source, DocumentFolder):
            engine.own(source.close)
    return engine


def configured_model(found: Configuration) -> Model:
    """The model of `[model]`.

    Raises:
        ConfigError: none is named; the message says what to set.
        ModelAuthError: it is named, and there is neither a key nor another server's address.
    """
    chosen = found.model
    if not chosen.name:
        raise ConfigError(
            f"no model is configured in `{found.path}` (set `model.name`, and `model.base_url` for a server of your "
            "own or the provider's key in the environment)",
            path="model.name",
        )
    made = _PROVIDERS[chosen.provider](
        chosen.name, base_url=chosen.base_url, api_key_env=chosen.api_key_env, timeout=chosen.timeout
    )
    made.check()
    return cast("Model", made)
