# The front desk. `make` alone prints what there is; every target installs what it needs into .venv first.
#
# PYTHON  the interpreter .venv is made with (3.11 or newer)
# ARGS    passed on, to pytest by `test` and to the bench by `bench`
# JOBS    how many tests run at a time; default: two per core, because they wait for processes most of the time

PYTHON ?= python3
ARGS ?=
JOBS ?= $(shell $(PYTHON) -c 'import os; print(2 * (os.cpu_count() or 1))')

# Paths are relative, so that a checkout may lie in a folder with spaces in its name.
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: help demo test check coverage mutants bench clean

help:
	@echo "make demo      show an agent at work, offline, without any key"
	@echo "make test      run the tests            (ARGS='-k resume' to choose)"
	@echo "make check     format, lint, and types for Linux, macOS and Windows"
	@echo "make coverage  measure which branches the tests reach"
	@echo "make mutants   seed faults into the server and count those that the tests catch"
	@echo "make bench     measure start, memory and turns"
	@echo "make clean     remove all that make has made"

demo: $(VENV)/.installed
	$(BIN)/python -m jumpseat_client.demo $(ARGS)

test: $(VENV)/.installed-test
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal $(ARGS)

coverage: $(VENV)/.installed-coverage
	COVERAGE_FILE=$(VENV)/.coverage $(BIN)/python -m pytest -q -n $(JOBS) --dist worksteal --timeout 300 \
	  --cov --cov-config tests/coverage.toml --cov-report term:skip-covered $(ARGS)

mutants: $(VENV)/.installed-coverage
	$(BIN)/python -m tests.mutation $(ARGS)

check: $(VENV)/.installed-check
	$(BIN)/python -m ruff format --check .
	$(BIN)/python -m ruff check .
	$(BIN)/python -m pyright
	$(BIN)/python -m pyright --pythonplatform Darwin server protocol clients/python
	$(BIN)/python -m pyright --pythonplatform Windows server protocol clients/python

bench: $(VENV)/.installed
	$(BIN)/python benchmarks/bench.py $(ARGS)

clean:
	rm -rf $(VENV) .test-tools .mutants .hypothesis .pytest_cache .ruff_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# A stamp is younger than pyproject.toml as long as what it stands for is installed.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) install -e .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[test]'
	@touch $@ $(VENV)/.installed

$(VENV)/.installed-check: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[test,check]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-test

$(VENV)/.installed-coverage: pyproject.toml | $(BIN)/python
	$(PIP) install -e '.[test,coverage]'
	@touch $@ $(VENV)/.installed $(VENV)/.installed-test

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "$(PYTHON) is missing or older than Python 3.11: install it, or say make PYTHON=..." >&2; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || \
	  { echo "$(PYTHON) comes without venv or ensurepip: install them, e.g. apt install python3-venv" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); exit 1; }
