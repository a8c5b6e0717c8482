"""The commands `rung kb …` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

kb_app = typer.Typer(help="Keep documents in a knowledge base, and search it.", no_args_is_help=True)

Base = Annotated[str, typer.Option("--db", help="The knowledge base: a file, or postgresql://…")]
Owner = Annotated[str | None, typer.Option("--tenant", help="Whose documents; default: everybody's.")]
Meaning = Annotated[
    bool, typer.Option("--meaning", help="Also compare meanings, by the local model of rung[embeddings].")
]


@kb_app.command("add")
def kb_add(
    paths: Annotated[list[Path], typer.Argument(help="Files, and folders of them: Markdown, text, HTML, PDF.")],
    db: Base = "kb.db",
    tenant: Owner = None,
    sync: Annotated[
        bool, typer.Option("--sync", help="Also remove what these folders no longer hold; folders only.")
    ] = False,
    scope: Annotated[list[str] | None, typer.Option(help="A scope that a reader needs; may be repeated.")] = None,
    sensitivity: Annotated[str | None, typer.Option(help="PUBLIC, INTERNAL, PERSONAL or RESTRICTED.")] = None,
    meaning: Meaning = False,
) -> None:
    """Add documents, or put them in the place of their earlier versions. The same again does nothing."""
    from rung.cli.kb import add

    add(paths, db, tenant, sync, scope or (), sensitivity, meaning, echo=typer.echo)


@kb_app.command("search")
def kb_search(
    question: Annotated[str, typer.Argument(help="Any text; nothing in it is syntax.")],
    db: Base = "kb.db",
    tenant: Owner = None,
    limit: Annotated[int, typer.Option(min=1, help="The most passages.")] = 5,
    minimum: Annotated[float | None, typer.Option(min=0, max=1, help="The least score of a passage.")] = None,
    scope: Annotated[list[str] | None, typer.Option(help="A scope that the reader has; may be repeated.")] = None,
    clearance: Annotated[str, typer.Option(help="PUBLIC, INTERNAL, PERSONAL or RESTRICTED.")] = "INTERNAL",
    meaning: Meaning = False,
) -> None:
    """Print the passages that fit a question, best first, each with its score and its citation."""
    from rung.cli.kb import search

    search(question, db, tenant, limit, minimum, scope or (), clearance, meaning, echo=typer.echo)


@kb_app.command("stats")
def kb_stats(db: Base = "kb.db") -> None:
    """Count documents, passages and tokens, of all tenants."""
    from rung.cli.kb import stats

    stats(db, echo=typer.echo)
