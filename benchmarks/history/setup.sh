#!/bin/sh
# Make .venv-bench at the top of the tree with the peers of the benchmarks; does nothing when it is up to date.
# PYTHON names the interpreter (default python3).
set -eu
cd "$(dirname "$0")/../.."
wanted=benchmarks/history/requirements.txt
stamp=.venv-bench/requirements.txt
if [ -f "$stamp" ] && cmp -s "$wanted" "$stamp"; then
    exit 0
fi
"${PYTHON:-python3}" -m venv .venv-bench
printf '*\n' > .venv-bench/.gitignore
.venv-bench/bin/pip install --quiet --disable-pip-version-check --requirement "$wanted"
cp "$wanted" "$stamp"
