"""Recall of the knowledge base on the banking documents: words, meaning, both, and bm25s in the same run.

python benchmarks/retrieval/run.py [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rung.errors import MissingExtraError
from rung.knowledge import KnowledgeBase
from rung.records.labels import Sensitivity

DATA = Path(__file__).parents[2] / "examples" / "support"
DEPTH = 10

Retrieve = Callable[[str], list[str]]


def tasks() -> list[dict[str, Any]]:
    with (DATA / "tasks.jsonl").open(encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def knowledge(base: KnowledgeBase, mode: Any) -> Retrieve:
    def retrieve(query: str) -> list[str]:
        hits = base.search(
            query, tenant=None, clearance=Sensitivity.RESTRICTED, limit=30, minimum=0, mode=mode, overfetch=4
        )
        return list(dict.fromkeys(hit.document.removesuffix(".md") for hit in hits))

    return retrieve


def bm25s_peer(stemmed: bool) -> Retrieve:
    """bm25s over whole documents, with its own defaults: English stop words, k1 1.5, b 0.75."""
    import bm25s
    import Stemmer

    files = sorted((DATA / "documents").glob("*.md"))
    stemmer = Stemmer.Stemmer("english") if stemmed else None

    def tokens(texts: list[str]) -> Any:
        return bm25s.tokenize(texts, stopwords="en", stemmer=stemmer, show_progress=False)

    index = bm25s.BM25()
    index.index(tokens([file.read_text(encoding="utf-8") for file in files]), show_progress=False)

    def retrieve(query: str) -> list[str]:
        places, _ = index.retrieve(tokens([query]), k=DEPTH, show_progress=False)
        return [files[place].stem for place in places[0]]

    return retrieve


def measure(name: str, retrieve: Retrieve) -> dict[str, Any]:
    """Recall over all references, and the mean over tasks; milliseconds per question."""
    found = references = 0
    shares: list[float] = []
    times: list[float] = []
    for task in tasks():
        start = time.perf_counter()
        documents = retrieve(task["query"])[:DEPTH]
        times.append(time.perf_counter() - start)
        hits = len(set(documents) & set(task["gold"]))
        found, references = found + hits, references + len(task["gold"])
        shares.append(hits / len(task["gold"]))
    return {
        "retriever": name,
        "recall@10": round(found / references, 4),
        "per task": round(statistics.mean(shares), 4),
        "ms": round(1000 * statistics.median(times), 1),
    }


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--json", type=Path, help="also write the figures to this file")
    chosen = options.parse_args()
    try:
        from rung.knowledge.embeddings import WordLlamaEmbedding

        embed = WordLlamaEmbedding()
    except MissingExtraError as error:
        print(f"{error}: pip install -r benchmarks/retrieval/requirements.txt", file=sys.stderr)
        return 2
    start = time.perf_counter()
    base = KnowledgeBase.open(embed=embed)
    base.sync(DATA / "documents")
    indexed = time.perf_counter() - start
    stats = base.stats()
    rows = [
        measure("rung fused", knowledge(base, "fused")),
        measure("rung BM25", knowledge(base, "lexical")),
        measure(f"rung embeddings ({embed.name})", knowledge(base, "semantic")),
        measure(f"bm25s {version('bm25s')}", bm25s_peer(stemmed=False)),
        measure(f"bm25s {version('bm25s')}, stemmed", bm25s_peer(stemmed=True)),
    ]
    print(f"{stats.documents} documents, {stats.chunks} chunks, indexed in {indexed:.1f} s")
    print(f"{'retriever':<45}{'recall@10':>10}{'per task':>10}{'ms':>8}")
    for row in rows:
        print(f"{row['retriever']:<45}{row['recall@10']:>10.4f}{row['per task']:>10.4f}{row['ms']:>8.1f}")
    fused, words, meaning, *peers = (row["recall@10"] for row in rows)
    kept = fused >= max(words, meaning) and words >= max(peers)
    print("fused ≥ each alone, and BM25 ≥ bm25s:", "yes" if kept else "NO")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps({"rows": rows, "kept": kept}, indent=2) + "\n", encoding="utf-8")
    return 0 if kept else 1


if __name__ == "__main__":
    raise SystemExit(main())
