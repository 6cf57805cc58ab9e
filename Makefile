# Every target does its own set-up; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: help setup run demo test test-browser check format bench lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(READY) ## virtual environment with the locked versions (the other targets do this by themselves)

$(READY): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Rematch needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@echo "setting up $(VENV): locked dependencies, about a minute the first time"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --no-index -e .
	@touch $(READY)
	@echo "set up"

run: $(READY) ## the main job on the embedded cluster, with a dashboard to open; Ctrl-C ends it
	@exec $(BIN)/rematch demo

demo: $(READY) ## both arms without a person, as JSON (about 4 minutes)
	@exec $(BIN)/rematch demo --headless --duration 120s -o json

test: $(READY) ## the fast suite: no root, no Go, no network
	$(BIN)/python -m pytest -m "not browser"

test-browser: $(READY) ## the dashboard in a real headless Chromium
	$(BIN)/python -m pytest -m browser tests/browser

check: $(READY) ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## format and mend what the linter can mend
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(READY) ## speed and memory; figures land in docs/benchmarks.md by hand
	$(BIN)/python -m loadtests.benchmarks

lock: $(READY) ## resolve the dependencies again into requirements.lock
	$(BIN)/python -m pip install --quiet uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --extra dev --extra fast --generate-hashes --no-emit-index-url --no-header --upgrade pyproject.toml -o requirements.lock

clean: ## remove the environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .rematch
