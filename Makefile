# Sets stepscope up in .venv and runs it, with nothing prepared but Python 3.11 or later.
# PYTHON=/path/to/python chooses the interpreter, PROFILE=path another profile for the demo.

PYTHON  ?=
CANDIDATES := $(or $(PYTHON),python3.13 python3.12 python3.11 python3)
# Files of tests are spread over processes; PARALLEL= runs them in one.
PARALLEL ?= -n auto --maxprocesses 4 --dist loadfile
PROFILE ?= examples/profiles/cpu_input_bound.json.gz

VENV := .venv
BIN  := $(VENV)/bin
# What the environment was made for: a moved checkout or a changed pyproject.toml makes it stale.
MADE_FOR := $(VENV)/made-for
# A person's "pip install --user" default cannot work inside an environment.
export PIP_USER := 0
# Tests start hundreds of processes: each would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo test check lint types imports pages docs gallery setup clean

help:  ## show this list
	@awk -F ':.*##' '/^[a-z]+:.*##/ {printf "  make %-8s %s\n", $$1, $$2}' Makefile

demo: setup  ## diagnose the profile in examples/
	@$(BIN)/stepscope diagnose $(PROFILE)

test: setup  ## run the tests
	@$(BIN)/python -m pytest -m "not slow" $(PARALLEL)

check: lint types imports pages test  ## everything .ci/run checks, but the slow tests

lint: setup  ## ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check --quiet . || { echo 'not as "ruff format" writes it: $(BIN)/ruff format .' >&2; exit 1; }

types: setup  ## mypy --strict
	@$(BIN)/mypy

imports: setup  ## import directions
	@$(BIN)/lint-imports

pages:  ## types, linter and unit tests of the report's JavaScript (needs npm)
	@npm ci --no-audit --no-fund --loglevel=error
	@npm run --silent types
	@npm run --silent lint
	@npm test --silent

docs: setup  ## write the generated pages of docs/ again
	@$(BIN)/python docs/generate.py

gallery: setup  ## take the pictures of docs/gallery/ again (needs chromium)
	@$(BIN)/python docs/gallery.py

clean:  ## remove the environment and every cache
	@rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

setup:
	@made_for=$$(pwd; cat pyproject.toml); \
	if [ "$$made_for" = "$$(cat $(MADE_FOR) 2>/dev/null)" ] && $(BIN)/python -c '' 2>/dev/null; then exit 0; fi; \
	for python in $(CANDIDATES); do \
	  "$$python" -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && break; \
	  python=; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "stepscope needs Python 3.11 or later with its venv module (Debian and Ubuntu: apt install" \
	    "python3-venv); tried: $(CANDIDATES). To choose another: make PYTHON=/path/to/python" >&2; \
	  exit 1; \
	fi; \
	printf 'Installing stepscope into $(VENV) (about 1 GB, a minute or two) ... ' >&2; \
	"$$python" -m venv --clear $(VENV) && \
	$(BIN)/python -m pip install -qq --disable-pip-version-check --no-input -e '.[dev]' && \
	printf '%s\n' "$$made_for" > $(MADE_FOR) && \
	echo 'done.' >&2
