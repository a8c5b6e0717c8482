"""`rung compile`: a turn from a configuration and real files."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from rung.assembly.targets import TARGETS
from rung.cli.show import counting, readable, waiting
from rung.compiler.turn import Turn
from rung.config import Configuration, DocumentFolder, load_configuration
from rung.errors import ConfigError, InputError, names
from rung.gather import compile_context
from rung.policy.rules import TurnIntent
from rung.records.item import ContextItem
from rung.sources.protocol import ContextSource
from rung.store import ContextStore


def run_compile(
    question: str,
    *,
    config: Path,
    budget: int | None,
    intent: str | None,
    target: str | None,
    show: Literal["all", "manifest", "request"],
    save: Path | None,
    out: Path | None,
    echo: Callable[[str], Any],
) -> None:
    """Compile a turn and print it."""
    if not question.strip():
        raise InputError("the question is empty (say what the turn is asked)", field="question")
    found = load_configuration(config)
    chosen = chosen_intent(found, intent)
    wanted = target or found.agent.target
    if wanted not in TARGETS:
        raise ConfigError(f"`target` is `{wanted}` (one of {names(TARGETS)})", path="target")
    if budget is not None and budget < 1:
        raise ConfigError(f"`--budget` is {budget} (give tokens, at least 1)", path="budget")
    sources = found.sources()
    try:
        read_documents(sources, chosen)
        with open_store(found, save) as store:
            with waiting(f"asking {len(sources)} sources"):
                turn = asyncio.run(_turn(found, store, sources, question, chosen, budget, wanted))
            if save is not None or found.agent.store:
                scoped(found, store).record(turn)
    finally:
        close_documents(sources)
    request = json.dumps(dict(turn.request), indent=2, ensure_ascii=False)
    written = "" if out is None else _write(out, request, turn)
    if show == "manifest":
        echo(turn.manifest.json())
    elif show == "request":
        echo(turn.text if wanted == "text" else request)
    else:
        echo(turn.text if wanted == "text" else readable(turn.request))
        echo("")
        echo(turn.manifest.table())
    if written:
        print(written, file=sys.stderr)


def _write(folder: Path, request: str, turn: Turn) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    files = {
        "request.json": request,
        "manifest.json": turn.manifest.json(),
        "manifest.txt": turn.manifest.table(),
    }
    for name, text in files.items():
        (folder / name).write_text(text + "\n", encoding="utf-8")
    return f"wrote {', '.join(files)} in {folder}"


def read_documents(sources: Iterable[ContextSource], intent: TurnIntent | None) -> None:
    """Index the folders that the turn may use, with progress on a terminal, before its time limits begin."""
    for source in sources:
        if isinstance(source, DocumentFolder) and (intent is None or source.name in intent.sources):
            with counting(f"reading {source.folder.name}") as progress:
                source.read(progress)


def close_documents(sources: Iterable[ContextSource]) -> None:
    """Close what `read_documents` opened."""
    for source in sources:
        if isinstance(source, DocumentFolder):
            source.close()


@contextmanager
def open_store(found: Configuration, save: Path | None = None) -> Generator[ContextStore]:
    """The configuration's store, or the file given, with the system prompt as a declared channel."""
    where = str(save) if save is not None else _store_path(found)
    channels = [found.instruction_source()]
    clock = found.agent.clock()
    if where:
        store = ContextStore.open(where, policy=found.policy, instruction_sources=channels, clock=clock)
    else:
        store = ContextStore(found.policy, instruction_sources=channels, clock=clock)
    with store:
        yield store


def _store_path(found: Configuration) -> str:
    named = found.agent.store
    if not named or "://" in named:
        return named
    return str(found.path.resolve().parent / named)


def scoped(found: Configuration, store: ContextStore) -> ContextStore:
    """The handle of the configuration's tenant, subject and session."""
    agent = found.agent
    return store.scope(tenant=agent.tenant, subject=agent.subject, session=agent.session or "cli")


async def _turn(
    found: Configuration,
    store: ContextStore,
    sources: Iterable[ContextSource],
    question: str,
    intent: TurnIntent | None,
    budget: int | None,
    target: str,
) -> Turn:
    rules = store.load_instruction("system")
    view = scoped(found, store)
    past = conversation(found, view)
    request = view.user(question)
    return await compile_context(
        view,
        sources,
        intent,
        items=[rules, *past, request],
        budget=budget,
        target=target,
        tokenizer=found.agent.tokenizer,
        caps=found.policy.budget.caps(),
        history_tokens=found.policy.budget.history,
    )


def conversation(found: Configuration, view: ContextStore) -> list[ContextItem[Any]]:
    """The session's items; an empty session begins with the configured transcript."""
    past = list(view.items())
    transcript = found.transcript()
    if not past and transcript is not None:
        past = view.add_many(transcript.drafts())
    return [item for item in past if item.type.name in ("user", "assistant", "summary") or item.call_id is not None]


def chosen_intent(found: Configuration, name: str | None) -> TurnIntent | None:
    """The intent of this name, else the configuration's own, else none."""
    wanted = name if name is not None else found.agent.intent
    if wanted is None:
        return None
    intent = found.policy.intents.get(wanted)
    if intent is None:
        raise ConfigError(
            f"`--intent` names the unknown intent `{wanted}` "
            f"({'one of ' + names(sorted(found.policy.intents)) if found.policy.intents else 'the policy has none'})",
            path="intent",
        )
    return intent
