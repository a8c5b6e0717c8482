"""Run the compile benchmark: each packer in its own process, one table at the end.

    .venv-bench/bin/python benchmarks/compile/run.py [--turns 20] [--candidates 1000] [--sources 40]
        [--budget 4000] [--fresh 10] [--cap 60] [--packer KEY ...] [--scale]

`--scale` runs 100, 1,000, 10,000 and 100,000 candidates, one in a hundred of them new in each turn, and prints the
cost per candidate: with a fixed number of new ones, the fewest candidates would pay mostly for counting them
(`--fresh` says how many in the other runs). The first turn
(cold: imports, first counts) is reported apart. What is built is counted afterwards by the exact tokenizer;
messages with OpenAI's framing.
"""

import argparse
import json
import logging
import os
import statistics
import subprocess
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parent / "history"))  # the shared vocabulary
START_SECONDS = 120
SCALE = (100, 1_000, 10_000, 100_000)

COLUMNS = (
    ("packer", "title"),
    ("version", "version"),
    ("candidates", "candidates"),
    ("turns", "turns"),
    ("ms cold", "ms_cold"),
    ("ms/turn warm", "ms_warm"),
    ("us/candidate", "us_candidate"),
    ("budget used", "used"),
    ("over budget", "over_budget"),
    ("worst over", "worst_over"),
    ("required lost", "required_lost"),
    ("note", "note"),
)


def measured_tokens(request: object) -> int:
    """Count what would be sent: a text as it is, messages with OpenAI's framing."""
    from vocabulary import encoding

    count = encoding().encode_ordinary
    if isinstance(request, str):
        return len(count(request))
    assert isinstance(request, list)
    return 3 + sum(3 + len(count(m["role"])) + len(count(m["content"])) for m in request)


def text_of(request: object) -> str:
    """Return all text of a request."""
    return request if isinstance(request, str) else "\n".join(m["content"] for m in request)  # type: ignore[attr-defined]


def measure(key: str, options: argparse.Namespace, candidates: int) -> dict:
    """Run one packer in this process and return its figures."""
    from packers import PACKERS
    from vocabulary import encoding
    from workload import Workload

    encoding()  # before the packer's imports: tiktoken must not look for a download
    entry = next(p for p in PACKERS if p.key == key)
    packer = entry.load()
    work = Workload(sources=options.sources, candidates=candidates, fresh=min(options.fresh, candidates // 10))
    packer.start(work.system, options.budget)
    native: dict[str, list] = {}
    places: list[tuple[str, int]] = []
    for item in work.candidates:
        held = native.setdefault(item.source, [])
        places.append((item.source, len(held)))
        held.append(packer.convert(item))
    seconds: list[float] = []
    sizes: list[int] = []
    lost, error, began = 0, None, time.perf_counter()
    for turn in work.turns(options.turns + 1):
        for index, changed in turn.changed:
            source, place = places[index]
            native[source][place] = packer.convert(changed)
        given = {name: list(items) for name, items in native.items()}
        try:
            at = time.perf_counter()
            request = packer.build(turn.question, given)
            seconds.append(time.perf_counter() - at)
        except Exception as raised:  # a packer that fails is a row of the table
            error = f"{type(raised).__name__}: {str(raised)[:200]}"
            break
        sizes.append(measured_tokens(request))
        text = text_of(request)
        lost += work.system not in text or turn.question not in text
        if time.perf_counter() - began > options.cap:
            break
    warm = seconds[1:] or seconds
    over = [size / options.budget - 1 for size in sizes if size > options.budget]
    return {
        "packer": key,
        "title": entry.title,
        "version": entry.version(),
        "candidates": candidates,
        "turns": len(seconds),
        "ms_cold": round(1e3 * seconds[0], 2) if seconds else None,
        "ms_warm": round(1e3 * statistics.median(warm), 2) if warm else None,
        "us_candidate": round(1e6 * statistics.median(warm) / candidates, 2) if warm else None,
        "used": f"{statistics.mean(sizes) / options.budget:.1%}" if sizes else None,
        "over_budget": f"{len(over)} of {len(sizes)}",
        "worst_over": f"{max(over):.1%}" if over else "0",
        "required_lost": lost,
        "note": entry.note,
        "error": error,
    }


def in_own_process(key: str, options: argparse.Namespace, candidates: int) -> dict:
    """Run one packer in a process of its own and return its line."""
    command = [sys.executable, str(HERE / "run.py"), "--one", key, "--candidates", str(candidates)]
    fresh = candidates // 100 if options.scale else options.fresh
    command += ["--fresh", str(fresh)]
    for name in ("turns", "sources", "budget", "cap"):
        command += [f"--{name}", str(getattr(options, name))]
    path = os.pathsep.join(filter(None, [str(HERE.parent.parent / "src"), os.environ.get("PYTHONPATH", "")]))
    failed = {"packer": key, "title": key, "candidates": candidates}
    limit = options.cap * 2 + START_SECONDS
    try:
        done = subprocess.run(
            command,
            env=os.environ | {"PYTHONPATH": path, "PYTHONWARNINGS": "ignore"},
            capture_output=True,
            text=True,
            timeout=limit,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return failed | {"error": f"not one turn within {limit:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"packer"')]
    if not lines:
        return failed | {"error": (done.stderr.strip().splitlines() or ["no output"])[-1][:200]}
    row: dict = json.loads(lines[-1])
    return row


def table(rows: list[dict]) -> str:
    """Return the rows as a Markdown table, an error below it where a packer failed."""
    cells = [[name for name, _ in COLUMNS]]
    cells += [["" if row.get(key) is None else str(row[key]) for _, key in COLUMNS] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(COLUMNS))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in cells]
    lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    lines += [f"{row['title']}, {row['candidates']}: {row['error']}" for row in rows if row.get("error")]
    return "\n".join(lines)


def main() -> int:
    """Run what the command line names; exit code 1 when a packer failed to run."""
    parser = argparse.ArgumentParser(description="compile benchmark: many candidates, one budget")
    parser.add_argument("--turns", type=int, default=20, help="warm turns")
    parser.add_argument("--candidates", type=int, default=1000)
    parser.add_argument("--sources", type=int, default=40)
    parser.add_argument("--budget", type=int, default=4000, help="tokens per request")
    parser.add_argument("--fresh", type=int, default=10, help="new candidates per turn")
    parser.add_argument("--cap", type=float, default=60, help="seconds per packer and size")
    parser.add_argument("--packer", action="append", default=[], metavar="KEY")
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--jsonl", type=Path, help="append each line to this file")
    parser.add_argument("--one", metavar="KEY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.filterwarnings("ignore")
        logging.disable(logging.WARNING)
        print(json.dumps(measure(options.one, options, options.candidates)))
        return 0
    from packers import PACKERS

    known = [p.key for p in PACKERS]
    unknown = set(options.packer) - set(known)
    if unknown:
        parser.error(f"no such packer: {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    rows = []
    for key in (k for k in known if not options.packer or k in options.packer):
        for size in SCALE if options.scale else (options.candidates,):
            print(f"running {key}, {size} candidates …", file=sys.stderr, flush=True)
            rows.append(in_own_process(key, options, size))
            if options.jsonl:
                with options.jsonl.open("a") as out:
                    out.write(json.dumps(rows[-1]) + "\n")
            if rows[-1].get("error"):
                break
    fresh = "1 in 100" if options.scale else options.fresh
    print(f"{options.sources} sources, {options.budget} tokens, {fresh} new a turn, o200k_base\n")
    print(table(rows))
    return int(any(row.get("error") for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
