"""The commands and their options."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

app = typer.Typer(
    name="rung",
    help="A typed context runtime for LLM agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
policy_app = typer.Typer(help="Explain and check policies.", no_args_is_help=True)
app.add_typer(policy_app, name="policy")

Config = Annotated[Path, typer.Option("--config", "-c", help="The rung.toml to use.")]


@app.command()
def demo() -> None:
    """Walk through an order lookup: what is taken in, promoted, refused, and compiled. Offline."""
    from rung.cli.demo import run_demo

    run_demo(typer.echo)


@app.command("compile")
def compile_command(
    question: Annotated[str, typer.Argument(help="The request of the turn.")],
    config: Config = Path("rung.toml"),
    budget: Annotated[Optional[int], typer.Option(help="Tokens of the whole request.")] = None,  # noqa: UP045
    intent: Annotated[Optional[str], typer.Option(help="The name of an intent of the policy.")] = None,  # noqa: UP045
    target: Annotated[
        Optional[str],  # noqa: UP045
        typer.Option(help="openai-chat, openai-responses, anthropic or text."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the manifest as JSON.")] = False,
    request: Annotated[bool, typer.Option("--request", help="Print the request alone, as JSON.")] = False,
    save: Annotated[Optional[Path], typer.Option(help="Keep the store and the turn in this file.")] = None,  # noqa: UP045
    out: Annotated[Optional[Path], typer.Option(help="Also write request and manifest into this folder.")] = None,  # noqa: UP045
) -> None:
    """Compile a turn from real files; no model takes part. Prints the request, then its manifest."""
    from rung.cli.compile import run_compile

    run_compile(
        question,
        config=config,
        budget=budget,
        intent=intent,
        target=target,
        as_json=json,
        only_request=request,
        save=save,
        out=out,
        echo=typer.echo,
    )


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write rung.toml.")] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented rung.toml with a small example beside it."""
    from rung.cli.init import run_init

    run_init(folder, force=force, echo=typer.echo)


@policy_app.command("explain")
def policy_explain(
    file: Annotated[Path, typer.Argument(help="A policy or a rung.toml.")],
) -> None:
    """Print who can become what, through which validators; refuse a policy with an unguarded path."""
    from rung.cli.init import read_any_policy
    from rung.policy.load import explain

    typer.echo(explain(read_any_policy(file)))
