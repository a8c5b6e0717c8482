"""`rung.toml`: an agent's policy, system prompt, sources and defaults in one file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, cast

import msgspec

from rung.compiler.labels import MEMORY_GROUPS
from rung.errors import ConfigError, InputError, kind, names
from rung.ledger.channels import InstructionSource
from rung.policy.load import convert, policy_from, read_toml
from rung.policy.rules import PolicySet
from rung.records.clock import Clock, aware_utc, system_clock
from rung.records.draft import Draft
from rung.sources.protocol import ContextSource, Fetch
from rung.sources.simple import ToolResultFile
from rung.sources.system import SystemPrompt
from rung.sources.transcript import TranscriptFile

if TYPE_CHECKING:
    from rung.knowledge import KnowledgeBase

KINDS = ("documents", "memories", "tool_result", "transcript")

LEAST_FIT = 0.3
"""Of a memory in a file, where the source names no `min_score`: as `rung.memory` has it."""


class Agent(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Section `[agent]`: what a turn is compiled with where the command line says nothing.

    Attributes:
        system: path of the system prompt's TOML file; or give a table `[system]`.
        target: `openai-chat`, `openai-responses`, `anthropic` or `text`.
        tokenizer: the name of an encoding or model.
        intent: the intent that is used by default.
        store: path or address of the store; empty: this process's memory.
        tenant, subject, session: whose turn it is.
        now: a fixed moment in the place of the clock, for replays and examples (`2025-11-25T10:06:00Z`).
    """

    system: str | None = None
    target: str = "openai-chat"
    tokenizer: str = "o200k_base"
    intent: str | None = None
    store: str = ""
    tenant: str | None = None
    subject: str | None = None
    session: str | None = None
    now: datetime | None = None

    def clock(self) -> Clock:
        """The store's clock: the real one, or the fixed moment."""
        if self.now is None:
            return system_clock
        moment = self.now
        return lambda: moment


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
    """Where a source's data comes from: its kind and path.

    Attributes:
        index: of documents: the file that keeps what was read of them.
        always: of memories: the categories that fit every message.
    """

    name: str
    kind: Literal["documents", "memories", "tool_result", "transcript"]
    path: Path
    index: Path | None = None
    always: tuple[str, ...] = ()


class DocumentFolder:
    """A folder of documents as a source of passages. Files that changed are read again before each search.

    Args:
        name: the source's name.
        folder: Markdown, text, HTML and PDF files, in subfolders too.
        index: a file that keeps what was read, so that the next process reads only what changed; None: memory.
        minimum: the least score of a passage; None: the knowledge base's own.
    """

    def __init__(self, name: str, folder: Path, *, index: Path | None = None, minimum: float | None = None) -> None:
        self._name, self.folder, self._index, self._minimum = name, folder, index, minimum
        self._base: KnowledgeBase | None = None
        self._is_read = False

    @property
    def name(self) -> str:
        return self._name

    def read(self, progress: Callable[[int, int, str], None] | None = None) -> KnowledgeBase:
        """Take in what is new or changed; `progress` is told (files done, files, the present one).

        Raises:
            InputError: a file cannot be read.
            StoreError: the index cannot be written.
        """
        from rung.knowledge import KnowledgeBase

        if self._base is None:
            if self._index is not None:
                self._index.parent.mkdir(parents=True, exist_ok=True)
            self._base = KnowledgeBase.open(":memory:" if self._index is None else self._index)
        self._base.sync(self.folder, progress=progress)
        self._is_read = True
        return self._base

    def fetch(self, want: Fetch) -> list[Draft]:
        """The passages that fit the request, best first, each as Evidence with its document's id and section."""
        from rung.knowledge import KnowledgeSource

        base = self._base if self._is_read and self._base is not None else self.read()
        self._is_read = False
        found = KnowledgeSource(base, self._name, minimum=self._minimum).fetch(want)
        # A copy of a folder has new file times. Nothing was seen after the turn's own moment.
        return [
            msgspec.structs.replace(draft, observed_at=want.now)
            if draft.observed_at is not None and draft.observed_at > want.now
            else draft
            for draft in found
        ]

    def close(self) -> None:
        """Close the index; a later search opens it again."""
        if self._base is not None:
            self._base.close()
        self._base, self._is_read = None, False


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
        return [_source(feed, self.policy) for feed in self.feeds if feed.kind != "transcript"]


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
    if agent.now is not None:
        try:
            agent = msgspec.structs.replace(agent, now=aware_utc(agent.now, "agent.now"))
        except InputError as problem:
            raise ConfigError(str(problem), path="agent.now") from None
    feeds, sources = _feeds(tables.pop("sources", {}), folder)
    policy = policy_from({**tables, "sources": sources}, origin=str(where))
    if agent.intent is not None and agent.intent not in policy.intents:
        raise ConfigError(
            f"`agent.intent` names the unknown intent `{agent.intent}` "
            f"(one of {names(sorted(policy.intents)) or 'none'})",
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
    for name, table in cast("Mapping[str, object]", tables).items():
        if not isinstance(table, Mapping):
            raise ConfigError(f"`sources.{name}` is of kind {kind(table)}, not a table", path=f"sources.{name}")
        rest = dict(cast("Mapping[str, Any]", table))
        what, path, index, always = (rest.pop(field, None) for field in ("kind", "path", "index", "always"))
        policies[name] = rest
        if what is None and path is None and index is None and always is None:
            continue
        if what == "memories":
            rest.setdefault("min_score", LEAST_FIT)
        feeds.append(_feed(name, what, path, index, always, folder))
    if sum(feed.kind == "transcript" for feed in feeds) > 1:
        raise ConfigError("two sources are of kind `transcript` (a turn has one conversation)", path="sources")
    return feeds, policies


def _feed(name: str, what: object, path: object, index: object, always: object, folder: Path) -> Feed:
    place = f"sources.{name}"
    if what not in KINDS:
        given = "missing" if what is None else f"`{what}`"
        raise ConfigError(f"`{place}.kind` is {given} (one of {names(KINDS)})", path=f"{place}.kind")
    if not isinstance(path, str) or not path:
        raise ConfigError(f"`{place}.path` is missing (a path, relative to the file)", path=f"{place}.path")
    full = folder / path
    if not full.exists():
        raise ConfigError(f"`{place}.path`: `{path}` does not exist (correct the path)", path=f"{place}.path")
    if full.is_dir() != (what == "documents"):
        wanted, found = ("a folder", "a file") if what == "documents" else ("a file", "a folder")
        raise ConfigError(f"`{place}.path`: `{path}` is {found} ({what} is {wanted})", path=f"{place}.path")
    if index is not None and (what != "documents" or not isinstance(index, str) or not index):
        raise ConfigError(
            f"`{place}.index` is the path of the documents' index (leave it out of {what})", path=f"{place}.index"
        )
    if always is not None and (what != "memories" or not _are_categories(always)):
        raise ConfigError(
            f"`{place}.always` is a list of the memories' categories (one of {names(MEMORY_GROUPS)}; leave it out of "
            "other kinds)",
            path=f"{place}.always",
        )
    return Feed(
        name=name,
        # One of KINDS, checked above; a type checker sees `object`.
        kind=what,  # type: ignore[arg-type]
        path=full,
        index=None if index is None else folder / str(index),
        always=tuple(cast("list[str]", always or ())),
    )


def _are_categories(value: object) -> bool:
    return isinstance(value, list) and all(one in MEMORY_GROUPS for one in cast("list[object]", value))


def _source(feed: Feed, policy: PolicySet) -> ContextSource:
    if feed.kind == "memories":
        from rung.memory.file import ScoredMemories

        return ScoredMemories(feed.name, feed.path, always=feed.always)
    if feed.kind == "tool_result":
        return ToolResultFile(feed.name, feed.path)
    return DocumentFolder(feed.name, feed.path, index=feed.index, minimum=policy.source(feed.name).min_score)
