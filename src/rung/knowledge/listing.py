"""What a knowledge base holds, without its texts."""

from __future__ import annotations

from rung.knowledge.filters import tenant_key, tenant_of
from rung.knowledge.session import Session, fact
from rung.knowledge.times import moment
from rung.knowledge.values import DocumentInfo, KnowledgeStats


def list_documents(session: Session, tenant: str | None) -> list[DocumentInfo]:
    """The documents of a tenant (None: everybody's), in the order of their ids, versions by age."""
    rows = session.execute(
        "SELECT d.document, d.title, d.tenant, d.version, d.label, count(c.row), coalesce(sum(c.tokens), 0), "
        "d.observed_at, d.valid_from, d.valid_to FROM documents d LEFT JOIN chunks c ON c.doc = d.row "
        "WHERE d.tenant = ? GROUP BY d.row ORDER BY d.document, d.row",
        (tenant_key(tenant),),
    )
    return [
        DocumentInfo(
            document=document,
            title=title,
            tenant=tenant_of(owner),
            version=version,
            label=label,
            chunks=chunks,
            tokens=tokens,
            observed_at=moment(observed),
            valid_from=None if start is None else moment(start),
            valid_to=None if end is None else moment(end),
        )
        for document, title, owner, version, label, chunks, tokens, observed, start, end in rows
    ]


def count_everything(session: Session) -> KnowledgeStats:
    """Counts over all tenants."""
    documents, tenants = session.execute(
        "SELECT count(*), count(DISTINCT nullif(tenant, '')) FROM documents"
    ).fetchone()
    chunks, tokens, embedded = session.execute(
        "SELECT count(*), coalesce(sum(tokens), 0), count(vector) FROM chunks"
    ).fetchone()
    return KnowledgeStats(
        documents=documents,
        chunks=chunks,
        tokens=tokens,
        tenants=tenants,
        embedded=embedded,
        embedder=fact(session, "embedder"),
        bytes=session.size(),
    )
