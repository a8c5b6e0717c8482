"""`make bench`: every quick benchmark, one after the other, each in a process of its own.

A benchmark is a file `bench.py` in a folder here; the ones that need packages of others have a target of their own
(`make bench-history`, `make bench-compile`). Exit code 1 where one of them failed or broke its bound.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def main() -> int:
    wanted = set(sys.argv[1:])
    failed: list[str] = []
    for bench in sorted(HERE.glob("*/bench.py"), key=lambda path: (path.parent.name != "core", path.parent.name)):
        name = bench.parent.name
        if wanted and name not in wanted:
            continue
        print(f"\n=== {name} ===", flush=True)
        if subprocess.run([sys.executable, str(bench)], cwd=HERE.parent, check=False).returncode != 0:
            failed.append(name)
    if failed:
        print(f"\nfailed or over a bound: {', '.join(failed)}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
