"""`rung store`: what a store holds and what it refused."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from rung.cli.init import read_any_policy
from rung.cli.show import printable
from rung.errors import InputError, names
from rung.ledger.audit import export_log
from rung.records.types import BUILTIN_TYPES
from rung.storage import maintenance, transfer
from rung.store import ContextStore, core

Echo = Callable[[str], Any]


@contextmanager
def existing(where: str, tenant: str | None, config: Path | None = None) -> Generator[ContextStore]:
    """A store that is there already, opened with a configuration's policy; asking one does not make one.

    Raises:
        InputError: no such file.
        ConfigError, PolicyError: the configuration is wrong.
    """
    if "://" not in where and not Path(where).is_file():
        raise InputError(f"`{where}` is no store (give the path of a file that `--save` wrote)", field="store")
    with _opened(where, config) as store:
        yield store.scope(tenant=tenant)


def _opened(where: str, config: Path | None) -> ContextStore:
    return ContextStore.open(where, policy=None if config is None else read_any_policy(config))


def refusals(where: str, tenant: str | None, *, echo: Echo, config: Path | None = None) -> None:
    """Print each refusal on a line, oldest first."""
    with existing(where, tenant, config) as store:
        found = store.refusals()
    for each in found:
        echo(f"{each.at[:19]}Z  {each.mode:<7}  {each.rule:<11}  {each.message}")
    echo(f"{len(found)} {'refusal' if len(found) == 1 else 'refusals'}")


def stats(where: str, tenant: str | None, *, echo: Echo, config: Path | None = None) -> None:
    """Print how many items there are of each type and source, and how many turns and refusals."""
    with existing(where, tenant, config) as store:
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


def verify(where: str, *, echo: Echo, config: Path | None = None) -> int:
    """Print every problem that reading all of it again finds; 1 where there is one."""
    with existing(where, None, config) as store:
        found = maintenance.verify(core(store)[0].backend)
    for problem in found.problems:
        detail = f"  {problem.detail}" if problem.detail else ""
        echo(f"{problem.code:<10}  {problem.tenant or '-'}  {problem.id}{detail}")
    echo(
        f"{found.items} items, {found.tombstones} tombstones, {found.entries} log entries, "
        f"{len(found.problems)} problems"
    )
    return 0 if found.is_whole else 1


def export(where: str, to: Path, *, echo: Echo, config: Path | None = None) -> None:
    """Write an export; a file that is there already is left alone.

    Raises:
        InputError: the file exists.
    """
    if to.exists():
        raise InputError(f"`{to}` exists already (name a new file)", field="to")
    count = 0
    with existing(where, None, config) as store, to.open("w", encoding="utf-8") as file:
        for line in transfer.export(core(store)[0].backend, store.now()):
            file.write(line + "\n")
            count += 1
    echo(f"wrote {count} lines to {to}")


def take_in(where: str, given: Path, *, echo: Echo, config: Path | None = None) -> None:
    """Take in an export."""
    with given.open(encoding="utf-8") as lines, _opened(where, config) as store:
        ledger = core(store)[0]
        types = {kind.name: kind for kind in BUILTIN_TYPES}
        types |= {kind: store.type_named(kind) for kind in ledger.policy.types}
        made = transfer.import_lines(ledger.backend, lines, types)
    echo(f"took in {made.items} items and {made.entries} log entries")


def erase(where: str, subject: str, tenant: str | None, reason: str, *, echo: Echo, config: Path | None = None) -> None:
    """Erase a person's data and say what is gone, and which turns were shown some of it."""
    with existing(where, tenant, config) as store:
        gone = maintenance.erase_subject(core(store)[0].backend, tenant, subject, at=store.now(), reason=reason)
    echo(f"erased {len(gone.erased)} items; {len(gone.turns)} recorded turns were shown one of them")


def sweep(where: str, *, echo: Echo, config: Path | None = None) -> None:
    """Erase what has expired."""
    with existing(where, None, config) as store:
        swept = maintenance.sweep(core(store)[0].backend, store.now())
    echo(f"erased {sum(map(len, swept.values()))} expired items")


def vacuum(where: str, *, echo: Echo, config: Path | None = None) -> None:
    """Give unused space back."""
    with existing(where, None, config) as store:
        maintenance.vacuum(core(store)[0].backend)
    echo(f"{where}: unused space is given back")


def turns(where: str, tenant: str | None, *, echo: Echo, config: Path | None = None) -> None:
    """Print a line for each recorded turn, oldest first."""
    with existing(where, tenant, config) as store:
        for made in store.turns():
            totals = made.totals
            session = made.session or "-"
            echo(f"{made.turn}  {made.at[:19]}  {session}  {made.target}  {totals.total} of {totals.available} tokens")


def turn(where: str, wanted: str, tenant: str | None, *, echo: Echo, config: Path | None = None) -> None:
    """Print one recorded turn's manifest as a table.

    Raises:
        InputError: no turn of this id, or several that begin so.
    """
    with existing(where, tenant, config) as store:
        found = {made.turn: made for made in store.turns() if made.turn.startswith(wanted)}
    if len(found) != 1:
        several = f"{len(found)} turns: {names(found)}"
        raise InputError(f"`{wanted}` names {several if found else 'no turn (see `rung store turns`)'}", field="turn")
    echo(next(iter(found.values())).table())


def endorsements(where: str, tenant: str | None, *, echo: Echo, config: Path | None = None) -> None:
    """Print each endorsement and declassification, oldest first, with what became of it."""
    with existing(where, tenant, config) as store:
        found = store.endorsements()
    for given in found:
        at, by, reason = _day(given.at), printable(given.by), printable(given.reason)
        echo(f"{given.number:>6}  {at}  {given.kind:<16}  {given.item}  by {by}: {reason}")
        if given.revoked_at is not None:
            taken, why = printable(given.revoked_by or ""), printable(given.revoked_because or "")
            echo(f"        {_day(given.revoked_at)}  taken back by {taken}: {why}")
    echo(f"{len(found)} {'endorsement' if len(found) == 1 else 'endorsements'}")


def replay(where: str, policy: Path, tenant: str | None, *, echo: Echo, config: Path | None = None) -> int:
    """Print each decision that another policy turns round, and what cannot be judged; 1 where there is a difference."""
    rules = read_any_policy(policy)
    with existing(where, tenant, config) as store:
        found = store.replay(rules)
    for each in found.differences:
        change = f"{each.before} → {each.after}"
        echo(f"{each.number:>6}  {_day(each.at)}  {change:<17}  {each.rule:<11}  {printable(each.message)}")
    for why, count in sorted(Counter(each.why for each in found.unjudged).items()):
        echo(f"{count:>6}  cannot be judged: {why.replace('_', ' ')}")
    number = len(found.differences)
    echo(f"{found.judged} decisions judged, {number} {'difference' if number == 1 else 'differences'}")
    return 1 if found.differences else 0


def log(where: str, tenant: str | None, as_json: bool, *, echo: Echo, config: Path | None = None) -> None:
    """Print the log of decisions of one tenant, or of what belongs to none."""
    with existing(where, tenant, config) as store:
        backend = core(store)[0].backend
        if as_json:
            for line in export_log(backend, (tenant,)):
                echo(line)
            return
        for entry in backend.logged((tenant,)):
            echo(f"{entry.number:>6}  {_day(entry.at)}  {entry.kind:<16}  {printable(entry.body)}")


def _day(at: datetime) -> str:
    return f"{at:%Y-%m-%dT%H:%M:%S}Z"
