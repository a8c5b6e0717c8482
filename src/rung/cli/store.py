"""`rung store`: what a store holds and what it refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from rung.errors import InputError, names
from rung.records.types import BUILTIN_TYPES
from rung.storage import maintenance, transfer
from rung.store import ContextStore, core

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
        echo(f"{each.at[:19]}Z  {each.mode:<7}  {each.rule:<11}  {each.message}")
    echo(f"{len(found)} {'refusal' if len(found) == 1 else 'refusals'}")


def stats(where: str, tenant: str | None, *, echo: Echo) -> None:
    """Print how many items there are of each type and source, and how many turns and refusals."""
    with existing(where, tenant) as store:
        counts = Counter((item.type.name, item.source) for item in store.items())
        recorded, refused = sum(1 for _ in store.turns()), len(store.refusals())
        census = maintenance.stats(core(store)[0].backend)
    for (kind, source), count in sorted(counts.items()):
        echo(f"{count:>8}  {kind:<12}  {source}")
    echo(f"{sum(counts.values()):>8}  items, {recorded} recorded turns, {refused} refusals")
    erased = sum(row.erased for row in census)
    others = {row.tenant for row in census} - {tenant, None}
    if erased:
        echo(f"{erased:>8}  erased, of all tenants")
    if others:
        echo(f"{len(others):>8}  other tenants")


def verify(where: str, *, echo: Echo) -> int:
    """Print every problem that reading all of it again finds; 1 where there is one."""
    with existing(where, None) as store:
        found = maintenance.verify(core(store)[0].backend)
    for problem in found.problems:
        detail = f"  {problem.detail}" if problem.detail else ""
        echo(f"{problem.code:<10}  {problem.tenant or '-'}  {problem.id}{detail}")
    echo(
        f"{found.items} items, {found.tombstones} tombstones, {found.entries} log entries, "
        f"{len(found.problems)} problems"
    )
    return 0 if found.is_whole else 1


def export(where: str, to: Path, *, echo: Echo) -> None:
    """Write an export; a file that is there already is left alone.

    Raises:
        InputError: the file exists.
    """
    if to.exists():
        raise InputError(f"`{to}` exists already (name a new file)", field="to")
    count = 0
    with existing(where, None) as store, to.open("w", encoding="utf-8") as file:
        for line in transfer.export(core(store)[0].backend, store.now()):
            file.write(line + "\n")
            count += 1
    echo(f"wrote {count} lines to {to}")


def take_in(where: str, given: Path, *, echo: Echo) -> None:
    """Take in an export."""
    types = {kind.name: kind for kind in BUILTIN_TYPES}
    with given.open(encoding="utf-8") as lines, ContextStore.open(where) as store:
        made = transfer.import_lines(core(store)[0].backend, lines, types)
    echo(f"took in {made.items} items and {made.entries} log entries")


def erase(where: str, subject: str, tenant: str | None, reason: str, *, echo: Echo) -> None:
    """Erase a person's data and say what is gone, and which turns were shown some of it."""
    with existing(where, tenant) as store:
        gone = maintenance.erase_subject(core(store)[0].backend, tenant, subject, at=store.now(), reason=reason)
    echo(f"erased {len(gone.erased)} items; {len(gone.turns)} recorded turns were shown one of them")


def sweep(where: str, *, echo: Echo) -> None:
    """Erase what has expired."""
    with existing(where, None) as store:
        swept = maintenance.sweep(core(store)[0].backend, store.now())
    echo(f"erased {sum(map(len, swept.values()))} expired items")


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
