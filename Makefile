# Two commands do everything on a fresh machine with Python 3.11+ and make:
#   make audit    install into .venv and audit the embedded model on the embedded questions
#   make test     install the test extras too, then lint, check types and run the tests
PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: audit test test-slow lint types bench clean

audit: .venv/audit.stamp
	$(BIN)/unslant audit

test: lint types
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "not slow" -n 2 --dist loadfile

test-slow: .venv/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow

lint: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: .venv/test.stamp
	$(BIN)/mypy

bench: .venv/test.stamp
	$(PIP) -e '.[bench]'
	$(BIN)/python -m benchmarks.compare

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("unslant needs Python 3.11 or newer: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/audit.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[hf,hub,figures]'
	@touch $@

.venv/test.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
