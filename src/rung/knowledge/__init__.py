"""Knowledge: documents, cut at their structure, found by words and by meaning, and cited."""

from rung.knowledge.base import KnowledgeBase
from rung.knowledge.protocol import Knowledge
from rung.knowledge.source import KnowledgeSource
from rung.knowledge.values import Added, DocumentInfo, Embed, Hit, KnowledgeStats, Progress, Rerank, Synced

__all__ = [
    "Added",
    "DocumentInfo",
    "Embed",
    "Hit",
    "Knowledge",
    "KnowledgeBase",
    "KnowledgeSource",
    "KnowledgeStats",
    "Progress",
    "Rerank",
    "Synced",
]
