# The front door of a checkout: `make help` lists what there is.
# It needs a POSIX shell, python3 >= 3.11 and, once, the package registries; nothing else.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
# How many test processes at a time: one more than there are cores, for each waits now and then;
# fewer where each starts large programs of others. And further words for pytest or the bench.
JOBS ?= $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
PEERS ?= 2
ARGS ?=
# Kills in `make crash`, and the seed to repeat one (0: a new one).
N ?= 200
SEED ?= 0
# How long `make soak` takes, and how many sessions it has.
MINUTES ?= 30
SESSIONS ?= 50

# Stamps: what is installed is renewed only when the list it was installed from has changed.
RUN := $(VENV)/.installed-to-run
DEV := $(VENV)/.installed-to-develop

.DEFAULT_GOAL := help
.PHONY: help demo test check format coverage protocol real interop crash soak bench lock clean distclean

help: ## show this list
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-16s %s\n", $$1, $$2 }'

demo: $(RUN) ## see the main job done, with an agent that comes along
	@$(BIN)/acphost demo $(ARGS)

test: $(DEV) ## run the tests, except those that need other programs (ARGS="-k name")
	$(BIN)/python -m pytest -n $(JOBS) --dist worksteal --ignore=tests/real --ignore=tests/interop $(ARGS)

check: $(DEV) ## format, lint, types, import rules
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy --strict
	$(BIN)/lint-imports

format: $(DEV) ## let ruff format the code and mend what it can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

coverage: $(DEV) ## the tests again, with the lines and branches they miss
	$(BIN)/coverage erase
	$(BIN)/coverage run -m pytest --ignore=tests/real --ignore=tests/interop $(ARGS)
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report

protocol: $(DEV) ## renew what is made from the socket's types: page, plugin types, golden frames
	$(BIN)/python -m tools.protocol

real: $(DEV) ## install the real agents into .real/, talk to them with a fake model
	@PYTHON="$(PYTHON)" sh tools/real-agents.sh .real
	$(BIN)/python -m pytest -n $(PEERS) --dist worksteal tests/real $(ARGS)

interop: $(DEV) ## meet independent agents, clients and editors (installed into .interop/)
	@PYTHON="$(PYTHON)" sh tools/interop-peers.sh .interop
	$(BIN)/python -m pytest -n $(PEERS) --dist worksteal tests/interop $(ARGS)

crash: $(DEV) ## kill the daemon at every named and N random points (N=200 SEED=0)
	ACPHOST_CRASH_KILLS=$(N) ACPHOST_CRASH_SEED=$(SEED) $(BIN)/python -m pytest -n $(PEERS) --dist worksteal tests/crash $(ARGS)

soak: $(DEV) ## mixed work for half an hour: memory, files, WAL stay flat (MINUTES=30 SESSIONS=50)
	$(BIN)/python -m tests.soak --minutes $(MINUTES) --sessions $(SESSIONS) --seed $(SEED) $(ARGS)

bench: $(DEV) ## speed and size beside a bare loop on this machine
	$(BIN)/python -m tests.bench $(ARGS)

lock: $(DEV) ## renew the pinned requirements from pyproject.toml (ARGS=--upgrade)
	$(PIP) install --quiet "pip-tools>=7.5"
	$(BIN)/python tools/lock.py $(ARGS)

clean: ## remove caches and what was built
	rm -rf build dist .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .ci/logs
	find acphost tests tools -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## also remove the virtual environment and what was installed to meet
	rm -rf $(VENV) .real .interop

# -- the virtual environment ----------------------------------------------------------------------

$(RUN): requirements/run.txt pyproject.toml tools/venv.sh
	@sh tools/venv.sh "$(PYTHON)" $(VENV)
	$(PIP) install --quiet --require-hashes -r requirements/run.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(DEV): requirements/dev.txt $(RUN)
	$(PIP) install --quiet --require-hashes -r requirements/dev.txt
	@touch $@
