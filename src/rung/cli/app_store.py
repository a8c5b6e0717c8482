"""The commands `rung store …` and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

store_app = typer.Typer(help="Ask a store what it holds, and look after it.", no_args_is_help=True)

Where = Annotated[str, typer.Argument(help="A store: the path of a SQLite file, or postgresql://…")]
Tenant = Annotated[str | None, typer.Option(help="Whose part of the store; default: what belongs to no tenant.")]
Policy = Annotated[
    Path | None, typer.Option("--config", "-c", help="A rung.toml; the store is opened with its policy.")
]


@store_app.command("refusals")
def store_refusals(where: Where, tenant: Tenant = None, config: Policy = None) -> None:
    """List what was refused, or would have been under an enforced rule."""
    from rung.cli.store import refusals

    refusals(where, tenant, echo=typer.echo, config=config)


@store_app.command("stats")
def store_stats(where: Where, tenant: Tenant = None, config: Policy = None) -> None:
    """Count what a store holds, by type and source."""
    from rung.cli.store import stats

    stats(where, tenant, echo=typer.echo, config=config)


@store_app.command("verify")
def store_verify(where: Where, config: Policy = None) -> int:
    """Read everything again: digests, parents, and the chained log of decisions."""
    from rung.cli.store import verify

    return verify(where, echo=typer.echo, config=config)


@store_app.command("export")
def store_export(
    where: Where,
    to: Annotated[Path, typer.Argument(help="The file to write, JSON lines; it must not exist.")],
    config: Policy = None,
) -> None:
    """Write all that a store holds, content included, into one file."""
    from rung.cli.store import export

    export(where, to, echo=typer.echo, config=config)


@store_app.command("import")
def store_import(
    where: Annotated[str, typer.Argument(help="The store to write to; made if absent.")],
    given: Annotated[Path, typer.Argument(help="A file that `rung store export` wrote.")],
    config: Policy = None,
) -> None:
    """Take in an export, with its ids, digests and log."""
    from rung.cli.store import take_in

    take_in(where, given, echo=typer.echo, config=config)


@store_app.command("erase")
def store_erase(
    where: Where,
    subject: Annotated[str, typer.Option(help="The person whose data is erased.")],
    tenant: Tenant = None,
    reason: Annotated[str, typer.Option(help="Why, as the tombstones say.")] = "subject erased",
    config: Policy = None,
) -> None:
    """Erase all of a person and what was derived from it, leaving tombstones without content."""
    from rung.cli.store import erase

    erase(where, subject, tenant, reason, echo=typer.echo, config=config)


@store_app.command("sweep")
def store_sweep(where: Where, config: Policy = None) -> None:
    """Erase what has expired."""
    from rung.cli.store import sweep

    sweep(where, echo=typer.echo, config=config)


@store_app.command("vacuum")
def store_vacuum(where: Where, config: Policy = None) -> None:
    """Give unused space back, and remove what erased items left behind in files."""
    from rung.cli.store import vacuum

    vacuum(where, echo=typer.echo, config=config)


@store_app.command("turns")
def store_turns(where: Where, tenant: Tenant = None, config: Policy = None) -> None:
    """List the recorded turns; with `rung store turn` one of them in full."""
    from rung.cli.store import turns

    turns(where, tenant, echo=typer.echo, config=config)


@store_app.command("turn")
def store_turn(
    where: Where,
    turn: Annotated[str, typer.Argument(help="The turn's id, or its beginning.")],
    tenant: Tenant = None,
    config: Policy = None,
) -> None:
    """Print a recorded turn's manifest."""
    from rung.cli.store import turn as show

    show(where, turn, tenant, echo=typer.echo, config=config)


@store_app.command("endorsements")
def store_endorsements(where: Where, tenant: Tenant = None, config: Policy = None) -> None:
    """List who let a text steer or be shown more widely, why, and whether it was taken back."""
    from rung.cli.store import endorsements

    endorsements(where, tenant, echo=typer.echo, config=config)


@store_app.command("replay")
def store_replay(
    where: Where,
    policy: Annotated[Path, typer.Option("--policy", "-p", help="The other policy, or a rung.toml.")],
    tenant: Tenant = None,
    config: Policy = None,
) -> int:
    """Say what another policy would have decided about all that the log holds; exit code 1 where it differs."""
    from rung.cli.store import replay

    return replay(where, policy, tenant, echo=typer.echo, config=config)


@store_app.command("log")
def store_log(
    where: Where,
    tenant: Tenant = None,
    json: Annotated[bool, typer.Option("--json", help="JSON lines, with the links of the hash chain.")] = False,
    config: Policy = None,
) -> None:
    """Print the log of decisions, oldest first."""
    from rung.cli.store import log

    log(where, tenant, json, echo=typer.echo, config=config)
