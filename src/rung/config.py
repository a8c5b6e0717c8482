"""`rung.toml`: an agent's policy, system prompt, sources and defaults in one file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from rung.errors import ConfigError, kind, names
from rung.ledger.channels import InstructionSource
from rung.policy.load import convert, policy_from, read_toml
from rung.policy.rules import PolicySet
from rung.sources.protocol import ContextSource
from rung.sources.simple import MemoryFile, ToolResultFile
from rung.sources.system import SystemPrompt
from rung.sources.transcript import TranscriptFile

KINDS = ("documents", "memories", "tool_result", "transcript")


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[agent]`: what a turn is compiled with where the command line says nothing.

    Attributes:
        system: path of the system prompt's TOML file; or give a table `[system]`.
        target: `openai-chat`, `openai-responses`, `anthropic` or `text`.
        tokenizer: the name of an encoding or model.
        intent: the intent that is used by default.
        store: path or address of the store; empty: this process's memory.
        tenant, subject, session: whose turn it is.
    """

    system: str | None = None
    target: str = "openai-chat"
    tokenizer: str = "o200k_base"
    intent: str | None = None
    store: str = ""
    tenant: str | None = None
    subject: str | None = None
    session: str | None = None


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[model]`: who answers. Keys come from the environment, never from the file.

    Attributes:
        name: the model's name at its provider.
        provider: `openai` (chat completions, and everything compatible), `openai-responses` or `anthropic`.
        base_url: another server's address.
        api_key_env: the environment variable that holds the key.
        max_output: the most tokens of a reply.
        timeout: seconds.
        max_rounds: the most rounds of tools in a turn.
    """

    name: str = ""
    provider: Literal["openai", "openai-responses", "anthropic"] = "openai"
    base_url: str | None = None
    api_key_env: str | None = None
    max_output: Annotated[int, msgspec.Meta(ge=1)] = 1024
    timeout: float = 60.0
    max_rounds: Annotated[int, msgspec.Meta(ge=1)] = 10


class Feed(msgspec.Struct, frozen=True, kw_only=True):
    """Where a source's data comes from: its kind and path."""

    name: str
    kind: Literal["documents", "memories", "tool_result", "transcript"]
    path: Path


class Configuration(msgspec.Struct, frozen=True, kw_only=True):
    """A whole `rung.toml`, read and checked; paths are resolved against the file's folder."""

    path: Path
    policy: PolicySet
    agent: Agent
    model: Model
    system: SystemPrompt
    feeds: tuple[Feed, ...]

    def instruction_source(self) -> InstructionSource:
        """The declared channel of the system prompt."""
        text = self.system.render()

        def loader(_: str | None) -> str:
            return text

        return InstructionSource(name="system", loader=loader)

    def transcript(self) -> TranscriptFile | None:
        """The conversation so far, where a source of kind `transcript` is declared."""
        feed = next((feed for feed in self.feeds if feed.kind == "transcript"), None)
        return None if feed is None else TranscriptFile(feed.name, feed.path)

    def sources(self) -> list[ContextSource]:
        """The sources of a turn, the transcript apart."""
        return [_source(feed) for feed in self.feeds if feed.kind != "transcript"]


def load_configuration(path: str | Path) -> Configuration:
    """Read a `rung.toml`.

    Raises:
        ConfigError: it is missing, no TOML, or has a wrong or missing field; the message names it.
        PolicyError: its policy contradicts itself.
    """
    where = Path(path)
    tables = read_toml(where)
    folder = where.resolve().parent
    own = {name: tables.pop(name, {}) for name in ("agent", "model", "system")}
    for name, table in own.items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"`{name}` is of kind {kind(table)}, not a table (write `[{name}]`)", path=name)
    agent = convert(own["agent"], Agent, "agent")
    feeds, sources = _feeds(tables.pop("sources", {}), folder)
    policy = policy_from({**tables, "sources": sources}, origin=str(where))
    if agent.intent is not None and agent.intent not in policy.intents:
        raise ConfigError(
            f"`agent.intent` names the unknown intent `{agent.intent}` (one of {names(sorted(policy.intents)) or 'none'})",
            path="agent.intent",
        )
    return Configuration(
        path=where,
        policy=policy,
        agent=agent,
        model=convert(own["model"], Model, "model"),
        system=_system(agent, own["system"], folder),
        feeds=tuple(feeds),
    )


def _system(agent: Agent, table: Mapping[str, Any], folder: Path) -> SystemPrompt:
    if agent.system is not None and table:
        raise ConfigError("`agent.system` and `[system]` are both given (keep one)", path="agent.system")
    if agent.system is not None:
        return SystemPrompt.from_table(read_toml(folder / agent.system), agent.system)
    if not table:
        raise ConfigError("`system` is missing (write `[system]` with a role, or set agent.system)", path="system")
    return SystemPrompt.from_table(table)


def _feeds(tables: object, folder: Path) -> tuple[list[Feed], dict[str, Any]]:
    if not isinstance(tables, Mapping):
        raise ConfigError(f"`sources` is of kind {kind(tables)}, not a table (write `[sources.NAME]`)", path="sources")
    feeds: list[Feed] = []
    policies: dict[str, Any] = {}
    for name, table in tables.items():  # pyright: ignore[reportUnknownVariableType]
        if not isinstance(name, str) or not isinstance(table, Mapping):
            raise ConfigError(f"`sources.{name}` is of kind {kind(table)}, not a table", path=f"sources.{name}")
        rest: dict[str, Any] = {str(key): value for key, value in table.items()}  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
        what, path = rest.pop("kind", None), rest.pop("path", None)
        policies[name] = rest
        if what is None and path is None:
            continue
        feeds.append(_feed(name, what, path, folder))
    if sum(feed.kind == "transcript" for feed in feeds) > 1:
        raise ConfigError("two sources are of kind `transcript` (a turn has one conversation)", path="sources")
    return feeds, policies


def _feed(name: str, what: object, path: object, folder: Path) -> Feed:
    if what not in KINDS:
        raise ConfigError(f"`sources.{name}.kind` is {what!r} (one of {names(KINDS)})", path=f"sources.{name}.kind")
    if not isinstance(path, str) or not path:
        raise ConfigError(
            f"`sources.{name}.path` is missing (a path, relative to the file)", path=f"sources.{name}.path"
        )
    full = folder / path
    if not full.exists():
        raise ConfigError(
            f"`sources.{name}.path`: `{path}` does not exist (correct the path)", path=f"sources.{name}.path"
        )
    return Feed(name=name, kind=what, path=full)  # type: ignore[arg-type]


def _source(feed: Feed) -> ContextSource:
    if feed.kind == "memories":
        return MemoryFile(feed.name, feed.path)
    if feed.kind == "tool_result":
        return ToolResultFile(feed.name, feed.path)
    from rung.knowledge import folder_source

    return folder_source(feed.name, feed.path)
