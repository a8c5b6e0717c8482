"""What an operation on labelled text costs, beside the same operation on `str`.

    python benchmarks/text/bench.py

Prints microseconds an operation (the best of seven rounds) on a text of one span, 2,000 characters long, the
ratio to `str`, and then how work on texts of many spans grows. Exits with 1 if an operation on one span takes
more than 5 µs over what `str` itself takes for it, or if tenfold spans cost more than twenty-fold.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

from rung.records.text import LabelledText, Origin

LIMIT = 5.0
PLAIN = ("The order 1842 was shipped on Tuesday and is due tomorrow.  " * 34)[:2_000]
MINE = LabelledText(PLAIN, Origin("a1", "tool_output", "tool:orders"))

OPERATIONS: dict[str, Callable[[Any], object]] = {
    "text + str": lambda text: text + " end",
    "str + text": lambda text: "begin " + text,
    "text + text": lambda text: text + text,
    "text[100:200]": lambda text: text[100:200],
    "text[7]": lambda text: text[7],
    "text[::-1]": lambda text: text[::-1],
    "text * 3": lambda text: text * 3,
    "strip": lambda text: text.strip(),
    "upper": lambda text: text.upper(),
    "casefold": lambda text: text.casefold(),
    "title": lambda text: text.title(),
    "partition": lambda text: text.partition("Tuesday"),
    "split(sep, 1)": lambda text: text.split("Tuesday", 1),
    "replace (1 place)": lambda text: text.replace("Tuesday", "Friday", 1),
    "replace (none)": lambda text: text.replace("Sunday", "Friday"),
    "find": lambda text: text.find("tomorrow"),
    "in": lambda text: "Sunday" in text,
    "startswith": lambda text: text.startswith("The"),
    "==": lambda text: text == PLAIN,
    "len": len,
    "hash": hash,
}


def microseconds(work: Callable[[], object]) -> float:
    """The best of seven rounds, each of about 2 ms, in microseconds a call."""
    count, spent = 1, 0.0
    while spent < 2e-3:
        count *= 2
        start = time.perf_counter()
        for _ in range(count):
            work()
        spent = time.perf_counter() - start
    best = spent
    for _ in range(6):
        start = time.perf_counter()
        for _ in range(count):
            work()
        best = min(best, time.perf_counter() - start)
    return best / count * 1e6


def pieces(count: int) -> list[LabelledText]:
    origins = [Origin(f"i{n}", "evidence", "kb") for n in range(7)]
    return [LabelledText("a word of it", origins[n % 7]) for n in range(count)]


def appended(count: int) -> LabelledText:
    text = LabelledText("")
    for piece in pieces(count):
        text = text + piece
    return text


def main() -> int:
    failed = False
    print(f"{'one span, 2,000 characters':28} {'µs':>8} {'str µs':>8} {'ratio':>7}")
    join = LabelledText(", ")
    rows = [(name, (lambda op=op: op(MINE)), (lambda op=op: op(PLAIN))) for name, op in OPERATIONS.items()]
    rows.append(("join (2 parts)", lambda: join.join((MINE, "end")), lambda: ", ".join((PLAIN, "end"))))
    for name, mine, plain in rows:
        ours, theirs = microseconds(mine), microseconds(plain)
        over = ours - theirs > LIMIT
        failed |= over
        print(f"{name:28} {ours:8.2f} {theirs:8.2f} {ours / theirs:7.1f}{'  over the limit' if over else ''}")

    print(f"\n{'many spans':28} {'1,000 ms':>8} {'10,000 ms':>9} {'ratio':>7}")
    few, many = pieces(1_000), pieces(10_000)
    whole_few, whole_many = join.join(few), join.join(many)
    works: dict[str, tuple[Callable[[], object], Callable[[], object]]] = {
        "join": (lambda: join.join(few), lambda: join.join(many)),
        "split": (lambda: whole_few.split(", "), lambda: whole_many.split(", ")),
        "replace": (lambda: whole_few.replace("word", "part"), lambda: whole_many.replace("word", "part")),
        "upper": (lambda: whole_few.upper(), lambda: whole_many.upper()),
        "one slice": (lambda: whole_few[5:900], lambda: whole_many[5:900]),
    }
    for name, (small, large) in works.items():
        first, second = microseconds(small) / 1e3, microseconds(large) / 1e3
        failed |= second > 20 * first
        print(f"{name:28} {first:8.3f} {second:9.3f} {second / first:7.1f}")
    start = time.perf_counter()
    appended(10_000)
    print(f"{'10,000 pieces by + in a loop':28} {'':8} {(time.perf_counter() - start) * 1e3:9.1f}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
