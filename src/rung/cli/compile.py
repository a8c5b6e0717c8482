"""`rung compile`: a turn from a configuration and real files."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rung.assembly.targets import TARGETS
from rung.compiler.turn import Turn
from rung.config import Configuration, load_configuration
from rung.errors import ConfigError, names
from rung.gather import compile_context
from rung.policy.rules import TurnIntent
from rung.records.item import ContextItem
from rung.store import ContextStore


def run_compile(
    question: str,
    *,
    config: Path,
    budget: int | None,
    intent: str | None,
    target: str | None,
    as_json: bool,
    only_request: bool,
    save: Path | None,
    out: Path | None,
    echo: Callable[[str], Any],
) -> None:
    """Compile a turn and print it."""
    found = load_configuration(config)
    chosen = _intent(found, intent)
    wanted = target or found.agent.target
    if wanted not in TARGETS:
        raise ConfigError(f"`target` is `{wanted}` (one of {names(TARGETS)})", path="target")
    if budget is not None and budget < 1:
        raise ConfigError(f"`--budget` is {budget} (give tokens, at least 1)", path="budget")
    with open_store(found, save) as store:
        with waiting(f"asking {len(found.sources())} sources"):
            turn = asyncio.run(_turn(found, store, question, chosen, budget, wanted))
        if save is not None or found.agent.store:
            scoped(found, store).record(turn)
    shown = turn.text if wanted == "text" else json.dumps(dict(turn.request), indent=2, ensure_ascii=False)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "request.json").write_text(json.dumps(dict(turn.request), indent=2, ensure_ascii=False) + "\n")
        (out / "manifest.json").write_text(turn.manifest.json() + "\n")
        (out / "manifest.txt").write_text(turn.manifest.table() + "\n")
    if as_json:
        echo(turn.manifest.json())
    elif only_request:
        echo(shown)
    else:
        echo(shown)
        echo("")
        echo(turn.manifest.table())
    if out is not None:
        print(f"wrote {out / 'request.json'}, manifest.json and manifest.txt", file=sys.stderr)


@contextmanager
def open_store(found: Configuration, save: Path | None = None) -> Iterator[ContextStore]:
    """The configuration's store, or the file given, with the system prompt as a declared channel."""
    where = str(save) if save is not None else _store_path(found)
    channels = [found.instruction_source()]
    if where:
        store = ContextStore.open(where, policy=found.policy, instruction_sources=channels)
    else:
        store = ContextStore(found.policy, instruction_sources=channels)
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
    found: Configuration, store: ContextStore, question: str, intent: TurnIntent | None, budget: int | None, target: str
) -> Turn:
    rules = store.load_instruction("system")
    view = scoped(found, store)
    past = conversation(found, view)
    request = view.user(question)
    return await compile_context(
        view,
        found.sources(),
        intent,
        items=[rules, *past, request],
        budget=budget,
        target=target,
        tokenizer=found.agent.tokenizer,
        history_tokens=found.policy.budget.history,
    )


def conversation(found: Configuration, view: ContextStore) -> list[ContextItem[Any]]:
    """The session's items; an empty session begins with the configured transcript."""
    past = list(view.items())
    transcript = found.transcript()
    if not past and transcript is not None:
        past = view.add_many(transcript.drafts())
    return [item for item in past if item.type.name in ("user", "assistant", "summary") or item.call_id is not None]


def _intent(found: Configuration, name: str | None) -> TurnIntent | None:
    wanted = name if name is not None else found.agent.intent
    if wanted is None:
        return None
    intent = found.policy.intents.get(wanted)
    if intent is None:
        raise ConfigError(
            f"`--intent` names the unknown intent `{wanted}` (one of {names(sorted(found.policy.intents)) or 'none'})",
            path="intent",
        )
    return intent


@contextmanager
def waiting(what: str) -> Iterator[None]:
    """A spinner on a terminal; nothing where the output is a file or a pipe."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console

    with Console(stderr=True).status(what):
        yield
