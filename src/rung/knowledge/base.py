"""`KnowledgeBase`: documents in one SQLite file, searched by words, by meaning, or both."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self

from rung.errors import ConfigError, InputError, kind
from rung.knowledge.filters import Filters, tenant_key
from rung.knowledge.find import DEFAULT_MINIMUM, ranked, reranked
from rung.knowledge.labelled import Labelled, labelled
from rung.knowledge.listing import count_everything, list_documents
from rung.knowledge.meaning import Meaning
from rung.knowledge.read import FORMATS, MAX_BYTES, FileContent, Format, read_file, walk
from rung.knowledge.search import read_hits
from rung.knowledge.session import Database
from rung.knowledge.sqlite import SqliteDatabase
from rung.knowledge.times import micros
from rung.knowledge.values import (
    Added,
    DocumentInfo,
    Embed,
    Hit,
    KnowledgeStats,
    Mode,
    Progress,
    Rerank,
    Status,
    Synced,
)
from rung.knowledge.writing import (
    FolderState,
    Prepared,
    chunks_held,
    delete,
    prepare,
    remove_gone,
    version_of,
    write,
)
from rung.records.canonical import canonical_text
from rung.records.clock import Clock, aware_utc, system_clock
from rung.records.labels import Sensitivity
from rung.tokens.encodings import TiktokenTokenizer
from rung.tokens.protocol import Tokenizer


class KnowledgeBase:
    """Documents, cut at their structure and found again. Made by `KnowledgeBase.open`.

    It may be used by several threads; several processes may hold the same file.
    """

    def __init__(
        self,
        database: Database,
        meaning: Meaning | None,
        *,
        clock: Clock,
        tokenizer: Tokenizer,
        chunk_tokens: int,
        weights: tuple[float, float],
    ) -> None:
        self._database = database
        self._meaning = meaning
        self._clock = clock
        self._tokenizer = tokenizer
        self._chunk_tokens = chunk_tokens
        self._weights = weights

    @classmethod
    def open(
        cls,
        path: str | os.PathLike[str] = ":memory:",
        *,
        embed: Embed | None = None,
        reembed: bool = False,
        clock: Clock = system_clock,
        tokenizer: Tokenizer | None = None,
        chunk_tokens: int = 300,
        weights: tuple[float, float] = (1.0, 1.0),
        busy_timeout: float = 30.0,
        schema: str = "rung_knowledge",
    ) -> Self:
        """Open a knowledge base, made if absent.

        Args:
            path: a file, `:memory:`, or `postgresql://…`.
            embed: texts to vectors; without it only words are compared.
            reembed: compute every vector again, with this `embed`.
            clock: the present, where a search names none.
            tokenizer: what chunks are measured by; default: o200k_base.
            chunk_tokens: the size of a chunk, in tokens.
            weights: of words and of meaning in the fused ranking.
            busy_timeout: how long a write waits for other writers, in seconds.
            schema: where the tables are in PostgreSQL.

        Raises:
            ConfigError: the stored vectors are another model's, or an argument is out of range.
            SchemaVersionError: the file is another program's, or from a newer version.
            StoreBusyError: another process held the file for longer than `busy_timeout`.
            StoreError: the file cannot be opened.
        """
        if chunk_tokens < 16:
            raise ConfigError(f"`chunk_tokens` is {chunk_tokens} (give at least 16)", path="chunk_tokens")
        if min(weights) < 0 or sum(weights) <= 0:
            raise ConfigError("`weights` are two numbers of at least 0, and not both 0", path="weights")
        if reembed and embed is None:
            raise ConfigError("`reembed` needs a model (give embed=…)", path="embed")
        database = _database(os.fspath(path), busy_timeout, schema)
        try:
            meaning = None if embed is None else Meaning(database, embed)
            if meaning is not None and reembed:
                meaning.reembed()
            elif meaning is not None:
                with database.reading() as session:
                    meaning.check(session)
        except BaseException:
            database.close()
            raise
        return cls(
            database,
            meaning,
            clock=clock,
            tokenizer=tokenizer if tokenizer is not None else TiktokenTokenizer("o200k_base"),
            chunk_tokens=chunk_tokens,
            weights=weights,
        )

    @property
    def path(self) -> str:
        """Its file, or `:memory:`."""
        return self._database.path

    # Adding and removing

    def add(
        self,
        source: Path | str,
        *,
        document: str | None = None,
        title: str | None = None,
        tenant: str | None = None,
        access: Iterable[str] = (),
        sensitivity: Sensitivity | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        version: str | None = None,
        observed_at: datetime | None = None,
        valid_from: datetime | None = None,
        valid_to: datetime | None = None,
        format: Format | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> Added:
        """Add a document, or put it in the place of its earlier version. The same again does nothing.

        An earlier version is never found once the new one is valid.

        Args:
            source: a `Path` to a file, or a text.
            document: its id, which citations show; of a file: its name, if not given.
            title: default: what the document calls itself.
            tenant: whose it is; None: everybody's. A tenant's own hides everybody's of the same id.
            access: scopes, each of which a reader needs.
            sensitivity: default: what the policy of the source says.
            metadata: JSON values to filter by.
            version: its owner's name for this version; a new text is a new version without it too.
            observed_at: the document's own time; default: the file's, or now.
            valid_from, valid_to: when it applies; `valid_to` is the first moment at which it does not.
            format: of a text; default Markdown. A file's is known by its name.
            max_bytes: the largest file to be read.

        Raises:
            InputError: the file is binary, broken, too large, not UTF-8 or of no known kind, or holds no text.
            MissingExtraError: the package for its format is not installed.
        """
        if isinstance(source, Path):
            if source.is_dir():
                raise InputError(f"`{source.name}` is a folder (use `sync`)", field="source")
            content = read_file(source, max_bytes=max_bytes)
            document = source.name if document is None else document
        elif isinstance(source, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            if document is None:
                raise InputError("a text has no name of its own (give document=…)", field="document")
            data = canonical_text(source, "source")[0].encode()
            if len(data) > max_bytes:
                raise InputError(f"`{document}` has more than {max_bytes:,} bytes (split it)", field="source")
            content = FileContent(name=document, format=format or "markdown", data=data, changed=micros(self._clock()))
        else:
            raise InputError(f"`source` is of kind {kind(source)} (give a Path or a `str`)", field="source")
        labels = labelled(
            document,
            content.changed,
            title=title,
            tenant=tenant,
            access=access,
            sensitivity=sensitivity,
            metadata=metadata,
            version=version,
            observed_at=observed_at,
            valid_from=valid_from,
            valid_to=valid_to,
        )
        one = self._prepared(content, labels)
        if isinstance(one, Added):
            return one
        status = self._write_all([one], None)[0][0]
        return Added(document=document, version=one.version, status=status, chunks=len(one.chunks))

    def sync(
        self,
        folder: Path | str,
        *,
        tenant: str | None = None,
        access: Iterable[str] = (),
        sensitivity: Sensitivity | str | None = None,
        metadata: Mapping[str, Any] | None = None,
        prefix: str = "",
        collection: str | None = None,
        on_error: Literal["raise", "skip"] = "raise",
        progress: Progress | None = None,
        max_bytes: int = MAX_BYTES,
    ) -> Synced:
        """Make the base hold what a folder holds: new and changed files in, deleted ones out, in one transaction.

        A document's id is `prefix` and the file's path below the folder. Symbolic links and names that begin with a dot
        are left out, and files of no known kind are reported as skipped.

        Args:
            collection: which documents belong to this folder; default: its absolute path.
            on_error: `"raise"`: a file that cannot be read leaves the base as it was. `"skip"`: it is reported,
                and no version of it is held.
            progress: called after each file.

        Raises:
            InputError: no such folder, or a file that cannot be read.
        """
        root = Path(folder)
        if not root.is_dir():
            raise InputError(f"`{root.name}` is no folder", field="folder")
        if on_error not in ("raise", "skip"):
            raise InputError(f"`{on_error}` is no rule (give `raise` or `skip`)", field="on_error")
        owner = collection if collection is not None else root.resolve().as_posix()
        found = list(walk(root))
        files = [(name, path) for name, path in found if path.suffix.lower() in FORMATS]
        prepared: list[Prepared] = []
        unchanged: list[str] = []
        failed: list[tuple[str, str]] = []
        for place, (name, path) in enumerate(files, 1):
            try:
                content = read_file(path, name=name, max_bytes=max_bytes)
                labels = labelled(
                    prefix + name,
                    content.changed,
                    tenant=tenant,
                    access=access,
                    sensitivity=sensitivity,
                    metadata=metadata,
                    collection=owner,
                )
                one = self._prepared(content, labels)
                if isinstance(one, Added):
                    unchanged.append(one.document)
                else:
                    prepared.append(one)
            except InputError as error:
                if on_error == "raise":
                    raise
                failed.append((prefix + name, error.message))
            if progress is not None:
                progress(place, len(files), name)
        kept = frozenset((*unchanged, *(one.labels.document for one in prepared)))
        statuses, removed = self._write_all(prepared, FolderState(owner, tenant, kept))
        named = [(one.labels.document, status) for one, status in zip(prepared, statuses, strict=True)]
        return Synced(
            added=tuple(name for name, status in named if status == "added"),
            changed=tuple(name for name, status in named if status == "changed"),
            unchanged=tuple(sorted((*unchanged, *(name for name, status in named if status == "unchanged")))),
            removed=removed,
            failed=tuple(failed),
            skipped=tuple(name for name, path in found if path.suffix.lower() not in FORMATS),
        )

    def remove(self, document: str, *, tenant: str | None = None) -> bool:
        """Delete a document with all its versions; whether there was one."""
        with self._database.writing() as session:
            rows = session.execute(
                "SELECT row FROM documents WHERE tenant = ? AND document = ?", (tenant_key(tenant), document)
            ).fetchall()
            for (row,) in rows:
                delete(session, row)
        return bool(rows)

    # Finding

    def search(
        self,
        query: str,
        *,
        tenant: str | None,
        scopes: Iterable[str] = (),
        clearance: Sensitivity = Sensitivity.INTERNAL,
        limit: int = 10,
        minimum: float | None = None,
        mode: Mode = "auto",
        metadata: Mapping[str, Any] | None = None,
        version: str | None = None,
        document: str | None = None,
        now: datetime | None = None,
        rerank: Rerank | None = None,
        overfetch: int = 10,
    ) -> list[Hit]:
        """Passages that fit a question, best first.

        Scores are from 0 to 1. `lexical` and `semantic`: the share of the best hit's BM25 or cosine. `fused`:
        reciprocal rank fusion, as the share of what the first of both rankings would get. With `rerank`: what
        it returned.

        Args:
            query: any text; nothing in it is syntax.
            tenant: whose documents beside everybody's; to be given, so that it cannot be forgotten.
            scopes, clearance: what the reader may see.
            limit: the most hits.
            minimum: the least score; default 0.7 for words or meaning alone, 0.35 fused, 0 reranked.
            mode: `auto` fuses both where there are vectors.
            metadata, version, document: what the documents must be.
            now: the moment at which they must be valid; default: the clock's.
            rerank: scores the candidates again.
            overfetch: candidates for each hit that is wanted, before fusing and reranking.

        Raises:
            ConfigError: meaning is asked for without an `embed`.
            SourceError: `embed` or `rerank` returned something else than was agreed.
        """
        if not isinstance(query, str):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise InputError(f"`query` is of kind {kind(query)}, not text", field="query")
        if mode not in ("auto", "fused", "lexical", "semantic"):
            raise InputError(f"`{mode}` is no ranking (auto, fused, lexical or semantic)", field="mode")
        if mode in ("fused", "semantic") and self._meaning is None:
            raise ConfigError(f"`{mode}` compares meanings (open the base with embed=…)", path="embed")
        if limit <= 0 or not query.strip():
            return []
        filters = Filters(
            tenant=tenant,
            now=aware_utc(now, "now") if now is not None else self._clock(),
            scopes=frozenset(scopes),
            clearance=clearance,
            metadata=metadata or {},
            version=version,
            document=document,
        )
        question = query.encode("utf-8", "replace").decode()
        pool = max(50, limit * max(1, overfetch))
        with self._database.reading() as session:
            scale, found = ranked(
                session, self._meaning, question, filters, mode=mode, pool=pool, weights=self._weights
            )
            if rerank is None:
                least = DEFAULT_MINIMUM[scale] if minimum is None else minimum
                return read_hits(session, [one for one in found if one.score >= least], limit)
            hits = read_hits(session, found, pool)
        least = DEFAULT_MINIMUM["reranked"] if minimum is None else minimum
        return [hit for hit in reranked(rerank, query, hits) if hit.score >= least][:limit]

    def documents(self, *, tenant: str | None) -> list[DocumentInfo]:
        """The documents of a tenant (None: everybody's), in the order of their ids, versions by age."""
        with self._database.reading() as session:
            return list_documents(session, tenant)

    def stats(self) -> KnowledgeStats:
        """How much there is, of all tenants."""
        with self._database.reading() as session:
            return count_everything(session)

    def close(self) -> None:
        """Close the file. Closing twice does nothing."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # Within

    def _prepared(self, content: FileContent, labels: Labelled) -> Prepared | Added:
        """What is to be written; or, where this version is held already, that it is unchanged."""
        digest = version_of(content, labels, self._tokenizer, self._chunk_tokens)
        with self._database.reading() as session:
            held = chunks_held(session, labels, digest, self._meaning is not None)
        if held is not None:
            return Added(document=labels.document, version=digest, status="unchanged", chunks=held)
        return prepare(content, labels, self._tokenizer, self._chunk_tokens)

    def _write_all(
        self, prepared: Sequence[Prepared], folder: FolderState | None
    ) -> tuple[list[Status], tuple[str, ...]]:
        """Everything in one transaction; vectors are computed before it begins."""
        if self._meaning is not None:
            prepared = self._meaning.with_vectors(prepared)
        now = micros(self._clock())
        with self._database.writing() as session:
            if self._meaning is not None:
                self._meaning.claim(session, prepared)
            statuses: list[Status] = [write(session, one, now) for one in prepared]
            removed = () if folder is None else remove_gone(session, folder)
        return statuses, removed


def _database(path: str, busy_timeout: float, schema: str) -> Database:
    if not path.startswith(("postgresql://", "postgres://")):
        return SqliteDatabase(path, busy_timeout)
    from rung.knowledge.postgres import PostgresDatabase

    return PostgresDatabase(path, busy_timeout, schema)
