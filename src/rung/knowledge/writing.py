"""Documents into rows: prepared outside the transaction, written inside it."""

from __future__ import annotations

import json
from hashlib import blake2b
from pathlib import PurePosixPath
from typing import Any, NamedTuple

import msgspec

from rung.errors import InputError
from rung.knowledge.chunks import CHUNKING, Chunk, chunk
from rung.knowledge.filters import tenant_key
from rung.knowledge.labelled import Labelled
from rung.knowledge.read import FileContent, parse
from rung.knowledge.session import Session
from rung.knowledge.terms import words
from rung.knowledge.values import Status
from rung.tokens.protocol import Tokenizer


class Prepared(msgspec.Struct, frozen=True, kw_only=True):
    """A document that is ready to be written."""

    labels: Labelled
    version: str
    title: str
    chunks: tuple[Chunk, ...]
    vectors: tuple[bytes, ...] | None = None


def version_of(content: FileContent, labels: Labelled, tokenizer: Tokenizer, limit: int) -> str:
    """What changes when anything does that a passage of the document would show or be judged by.

    The file's own time does not enter it: a copied file is no new version.
    """
    fields = (
        CHUNKING,
        tokenizer.name,
        limit,
        content.format,
        content.data,
        labels.title,
        labels.label,
        labels.valid_from,
        labels.valid_to,
        labels.sensitivity,
        labels.access,
        labels.metadata,
    )
    return blake2b(msgspec.msgpack.encode(fields), digest_size=8).hexdigest()


def prepare(content: FileContent, labels: Labelled, tokenizer: Tokenizer, limit: int) -> Prepared:
    """Parse and cut a document.

    Raises:
        InputError: it is not what its name says, or holds no text at all.
    """
    parsed = parse(content)
    title = " ".join((labels.title or parsed.title or _stem(labels.document)).split())[:300]
    chunks = chunk(parsed, tokenizer, limit, title)
    if not chunks:
        raise InputError(f"`{labels.document}` holds no text", field="text")
    return Prepared(labels=labels, version=version_of(content, labels, tokenizer, limit), title=title, chunks=chunks)


def embedding_text(title: str, one: Chunk) -> str:
    """What is embedded: the passage under its title and section, which often name what it speaks of."""
    return "\n".join(part for part in (title, one.section, one.text) if part)


def chunks_held(session: Session, labels: Labelled, version: str, embedding: bool) -> int | None:
    """How many passages are held of exactly this version; None if it is to be written.

    With `embedding`, a version of which a passage has no vector is to be written again.
    """
    found = session.execute(
        "SELECT d.version, d.collection, count(c.row), count(c.vector) FROM documents d JOIN chunks c ON c.doc = d.row "
        "WHERE d.row = (SELECT max(row) FROM documents WHERE tenant = ? AND document = ?) GROUP BY d.row",
        (tenant_key(labels.tenant), labels.document),
    ).fetchone()
    if found is None or found[:2] != (version, labels.collection) or (embedding and found[2] != found[3]):
        return None
    return int(found[2])


class FolderState(NamedTuple):
    """What a folder holds now: the ids of its documents."""

    collection: str
    tenant: str | None
    documents: frozenset[str]


def remove_gone(session: Session, folder: FolderState) -> tuple[str, ...]:
    """Delete what the base holds of a folder and the folder no longer does; the ids."""
    rows = session.execute(
        "SELECT row, document FROM documents WHERE tenant = ? AND collection = ? ORDER BY document, row",
        (tenant_key(folder.tenant), folder.collection),
    ).fetchall()
    gone = [(row, document) for row, document in rows if document not in folder.documents]
    for row, _ in gone:
        delete(session, row)
    return tuple(dict.fromkeys(document for _, document in gone))


def write(session: Session, one: Prepared, now: int) -> Status:
    """Put a document in the place of its earlier version.

    An earlier version is deleted, except where the new one becomes valid only later: until then it stays.
    """
    labels = one.labels
    key = (tenant_key(labels.tenant), labels.document)
    held = session.execute(
        "SELECT row, version, collection, valid_to, valid_from FROM documents "
        "WHERE tenant = ? AND document = ? ORDER BY row",
        key,
    ).fetchall()
    if held and held[-1][2] != labels.collection:
        raise InputError(
            f"`{labels.document}` is already held from {_origin(held[-1][2])} (give another name, or a prefix)",
            field="document",
        )
    if held and held[-1][1] == one.version and (one.vectors is None or _has_vectors(session, held[-1][0])):
        return "unchanged"
    later = labels.valid_from is not None and labels.valid_from > now
    for row, version, _, end, start in held:
        if later and version != one.version and (start is None or start < labels.valid_from):
            if end is None or end > labels.valid_from:
                session.execute("UPDATE documents SET valid_to = ? WHERE row = ?", (labels.valid_from, row))
        else:
            delete(session, row)
    _insert(session, one)
    if held and held[-1][1] == one.version:
        return "unchanged"
    return "changed" if held else "added"


def delete(session: Session, row: int) -> None:
    """Delete a document with its passages and their words."""
    session.drop_words(row)
    session.execute("DELETE FROM chunks WHERE doc = ?", (row,))
    session.execute("DELETE FROM documents WHERE row = ?", (row,))


def _insert(session: Session, one: Prepared) -> None:
    labels = one.labels
    values: tuple[Any, ...] = (
        tenant_key(labels.tenant),
        labels.document,
        one.version,
        labels.label,
        one.title,
        labels.collection,
        labels.observed_at,
        labels.valid_from,
        labels.valid_to,
        labels.sensitivity,
        json.dumps(labels.access),
        labels.metadata,
    )
    doc = session.execute(
        "INSERT INTO documents (tenant, document, version, label, title, collection, observed_at, valid_from, "
        f"valid_to, sensitivity, access, metadata) VALUES ({','.join('?' * len(values))}) RETURNING row",
        values,
    ).fetchone()[0]
    title = words(one.title)
    vectors: tuple[bytes | None, ...] = one.vectors or (None,) * len(one.chunks)
    for passage, vector in zip(one.chunks, vectors, strict=True):
        stored = None if vector is None else session.vector(vector)
        row = session.execute(
            "INSERT INTO chunks (doc, anchor, section, text, tokens, vector) VALUES (?,?,?,?,?,?) RETURNING row",
            (
                doc,
                passage.anchor,
                passage.section,
                passage.text,
                passage.tokens,
                stored,
            ),
        ).fetchone()[0]
        session.index_words(row, title, words(passage.section), words(passage.text))


def _origin(collection: str | None) -> str:
    return "no folder" if collection is None else f"the folder `{collection.rpartition('/')[2]}`"


def _has_vectors(session: Session, row: int) -> bool:
    missing = session.execute("SELECT 1 FROM chunks WHERE doc = ? AND vector IS NULL LIMIT 1", (row,)).fetchone()
    return missing is None


def _stem(document: str) -> str:
    """What a document without a title is called: its name, without folder and ending."""
    return PurePosixPath(document).stem or document
