# Everything a person runs. State: .venv (packages), .dev (servers and their data). Nothing else is touched.

# The first interpreter that really is 3.11 or later; PYTHON=... chooses another.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	$$p -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo $$p && break; done)
VENV ?= .venv
BIN := $(VENV)/bin
PG15 ?= /usr/lib/postgresql/15/bin
PYTHON313 ?= python3.13
PORT ?= 0
# Images of containers set it; every process of the tests would compile everything anew, a fifth of its start.
unexport PYTHONDONTWRITEBYTECODE
# Test processes, each with a database of its own; many tests wait for other processes, so two are right for two cores.
JOBS ?= 2
# A file's tests stay together, and files keep their order, in which the longest are not last.
SPREAD := -n $(JOBS) --dist loadfile --no-loadscope-reorder

.PHONY: help install demo test test-all test-pg15 test-py313 lint types docs bench clients chaos requirements clean

help:
	@echo 'make demo [ONCE=1] [PORT=n]   run the whole installation here, or drive it once and stop'
	@echo 'make test [JOBS=n] [ARGS=...] the tests; make test-all adds PostgreSQL 15 and Python 3.13 with Django 6.1'
	@echo 'make lint types docs          style and layers, static types, the documentation'
	@echo 'make bench [ONLY=group]       figures beside their peers'
	@echo 'make clients [WRITE=1]        compare (or write anew), compile and try the Python and TypeScript clients'
	@echo 'make chaos [SECONDS=60]        kill, freeze, cut and restart everything under load; nothing may be lost'
	@echo 'make clean                    remove .venv, .dev and everything built'

# Makes what an interrupt left unfinished again, and waits for another make that installs.
install:
	@test -n "$(PYTHON)" || { echo 'No Python 3.11 or later on PATH; install one, or run make PYTHON=/path/to/python3.'; exit 1; }
	@$(PYTHON) requirements/install.py $(VENV)

demo: install
	@$(BIN)/python manage.py compute_dev --port $(PORT) $(if $(ONCE),--once example_project.demo)

test: install
	$(BIN)/pytest $(SPREAD) $(ARGS)

# The whole matrix, with four times the examples of each property.
test-all: export COMPUTE_TEST_THOROUGH = 1
test-all: test test-pg15 test-py313

test-pg15: install
	@test -x $(PG15)/postgres || { echo 'No PostgreSQL 15 in $(PG15); install postgresql-15, or set PG15 to its programs.'; exit 1; }
	env -u DATABASE_URL COMPUTE_DEV_PGBIN=$(PG15) $(BIN)/pytest $(SPREAD) $(ARGS)

test-py313:
	$(MAKE) --no-print-directory VENV=.venv-py313 PYTHON=$(PYTHON313) install
	.venv-py313/bin/pytest $(SPREAD) -m 'not slow' $(ARGS)

lint: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

types: install
	$(BIN)/mypy

docs: install
	$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --builder html docs docs/_build/html
	@echo 'docs/_build/html/index.html'

# Needs Node and npm. The clients of what the example project hosts are compared with those that are committed, compiled,
# and call every method. WRITE=1 writes them anew.
CHECK = $(if $(WRITE),,--check)
clients: install
	cd clients/typescript && npm ci --no-audit --no-fund
	$(BIN)/python manage.py compute_client typescript --output clients/typescript/generated/client.ts $(CHECK)
	$(BIN)/python manage.py compute_client python --output clients/python/compute_client.py $(CHECK)
	cd clients/typescript && npm run build
	COMPUTE_TEST_ALL=1 $(BIN)/pytest $(SPREAD) tests/clients $(ARGS)

bench: install
	$(BIN)/python -m benchmarks

# Ends by itself and stops everything it started; SEED repeats a schedule, BREAK leaves a rule out.
SECONDS ?= 60
chaos: install
	$(BIN)/python -m tests.chaos --seconds $(SECONDS) $(if $(SEED),--seed $(SEED)) $(if $(BREAK),--break $(BREAK))

# Pins again what pyproject.toml allows, for each Python; no index address is written down.
requirements: install
	$(MAKE) --no-print-directory VENV=.venv-py313 PYTHON=$(PYTHON313) install
	for pair in .venv:dev .venv-py313:dev-py313; do \
	  $${pair%%:*}/bin/pip-compile --quiet --upgrade --extra dev --extra observability --extra bench --generate-hashes \
	    --allow-unsafe --strip-extras --no-emit-options --no-annotate --no-header \
	    --output-file requirements/$${pair##*:}.txt pyproject.toml && \
	  sed -i -e '/^# /d' -e '/^better-compute @/d' -e '/^$$/d' requirements/$${pair##*:}.txt; done

clean:
	@for link in .dev/*/elsewhere; do if [ -L "$$link" ]; then rm -rf "$$(readlink "$$link")"; fi; done
	rm -rf .venv .venv-py313 .dev build dist docs/_build test-results benchmarks/results.json
	find . -name __pycache__ -prune -exec rm -rf {} +
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
