"""What the core costs: importing the package, and taking items in.

    python benchmarks/core/bench.py [--quick]

Import: `import rung` in a fresh interpreter beside a bare one; at most twice the bare start plus 60 ms.

Adding: `store.add` of N tool results beside the ledger that one writes in five lines, a dict from normalised text to
its first type, in processor time. The figure that counts is the cost of an item among 100,000 over its cost among
10,000: it must not grow. Exit code 1 where a bound is broken.
"""

from __future__ import annotations

import argparse
import gc
import random
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from statistics import median

from rung import ContextStore, Draft, ToolOutput

WORDS = ("order", "state", "card", "account", "refund", "limit", "transfer", "fee", "balance", "review", "status")
GROWTH = 1.35
"""The most that an item's cost may grow from 10,000 to 100,000 items, over what the plain dict grows by itself: both
leave the processor's caches behind, and neither may pay for the items that are there already."""


def started(code: str, times: int) -> float:
    """Milliseconds of the fastest of several interpreters that run `code` and end."""
    best = float("inf")
    for _ in range(times):
        before = time.perf_counter()
        subprocess.run([sys.executable, "-c", code], check=True)
        best = min(best, time.perf_counter() - before)
    return best * 1000


def texts(count: int, length: int) -> Iterator[str]:
    """Texts of about `length` characters, each different; the same in every run."""
    pick = random.Random(count * 10_007 + length)
    for number in range(count):
        words = [f"#{number}"]
        size = len(words[0])
        while size < length:
            words.append(f"{pick.choice(WORDS)}{pick.randrange(10_000)}")
            size += len(words[-1]) + 1
        yield " ".join(words)[:length]


class Plain:
    """The ledger to compare with: no lineage, no digest, no fingerprints, no labels; exact copies alone are seen."""

    def __init__(self) -> None:
        self.first: dict[str, str] = {}

    def add(self, kind: str, text: str) -> None:
        normal = " ".join(unicodedata.normalize("NFKC", text).casefold().split())
        self.first.setdefault(normal, kind)


def timed(add: Callable[[str], object], given: list[str]) -> float:
    """Microseconds an item, over all of them."""
    gc.collect()
    before = time.process_time()
    for text in given:
        add(text)
    return (time.process_time() - before) / len(given) * 1e6


def adding(count: int, length: int) -> tuple[float, float, float]:
    """Microseconds an item: `store.add`, `store.add_many` in hundreds, and the plain ledger."""
    given = list(texts(count, length))
    store = ContextStore()
    one = timed(lambda text: store.add(ToolOutput, text, source="tool:bench"), given)
    bulk = ContextStore()
    gc.collect()
    before = time.process_time()
    for start in range(0, count, 100):
        bulk.add_many(Draft(type=ToolOutput, content=text, source="tool:bench") for text in given[start : start + 100])
    many = (time.process_time() - before) / count * 1e6
    plain = Plain()
    return one, many, timed(lambda text: plain.add("tool_output", text), given)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true", help="1,000 and 10,000 items; no bound is judged")
    quick = parser.parse_args().quick
    broken: list[str] = []

    bare, ours = started("pass", 9), started("import rung", 9)
    bound = 2 * bare + 60
    print("import (best of 9)")
    print(f"  bare interpreter {bare:7.1f} ms")
    print(f"  import rung      {ours:7.1f} ms   ratio {ours / bare:.2f}   bound {bound:.1f} ms")
    used = started("from rung import ContextStore; ContextStore()", 5)
    print(f"  a first store    {used:7.1f} ms   ratio {used / bare:.2f}")
    if ours > bound:
        broken.append(f"import rung took {ours:.1f} ms of {bound:.1f}")

    few, many = (1_000, 10_000) if quick else (10_000, 100_000)
    print("\nadding tool results, µs of processor time an item")
    print(f"  {'length':>6}  {'items':>7}  {'store.add':>10}  {'add_many':>10}  {'plain dict':>10}  {'MB/s':>6}")
    for length in (200, 2_000):
        costs: dict[int, tuple[float, float, float]] = {}
        for count in (few, many):
            # Twice for the smaller count, so that first calls are not in the figure.
            runs = [adding(count, length) for _ in range(3 if count <= 10_000 else 1)]
            costs[count] = tuple(median(run[column] for run in runs) for column in range(3))  # type: ignore[assignment]
            one, bulk, plain = costs[count]
            print(f"  {length:>6}  {count:>7,}  {one:>10.1f}  {bulk:>10.1f}  {plain:>10.1f}  {length / one:>6.1f}")
        growth, natural = (costs[many][column] / costs[few][column] for column in (0, 2))
        print(f"  {length:>6}  growth {growth:.2f}, plain dict {natural:.2f}, bound {GROWTH * max(1.0, natural):.2f}")
        if growth > GROWTH * max(1.0, natural) and not quick:
            broken.append(
                f"an item of {length} characters costs {growth:.2f} times as much among {many:,} as among {few:,}"
            )
    for each in broken:
        print(f"BOUND BROKEN: {each}")
    return 1 if broken else 0


if __name__ == "__main__":
    raise SystemExit(main())
