"""Run the history benchmark: each peer in its own process, one table at the end.

    .venv-bench/bin/python benchmarks/history/run.py [--turns 1000] [--budget 8000] [--cap 60]
        [--peer KEY ...] [--curve]

`--cap` bounds a peer's whole run in seconds: it then stops after the turn it is in, and the table says how
many turns it did. `--jsonl FILE` keeps each peer's line. `--one KEY` runs one peer in this process and
prints its line.
"""

import argparse
import json
import logging
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path

HERE = Path(__file__).resolve().parent
START_SECONDS = 120  # imports of heavy peers, and the harness's own counting

COLUMNS = (
    ("system", "title"),
    ("version", "version"),
    ("total s", "total_s"),
    ("turns", "turns"),
    ("limits", "counts"),
    ("ms/turn at the end", "ms_turn_end"),
    ("over budget", "over_budget"),
    ("broken pairs", "broken_pairs"),
    ("lost user", "lost_user"),
    ("lost system", "lost_system"),
    ("last 5 cut", "recent_cut"),
    ("equal prefix", "equal_prefix"),
    ("budget use", "budget_use"),
    ("bytes tokenised/turn", "bytes_turn_end"),
)


def mean(values: list[float]) -> float:
    """Return the mean, or 0 of nothing."""
    return sum(values) / len(values) if values else 0.0


def measure(key: str, turns: int, budget: int, cap: float) -> dict:
    """Run one peer in this process and return its figures."""
    from measures import Tally, content_tokens
    from peers import PEERS
    from vocabulary import Meter, encoding
    from workload import conversation, system_message

    encoding()  # before the peer's imports: tiktoken must not look for a download
    peer = next(p for p in PEERS if p.key == key)
    adapter = peer.load()
    system, tally = system_message(), Tally(budget)
    turns_ahead = list(conversation(turns))
    for message in (m for events in turns_ahead for m in events if m):
        content_tokens(message)  # the harness's own counts, made before any clock runs
    adapter.start(system, budget)
    seconds: list[float] = []
    sizes: list[int] = []
    given, error, began = 1, None, time.perf_counter()
    for events in turns_ahead:
        spent, size, user = 0.0, Meter.size, ""
        tally.exchange()
        try:
            for message in events:
                if message is not None:
                    user = message["content"] if message["role"] == "user" else user
                    native = adapter.convert(message)
                    at = time.perf_counter()
                    adapter.add(native)
                    spent += time.perf_counter() - at
                    given += 1
                    tally.added(message)
                    continue
                at = time.perf_counter()
                fitted = adapter.fit()
                spent += time.perf_counter() - at
                metered = Meter.size
                tally.request(adapter.messages(fitted), user=user, given=given)
                Meter.size = metered
        except Exception as raised:  # a peer that fails is a row of the table
            error = f"{type(raised).__name__}: {str(raised)[:200]}"
            break
        seconds.append(spent)
        sizes.append(Meter.size - size)
        if time.perf_counter() - began > cap:
            break
    last = max(1, len(seconds) // 20)
    early = seconds[50:100] if len(seconds) >= 150 else seconds[len(seconds) // 2 :]
    return {
        "peer": key,
        "title": peer.title,
        "version": peer.version(),
        "counts": peer.counts,
        "turns": len(seconds),
        "turns_wanted": turns,
        "budget": budget,
        "total_s": round(sum(seconds), 3),
        "ms_turn_early": round(1e3 * mean(early), 3),
        "ms_turn_end": round(1e3 * mean(seconds[-last:]), 3),
        "bytes_turn_end": round(mean([float(n) for n in sizes[-last:]])),
        **tally.figures(),
        "summaries": adapter.summaries,
        "error": error,
    }


def in_own_process(key: str, options: argparse.Namespace) -> dict:
    """Run one peer in a process of its own and return its line."""
    command = [sys.executable, str(HERE / "run.py"), "--one", key, "--turns", str(options.turns)]
    command += ["--budget", str(options.budget), "--cap", str(options.cap)]
    path = os.pathsep.join(filter(None, [str(HERE.parent.parent / "src"), os.environ.get("PYTHONPATH", "")]))
    environment = os.environ | {"PYTHONPATH": path, "OPENAI_API_KEY": "none", "PYTHONWARNINGS": "ignore"}
    environment |= {"HAYSTACK_TELEMETRY_ENABLED": "False", "OPENAI_AGENTS_DISABLE_TRACING": "1"}
    failed = {"peer": key, "title": key}
    limit = options.cap + START_SECONDS + options.turns * 0.05
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=limit, check=False)
    except subprocess.TimeoutExpired:
        return failed | {"error": f"no answer within {limit:.0f} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith('{"peer"')]
    if not lines:
        reason = (done.stderr.strip().splitlines() or ["no output"])[-1][:200]
        return failed | {"error": reason}
    row: dict = json.loads(lines[-1])
    return row


def table(rows: list[dict], columns: tuple[tuple[str, str], ...]) -> str:
    """Return the rows as a Markdown table, an error below it where a peer failed."""
    cells = [[name for name, _ in columns]]
    cells += [["" if row.get(key) is None else str(row[key]) for _, key in columns] for row in rows]
    widths = [max(len(line[i]) for line in cells) for i in range(len(columns))]
    lines = ["| " + " | ".join(c.ljust(w) for c, w in zip(line, widths, strict=True)) + " |" for line in cells]
    lines.insert(1, "| " + " | ".join("-" * w for w in widths) + " |")
    lines += [f"{row['title']}: {row['error']}" for row in rows if row.get("error")]
    return "\n".join(lines)


def main() -> int:
    """Run what the command line names; exit code 1 when a peer failed to run."""
    parser = argparse.ArgumentParser(description="history benchmark: fit a growing conversation into a budget")
    parser.add_argument("--turns", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=8000, help="tokens per request")
    parser.add_argument("--cap", type=float, default=60, help="seconds per peer")
    parser.add_argument("--peer", action="append", default=[], metavar="KEY")
    parser.add_argument("--curve", action="store_true", help="only the entries that draw the prefix curve")
    parser.add_argument("--jsonl", type=Path, help="append each peer's line to this file")
    parser.add_argument("--one", metavar="KEY", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        warnings.filterwarnings("ignore")
        logging.disable(logging.WARNING)
        print(json.dumps(measure(options.one, options.turns, options.budget, options.cap)))
        return 0
    from peers import PEERS

    unknown = set(options.peer) - {p.key for p in PEERS}
    if unknown:
        parser.error(f"no such peer: {', '.join(sorted(unknown))}; there are {', '.join(p.key for p in PEERS)}")
    chosen = [p.key for p in PEERS if p.key in options.peer or (not options.peer and p.curve == options.curve)]
    rows = []
    for key in chosen:
        print(f"running {key} …", file=sys.stderr, flush=True)
        rows.append(in_own_process(key, options))
        if options.jsonl:
            with options.jsonl.open("a") as out:
                out.write(json.dumps(rows[-1]) + "\n")
    print(f"{options.turns} turns, {options.budget} tokens, at most {options.cap:g} s a peer, o200k_base\n")
    print(table(rows, COLUMNS))
    return int(any(row.get("error") for row in rows))


if __name__ == "__main__":
    raise SystemExit(main())
