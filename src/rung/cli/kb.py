"""`rung kb`: documents in a knowledge base, and what it finds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rung.cli.show import counting, printable
from rung.errors import InputError
from rung.knowledge import KnowledgeBase
from rung.knowledge.read import FORMATS, walk
from rung.records.labels import Sensitivity

if TYPE_CHECKING:
    from rung.knowledge import Embed

Echo = Callable[[str], Any]


def add(
    paths: Sequence[Path],
    db: str,
    tenant: str | None,
    sync: bool,
    scopes: Iterable[str],
    sensitivity: str | None,
    meaning: bool,
    *,
    echo: Echo,
) -> None:
    """Add files and folders; with `sync`, also remove what the folders no longer hold. A bar on a terminal.

    Raises:
        InputError: no such path, a file with `sync`, or a file that cannot be read; what was added before stays.
    """
    for path in paths:
        if not path.exists():
            raise InputError(f"`{path}` does not exist (correct the path)", field="paths")
        if sync and not path.is_dir():
            raise InputError(f"`{path}` is no folder (`--sync` is for folders; leave it out)", field="paths")
    level = None if sensitivity is None else _level(sensitivity, "sensitivity")
    counts: Counter[str] = Counter()
    scopes = tuple(scopes)
    with _opened(db, meaning) as base:
        if sync:
            for path in paths:
                with counting(f"reading {path.name}") as progress:
                    done = base.sync(path, tenant=tenant, access=scopes, sensitivity=level, progress=progress)
                for what in ("added", "changed", "unchanged", "removed", "skipped"):
                    counts[what] += len(getattr(done, what))
        else:
            files = [one for path in paths for one in _files(path)]
            with counting("reading") as progress:
                for place, (name, path) in enumerate(files, 1):
                    if path.suffix.lower() not in FORMATS and path not in paths:
                        counts["skipped"] += 1
                        continue
                    made = base.add(path, document=name, tenant=tenant, access=scopes, sensitivity=level)
                    counts[made.status] += 1
                    if progress is not None:
                        progress(place, len(files), name)
        held = base.stats()
    told = [f"{counts[what]} {what}" for what in ("added", "changed", "unchanged")]
    told += [f"{counts[what]} {what}" for what in ("removed", "skipped") if counts[what]]
    echo(", ".join(told))
    echo(f"{db} holds {held.documents} documents in {held.chunks} passages")


def search(
    question: str,
    db: str,
    tenant: str | None,
    limit: int,
    minimum: float | None,
    scopes: Iterable[str],
    clearance: str,
    meaning: bool,
    *,
    echo: Echo,
) -> None:
    """Print the passages that fit, best first."""
    if not question.strip():
        raise InputError("the question is empty (say what is looked for)", field="question")
    _require(db)
    with _opened(db, meaning) as base:
        hits = base.search(
            question,
            tenant=tenant,
            limit=limit,
            minimum=minimum,
            scopes=scopes,
            clearance=_level(clearance, "clearance"),
        )
    for hit in hits:
        echo(f"{hit.score:.2f}  {printable(hit.citation)}")
        echo("\n".join(f"      {line}".rstrip() for line in printable(hit.text, lines=True).splitlines()))
        echo("")
    echo(f"{len(hits)} {'passage' if len(hits) == 1 else 'passages'}")


def stats(db: str, *, echo: Echo) -> None:
    """Print how much there is."""
    _require(db)
    with _opened(db, meaning=False) as base:
        held = base.stats()
    for count, what in (
        (held.documents, "documents"),
        (held.chunks, "passages"),
        (held.tokens, "tokens"),
        (held.tenants, "tenants"),
        (held.embedded, f"passages with a vector of {held.embedder}" if held.embedder else "passages with a vector"),
        (held.bytes, "bytes"),
    ):
        echo(f"{count:>12,}  {what}")


def _files(path: Path) -> list[tuple[str, Path]]:
    """The files of a folder with their paths below it, or the file with its name."""
    return list(walk(path)) if path.is_dir() else [(path.name, path)]


def _require(db: str) -> None:
    if "://" not in db and not Path(db).is_file():
        raise InputError(f"`{db}` is no knowledge base (make it with `rung kb add`)", field="db")


def _opened(db: str, meaning: bool) -> KnowledgeBase:
    return KnowledgeBase.open(db, embed=_embedding() if meaning else None)


def _embedding() -> Embed:
    from rung.knowledge.embeddings import WordLlamaEmbedding

    return WordLlamaEmbedding()


def _level(name: str, option: str) -> Sensitivity:
    try:
        return Sensitivity.parse(name)
    except ValueError as problem:
        raise InputError(f"`--{option}`: {problem}", field=option) from None
