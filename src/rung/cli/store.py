"""`rung store`: what a store holds and what it refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rung.errors import InputError, names
from rung.store import ContextStore

Echo = Callable[[str], Any]


@contextmanager
def existing(where: str, tenant: str | None) -> Generator[ContextStore]:
    """A store that is there already; asking one does not make one.

    Raises:
        InputError: no such file.
    """
    if "://" not in where and not Path(where).is_file():
        raise InputError(f"`{where}` is no store (give the path of a file that `--save` wrote)", field="store")
    with ContextStore.open(where) as store:
        yield store.scope(tenant=tenant)


def refusals(where: str, tenant: str | None, *, echo: Echo) -> None:
    """Print each refusal on a line, oldest first."""
    with existing(where, tenant) as store:
        found = store.refusals()
    for each in found:
        echo(f"{each.at:%Y-%m-%dT%H:%M:%SZ}  {each.mode:<7}  {each.rule:<11}  {each.message}")
    echo(f"{len(found)} {'refusal' if len(found) == 1 else 'refusals'}")


def stats(where: str, tenant: str | None, *, echo: Echo) -> None:
    """Print how many items there are of each type and source, and how many turns and refusals."""
    with existing(where, tenant) as store:
        counts = Counter((item.type.name, item.source) for item in store.items())
        recorded, refused = sum(1 for _ in store.turns()), len(store.refusals())
    for (kind, source), count in sorted(counts.items()):
        echo(f"{count:>8}  {kind:<12}  {source}")
    echo(f"{sum(counts.values()):>8}  items, {recorded} recorded turns, {refused} refusals")


def turns(where: str, tenant: str | None, *, echo: Echo) -> None:
    """Print a line for each recorded turn, oldest first."""
    with existing(where, tenant) as store:
        for made in store.turns():
            totals = made.totals
            session = made.session or "-"
            echo(f"{made.turn}  {made.at[:19]}  {session}  {made.target}  {totals.total} of {totals.available} tokens")


def turn(where: str, wanted: str, tenant: str | None, *, echo: Echo) -> None:
    """Print one recorded turn's manifest as a table.

    Raises:
        InputError: no turn of this id, or several that begin so.
    """
    with existing(where, tenant) as store:
        found = {made.turn: made for made in store.turns() if made.turn.startswith(wanted)}
    if len(found) != 1:
        several = f"{len(found)} turns: {names(found)}"
        raise InputError(f"`{wanted}` names {several if found else 'no turn (see `rung store turns`)'}", field="turn")
    echo(next(iter(found.values())).table())
