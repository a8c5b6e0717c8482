"""`rung run` and `rung chat`: turns of a configuration, answered by its model."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rung.assembly.reply import TextDelta
from rung.cli.compile import read_documents
from rung.cli.show import printable, waiting
from rung.config import Configuration, load_configuration
from rung.engine import ContextEngine, Done, ManifestMade, Outcome
from rung.errors import ModelError, RungError
from rung.records.labels import Sensitivity
from rung.tools import Principal

Echo = Callable[..., Any]


def run_once(
    question: str,
    *,
    config: Path,
    session: str | None,
    intent: str | None,
    stream: bool,
    manifest: bool,
    save: Path | None,
    echo: Echo,
) -> int:
    """Answer one question; the exit code. What is not a whole answer says so on standard error."""
    found = load_configuration(config)

    async def once() -> Outcome:
        async with _engine(found, save) as engine:
            place = _begin(found, engine, session)
            return await _answer(found, engine, question, place, intent, stream=stream, echo=echo)

    outcome = asyncio.run(once())
    if manifest:
        for made in outcome.manifests:
            echo("")
            echo(made.table())
    return _told(outcome)


def chat(
    *,
    config: Path,
    session: str | None,
    intent: str | None,
    save: Path | None,
    echo: Echo,
    ask: Callable[[str], str] = input,
) -> int:
    """A conversation, line by line, until the input ends."""
    found = load_configuration(config)

    async def talk() -> int:
        async with _engine(found, save) as engine:
            place = _begin(found, engine, session)
            while True:
                try:
                    line = await asyncio.to_thread(ask, "> " if sys.stdin.isatty() else "")
                except EOFError:
                    return 0
                if not line.strip():
                    continue
                try:
                    _told(await _answer(found, engine, line, place, intent, stream=True, echo=echo))
                except ModelError:
                    raise
                except RungError as problem:  # this request cannot be answered; the next one may
                    print(f"rung: {' '.join(str(problem).split())}", file=sys.stderr)

    return asyncio.run(talk())


def _engine(found: Configuration, save: Path | None) -> ContextEngine:
    return ContextEngine.from_config(found.path, store=None if save is None else str(save))


def _begin(found: Configuration, engine: ContextEngine, session: str | None) -> str:
    """The session's name. An empty session begins with the configured transcript."""
    place = session or found.agent.session or "cli"
    transcript = found.transcript()
    if transcript is not None:
        view = engine.view(place, _principal(found))
        if next(iter(view.items()), None) is None:
            view.add_many(transcript.drafts())
    return place


def _principal(found: Configuration) -> Principal:
    """Who sits at the command line: the person of the configuration; the intent decides what a turn may see."""
    agent = found.agent
    scopes = frozenset[str]().union(*(intent.scopes for intent in found.policy.intents.values()))
    return Principal(tenant=agent.tenant, subject=agent.subject, scopes=scopes, clearance=Sensitivity.RESTRICTED)


async def _answer(
    found: Configuration,
    engine: ContextEngine,
    question: str,
    session: str,
    intent: str | None,
    *,
    stream: bool,
    echo: Echo,
) -> Outcome:
    who = _principal(found)
    read_documents(engine.sources, engine.narrowed(intent, who))
    if not stream:
        with waiting(f"asking {engine.model.name}"):
            outcome = await engine.run(question, session=session, principal=who, intent=intent)
        echo(printable(outcome.text, lines=True))
        return outcome
    said = ""
    async for event in engine.stream(question, session=session, principal=who, intent=intent):
        if isinstance(event, TextDelta):
            said += event.text
            echo(printable(event.text, lines=True), nl=False)
        elif isinstance(event, ManifestMade | Done):
            if said:
                echo("")
            if isinstance(event, Done):
                if event.outcome.text != said:
                    echo(printable(event.outcome.text, lines=True))
                return event.outcome
            said = ""
    raise AssertionError("a stream ends with its outcome")


def _told(outcome: Outcome) -> int:
    if outcome.done:
        return 0
    why = outcome.reason or outcome.status
    missing = f"; missing: {'; '.join(outcome.missing)}" if outcome.missing else ""
    error = f": {outcome.error}" if outcome.error is not None else ""
    print(f"rung: {outcome.status.replace('_', ' ')} ({why}){' '.join((error + missing).split())}", file=sys.stderr)
    return 1
