# Every target does its own set-up; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
PIP := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header

.PHONY: help setup run demo test test-browser test-cluster test-nodes check format test-searches bench bench-against same-plans oracle chaos soak zero-loss bench-cluster bench-nodes manifests lock clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

setup: $(READY) ## virtual environment with the locked versions (the other targets do this by themselves)

$(READY): requirements.lock pyproject.toml loadtests/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Rematch needs Python 3.11 or newer; set PYTHON=/path/to/python3.11"; exit 1; }
	@set -euo pipefail; SECONDS=0; all=$$(grep -c == requirements.lock); \
	say() { echo "setup, $${SECONDS} s: $$*"; }; \
	say "1 of 3, virtual environment in $(VENV)"; \
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV); \
	say "2 of 3, $$all locked packages (about a minute the first time)"; \
	$(PIP) --require-hashes -r requirements.lock | { n=0; while read -r word _; do case $$word in \
	  Collecting|Ignoring|Requirement) n=$$((n + 1)); [ $$((n % 20)) != 0 ] || echo "  $$n of $$all";; \
	  Installing) echo "  all here, installing";; esac; done; }; \
	say "3 of 3, this clone"; \
	$(PIP) --quiet --no-deps --no-build-isolation --no-index -e . -e ./loadtests; \
	say "done"
	@touch $(READY)

run: $(READY) ## the main job on the embedded cluster, with a dashboard to open; Ctrl-C ends it
	@exec $(BIN)/rematch demo

demo: $(READY) ## both arms without a person, as JSON (about 4 minutes)
	@exec $(BIN)/rematch demo --headless --duration 120s -o json

test: $(READY) ## the fast suite: no root, no Go, no network
	$(BIN)/python -m pytest -m "not browser and not cluster and not nodes" -n 2 --dist loadscope

test-browser: $(READY) ## the dashboard in a real headless Chromium
	$(BIN)/python -m pytest -m browser tests/browser

test-cluster: $(READY) ## the contracts and whole runs on a real control plane; no root (builds it the first time: 10 minutes)
	$(BIN)/rematch lab tools cluster
	$(BIN)/python -m pytest -m cluster tests/contracts tests/cluster

test-nodes: $(READY) ## whole runs on real nodes: kubelets, containerd, Prometheus; needs root (about 10 minutes)
	@test "$$(id -u)" = 0 || { echo "test-nodes SKIPPED, not passed: namespaces, control groups and networks of real nodes need root; run it with sudo"; exit 1; }
	$(BIN)/rematch lab tools nodes
	$(BIN)/python -m pytest -m nodes tests/nodes

test-searches: $(READY) ## every planner on 5,000 random clusters: every search ends (about 10 minutes) [CLUSTERS=5000]
	REMATCH_SEARCH_CLUSTERS=$(or $(CLUSTERS),5000) $(BIN)/python -m pytest tests/matching/planners/test_searches_end.py

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

bench-against: $(READY) ## this version against another, as ratios: make bench-against REV=main [ROUNDS=5] [ONLY=planners] (10 minutes)
	@test -n "$(REV)" || { echo "name the revision to compare with: make bench-against REV=main"; exit 1; }
	$(BIN)/python -m loadtests.benchmarks.against_revision $(REV) $(if $(ROUNDS),--rounds $(ROUNDS)) $(foreach name,$(ONLY),--only $(name))

same-plans: $(READY) ## does this version decide as another does? make same-plans REV=main [PROBLEMS=2000] [SNAPSHOTS=1000] (10 minutes)
	@test -n "$(REV)" || { echo "name the revision to compare with: make same-plans REV=main"; exit 1; }
	$(BIN)/python -m loadtests.same_plans --against $(REV) $(if $(PROBLEMS),--problems $(PROBLEMS)) $(if $(SNAPSHOTS),--snapshots $(SNAPSHOTS))

oracle: $(READY) ## do we allow only what kube-scheduler allows? make oracle [SEEDS=1000 or SEEDS=5000-6000] (1,000 clusters: 15 minutes)
	$(BIN)/python -m loadtests.oracle $(if $(SEEDS),--seeds $(SEEDS))

chaos: $(READY) ## faults against controllers on a real control plane, report in docs/chaos.md: make chaos [SEED=1] [ROUNDS=1] [ONLY=kind] [FOLDER=...] [LEASE=4] (45 minutes; no root)
	$(BIN)/rematch lab tools cluster
	$(if $(LEASE),REMATCH_CHAOS_LEASE=$(LEASE)) $(BIN)/python -m loadtests.chaos $(if $(SEED),--seed $(SEED)) $(if $(ROUNDS),--rounds $(ROUNDS)) $(if $(ONLY),--only $(ONLY)) \
	  $(if $(FOLDER),--folder $(FOLDER)) $(if $(SEED)$(ROUNDS)$(ONLY),,--report docs/chaos.md)

soak: $(READY) ## constant moves and churn: memory, tasks, files and database stay flat, report in docs/soak.md: make soak [MINUTES=30] (no root)
	$(BIN)/rematch lab tools cluster
	$(BIN)/python -m loadtests.chaos.soak $(if $(MINUTES),--minutes $(MINUTES)) --report docs/soak.md

bench-nodes: $(READY) ## STABLE's experiment in simulated time and on real nodes (about 20 minutes; root), report in docs/experiment-stable
	@test "$$(id -u)" = 0 || { echo "bench-nodes needs root for real nodes; without: $(BIN)/rematch lab experiment stable --no-real"; exit 1; }
	$(BIN)/rematch lab tools nodes
	$(BIN)/rematch lab experiment stable --copy-to docs/experiment-stable

zero-loss: $(READY) ## requests lost while pods are moved, k6 and Vegeta on real nodes: make zero-loss [MOVES=20] [RESUME=1] (40 minutes; root)
	@test "$$(id -u)" = 0 || { echo "zero-loss needs root for real nodes: run it with sudo"; exit 1; }
	$(BIN)/rematch lab tools nodes
	$(BIN)/rematch lab tools load
	$(BIN)/rematch lab zero-loss $(if $(MOVES),--moves $(MOVES)) $(if $(RESUME),--resume) --copy-to docs/zero-loss

bench-cluster: $(READY) ## scale and descheduler side by side on a real control plane with KWOK's nodes (about half an hour; no root)
	$(BIN)/rematch lab tools cluster
	$(BIN)/rematch lab tools load
	$(BIN)/python -m loadtests.benchmarks --cluster

manifests: $(READY) ## deploy/rematch.yaml from the chart and the list of rights (builds Helm the first time: 5 minutes)
	$(BIN)/python -m loadtests.chart

lock: $(READY) ## resolve the dependencies into the lock files; versions stay: make lock [UPGRADE=1]
	$(PIP) --quiet uv
	$(LOCK) $(if $(UPGRADE),--upgrade) --extra dev --extra fast --no-emit-package rematch pyproject.toml loadtests/pyproject.toml -o requirements.lock
	$(LOCK) --extra fast --extra postgresql --constraints requirements.lock pyproject.toml -o requirements-runtime.lock
	$(LOCK) --group build --constraints requirements.lock -o requirements-build.lock

clean: ## remove the environment and the caches
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .rematch
