"""The commands and their options."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.main

from rung.cli.app_kb import kb_app
from rung.cli.app_store import Tenant, Where, store_app

app = typer.Typer(
    name="rung",
    help="A typed context runtime for LLM agents.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)
policy_app = typer.Typer(help="Explain and check policies.", no_args_is_help=True)
memory_app = typer.Typer(help="Review what a store keeps of a person.", no_args_is_help=True)
app.add_typer(memory_app, name="memory")
app.add_typer(policy_app, name="policy")
app.add_typer(store_app, name="store")
app.add_typer(kb_app, name="kb")


class UsageError(Exception):
    """The command line itself is wrong; the message is one line."""


def command() -> int:
    """Run the command line of this process; its exit code.

    Raises:
        UsageError: no such command or option, or a missing argument.
        RungError: what the command refused.
    """
    # Not app(): that would turn a closed pipe and an interrupt into exits of its own.
    parser: Any = typer.main.get_command(app)
    try:
        with parser.make_context("rung", sys.argv[1:]) as context:
            code: Any = parser.invoke(context)
    except typer.Exit as end:
        return end.exit_code
    except Exception as problem:
        # typer carries its own copy of click, or uses the installed one, as its version has it.
        tell = getattr(problem, "format_message", None)
        if tell is None:
            raise
        return _misused(problem, str(tell()).strip())
    return code if isinstance(code, int) else 0


def _misused(problem: Exception, told: str) -> int:
    if type(problem).__name__ == "NoArgsIsHelpError":
        typer.echo(told)
        return 2
    context: Any = getattr(problem, "ctx", None)
    path: str = "rung" if context is None else context.command_path
    raise UsageError(f"{told[:1].lower()}{told[1:].rstrip('.')} (see `{path} --help`)") from None


Config = Annotated[Path, typer.Option("--config", "-c", help="The rung.toml to use.")]


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        typer.echo(f"rung {version('rung')}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """A typed context runtime for LLM agents."""


@app.command()
def demo() -> None:
    """Walk through an order lookup: what is taken in, promoted, refused, and compiled. Offline."""
    from rung.cli.demo import run_demo

    run_demo(typer.echo)


@app.command("compile")
def compile_command(
    question: Annotated[str, typer.Argument(help="The request of the turn.")],
    config: Config = Path("rung.toml"),
    budget: Annotated[int | None, typer.Option(help="Tokens of the whole request.")] = None,
    intent: Annotated[str | None, typer.Option(help="The name of an intent of the policy.")] = None,
    target: Annotated[
        str | None,
        typer.Option(help="openai-chat, openai-responses, anthropic or text."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the manifest alone, as JSON.")] = False,
    request: Annotated[bool, typer.Option("--request", help="Print the request alone, as JSON.")] = False,
    save: Annotated[Path | None, typer.Option(help="Keep items and turn in this file; the next turn goes on.")] = None,
    out: Annotated[Path | None, typer.Option(help="Also write request and manifest into this folder.")] = None,
) -> None:
    """Compile a turn from real files; no model takes part. Prints the messages, then why they are so."""
    from rung.cli.compile import run_compile

    if json and request:
        raise UsageError("`--json` and `--request` are both given (keep one)")
    run_compile(
        question,
        config=config,
        budget=budget,
        intent=intent,
        target=target,
        show="manifest" if json else "request" if request else "all",
        save=save,
        out=out,
        echo=typer.echo,
    )


@app.command("run")
def run_command(
    question: Annotated[str, typer.Argument(help="What the agent is asked.")],
    config: Config = Path("rung.toml"),
    session: Annotated[str | None, typer.Option(help="Which conversation; it goes on where it is kept.")] = None,
    intent: Annotated[str | None, typer.Option(help="The name of an intent of the policy.")] = None,
    stream: Annotated[bool, typer.Option("--stream", help="Print the answer as it comes.")] = False,
    manifest: Annotated[bool, typer.Option("--manifest", help="Then print why each request was as it was.")] = False,
    save: Annotated[Path | None, typer.Option(help="Keep items and turns in this file.")] = None,
) -> int:
    """Answer a question by the configured model, with the configuration's sources, session and limits."""
    from rung.cli.run import run_once

    return run_once(
        question,
        config=config,
        session=session,
        intent=intent,
        stream=stream,
        manifest=manifest,
        save=save,
        echo=typer.echo,
    )


@app.command("chat")
def chat_command(
    config: Config = Path("rung.toml"),
    session: Annotated[str | None, typer.Option(help="Which conversation; it goes on where it is kept.")] = None,
    intent: Annotated[str | None, typer.Option(help="The name of an intent of the policy.")] = None,
    save: Annotated[Path | None, typer.Option(help="Keep items and turns in this file.")] = None,
) -> int:
    """Talk with the configured agent, line by line, until the input ends."""
    from rung.cli.run import chat

    return chat(config=config, session=session, intent=intent, save=save, echo=typer.echo)


@app.command()
def init(
    folder: Annotated[Path, typer.Argument(help="Where to write rung.toml.")] = Path("."),
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing file.")] = False,
) -> None:
    """Write a commented rung.toml with a small example beside it."""
    from rung.cli.init import run_init

    run_init(folder, force=force, echo=typer.echo)


@app.command()
def check(
    paths: Annotated[list[Path], typer.Argument(help="Python files, or folders of them.")],
    format: Annotated[str, typer.Option(help="How findings are written: text, json, sarif or github.")] = "text",
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A TOML file; default: pyproject.toml.")] = None,
) -> int:
    """Find where text from tools, retrieval or memory is built into a prompt. The code is read, never run."""
    from rung.check import run_check

    return run_check(list(paths), format=format, config_path=config)


@policy_app.command("explain")
def policy_explain(
    file: Annotated[Path, typer.Argument(help="A policy or a rung.toml.")],
) -> None:
    """Print who can become what, through which validators; refuse a policy with an unguarded path."""
    from rung.cli.init import read_any_policy
    from rung.policy.load import explain

    typer.echo(explain(read_any_policy(file)))


Subject = Annotated[str, typer.Option(help="The person whose memories are meant; exact.")]
Named = Annotated[str, typer.Option("--source", help="The name of the memory's source.")]
MemoryId = Annotated[str, typer.Argument(help="The memory's id, its name, or the beginning of its id.")]


@memory_app.command("list")
def memory_list(
    where: Where,
    subject: Subject,
    tenant: Tenant = None,
    category: Annotated[
        str | None, typer.Option(help="preference, fact, interaction, feedback or standing; default: every one.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Also what was replaced, has expired, or was revoked.")
    ] = False,
    source: Named = "memory",
) -> None:
    """List what is kept of a person, oldest first."""
    from rung.cli.memory import listed

    listed(where, subject, tenant, category, everything, source, echo=typer.echo)


@memory_app.command("show")
def memory_show(
    where: Where, memory: MemoryId, subject: Subject, tenant: Tenant = None, source: Named = "memory"
) -> None:
    """Print one memory with its origin, its age and what it replaced."""
    from rung.cli.memory import shown

    shown(where, memory, subject, tenant, source, echo=typer.echo)


@memory_app.command("forget")
def memory_forget(
    where: Where,
    memory: MemoryId,
    subject: Subject,
    tenant: Tenant = None,
    reason: Annotated[str, typer.Option(help="Why, as the log says; without content.")] = "forgotten on request",
    keep_text: Annotated[bool, typer.Option("--keep-text", help="Revoke only; the text stays for an audit.")] = False,
    source: Named = "memory",
) -> None:
    """Forget a memory, what it had replaced, and what was derived from them."""
    from rung.cli.memory import forgotten

    forgotten(where, memory, subject, tenant, reason, keep_text, source, echo=typer.echo)
