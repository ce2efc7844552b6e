# Every target sets up what it needs; `make` alone lists them.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
BENCH ?= all
ARGS ?=

.PHONY: help setup dev test check fmt bench bench-time chaos chaos-smoke chaos-parts docs ci clean lock schema test-pg15 test-s3 mutation fuzz fuzz-schedules fuzz-node simulate simulate-knockouts

help: ## Show this list
	@awk -F':.*## ' '/^[a-z0-9-]+:.*## /{printf "  \033[1m%-12s\033[0m %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(VENV)/.dev ## Create .venv with the service and all development tools

$(VENV)/bin/python:
	@$(PYTHON) scripts/make_venv.py $(VENV)

# The service alone: what `make dev` needs, so that it starts soon.
$(VENV)/.server: $(VENV)/bin/python requirements.lock pyproject.toml
	@echo "installing betimes[server] into $(VENV) …"
	@$(PIP) install --no-deps --require-hashes -r requirements.lock
	@$(PIP) install --no-deps --no-build-isolation -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.server requirements-dev.lock
	@echo "installing the development tools into $(VENV) …"
	@$(PIP) install --no-deps --require-hashes -r requirements-dev.lock
	@touch $@

dev: $(VENV)/.server ## Run the whole service here, on an embedded PostgreSQL, with demo jobs
	@$(BIN)/betimes dev $(ARGS)

test: $(VENV)/.dev ## Run the tests (real PostgreSQL included; starts its own)
	@$(BIN)/python -m pytest -n 2 -q -m "not chaos and not bench and not simulation" $(ARGS)


test-pg15: $(VENV)/.dev ## Run the statements and services on Debian's PostgreSQL 15 as well (TESTS=paths for fewer)
	@BETIMES_TEST_PG_BIN=/usr/lib/postgresql/15/bin $(BIN)/python -m pytest -n 2 -q \
	  -m "db and not chaos and not bench" $(or $(TESTS),tests/contract tests/integration) $(ARGS)

test-s3: $(VENV)/.dev ## Run the object store backend against an S3 server from the package index
	@test -x $(VENV)-s3/bin/moto_server || ($(PYTHON) -m venv $(VENV)-s3 \
	  && $(VENV)-s3/bin/python -m pip --disable-pip-version-check --quiet install "moto[s3]" flask flask-cors)
	@BETIMES_TEST_S3_SERVER=$(VENV)-s3/bin/moto_server $(BIN)/python -m pytest -q tests/integration/target/test_s3.py $(ARGS)

check: $(VENV)/.dev ## Static checks: format, lint, types, rooms, spelling, lock files
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/codespell src tests docs bench scripts *.md
	@$(BIN)/python scripts/check_tree.py

fmt: $(VENV)/.dev ## Format the code and apply safe fixes
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

schema: $(VENV)/.dev ## Write src/betimes/store/schema.sql from the migrations
	@$(BIN)/python scripts/dump_schema.py

bench: $(VENV)/.dev ## Measure everything (one part: make bench BENCH=name ARGS=--quick)
	@$(BIN)/python -m bench $(BENCH) $(ARGS)

bench-time: $(VENV)/.dev ## Measure the time mathematics beside croniter, cronsim and APScheduler
	@$(BIN)/python -m bench time $(ARGS)

chaos: $(VENV)/.dev ## Twenty minutes of faults against a whole service, judged from outside; the last line counts
	@PYTHONPATH=tests $(BIN)/python -m blackbox --seconds 1200 --least-faults 200 --least-occurrences 100000 $(ARGS)

chaos-smoke: $(VENV)/.dev ## The same for three minutes
	@PYTHONPATH=tests $(BIN)/python -m blackbox --seconds 75 --jobs 150 --least-faults 15 --least-occurrences 2000 --no-calendar $(ARGS)

chaos-parts: $(VENV)/.dev ## Single faults with their own bounds (takeover, drain, recovery, poison), judged by the product's checker
	@$(BIN)/python -m pytest -q -s -m chaos $(ARGS)

simulate: $(VENV)/.dev ## Live through SEEDS=1000 seeds of the deterministic simulation (SEED=k replays one, SHRINK=1 makes it smaller)
	@PYTHONPATH=tests $(BIN)/python -m simulation.run $(if $(SEED),--seed $(SEED) $(if $(SHRINK),--shrink),--seeds $(or $(SEEDS),1000)) $(ARGS)

simulate-knockouts: $(VENV)/.dev ## Take out one fix at a time; the simulation must notice each
	@$(BIN)/python -m pytest -q -n 0 -m simulation tests/simulation $(ARGS)

fuzz: $(VENV)/.dev ## Fuzz the whole API from its own document (long: make fuzz ARGS="--max-time 600")
	@$(BIN)/python tests/fuzz/run.py $(ARGS)

fuzz-schedules: $(VENV)/.dev ## Judge hostile schedules by the CPU they take (ARGS="--number 100000 --seed 1")
	@$(BIN)/python tests/fuzz/schedules.py $(ARGS)

fuzz-node: $(VENV)/.dev ## Send hostile schedules to a live node and watch /healthz (ARGS="--seconds 60")
	@$(BIN)/python tests/fuzz/hostile_node.py $(ARGS)

mutation: $(VENV)/.dev ## Mutation testing of the time mathematics; ARGS="placement cron" names modules
	@$(BIN)/python scripts/mutation.py $(ARGS)

docs: $(VENV)/.dev ## Build the documentation into site/, warnings as errors
	@$(BIN)/mkdocs build --strict --quiet

ci: check test docs ## What CI runs

lock: $(VENV)/.dev ## Recompile both lock files from pyproject.toml
	@UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --extra server --group build pyproject.toml -o requirements.lock
	@UV_PYTHON_DOWNLOADS=never $(BIN)/uv pip compile -q --universal --generate-hashes --no-header --no-annotate \
	  --python-version 3.11 --all-extras --group build --group dev --group docs pyproject.toml -o requirements-dev.lock

clean: ## Remove everything the targets made, except databases
	@rm -rf $(VENV) build dist site mutants .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage*
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
