# Every target installs what it needs, and nothing that is installed already.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEED ?=
# Of `make soak` 60, of `make fuzz` 10.
MINUTES ?=
PACKAGE ?=
# More than there are cores on a small machine: many tests wait for a clock or a disk.
WORKERS ?= 4
BASE := $(VENV)/.installed-base
DEV := $(VENV)/.installed-dev
MUTANTS := $(VENV)/.installed-mutants
WHICH := -c 'import os, sys; print("Python %d.%d in %s" % (*sys.version_info[:2], os.path.realpath(sys.base_prefix)))'
RHEA := tests/interop/rhea/node_modules/.installed

.PHONY: help run man demo test test-fast test-interop spark lint bench crash soak fuzz newcomer mutants spec rhea clean

help: ## lists these targets; so does make alone
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: $(BASE) ## serves ./data on 127.0.0.1:5672
	$(BIN)/ambermq serve --data ./data

man: $(BASE) ## writes a man page for each command into build/man
	$(BIN)/python -m ambermq.tools.manual build/man

demo: $(BASE) ## shows a SIGKILL that loses no message, a snapshot, the story of one message and a compaction
	$(BIN)/python -m ambermq.tools.demo

# By a name of its own, because `make -n` runs a line that has the word itself.
checks = $(MAKE) --no-print-directory lint

# The tests of Spark share one session in one process. They run beside the checks, which use one core, and beside the
# others, which often wait for a clock. That process prints into a file, because two would print into each other's lines.
test: $(DEV) rhea ## style, types, layers, links and all tests
	@told=$$(mktemp); trap 'rm -f $$told' EXIT; \
	$(BIN)/pytest -m spark > $$told 2>&1 & spark=$$!; \
	$(checks) || { kill $$spark; exit 1; }; \
	$(BIN)/pytest -n $(WORKERS) --dist worksteal -m "not spark"; code=$$?; \
	wait $$spark || code=1; \
	echo "the tests of Spark:"; cat $$told; exit $$code

test-fast: $(DEV) ## the tests of changed packages, in 90 s; PACKAGE=engine/decide, else those that differ from main
	$(BIN)/python -m tests.fast $(PACKAGE)

# Real clients, each where its toolchain is; the page shows the results.
test-interop: $(DEV) rhea ## drives the broker with real clients, and writes docs/interop.md
	$(BIN)/python -m tests.interop.matrix --write docs/interop.md
	$(BIN)/python -m tests.interop.jms_suite

spark: $(DEV) ## the tests that start Spark alone
	$(BIN)/pytest -m spark

lint: $(DEV) ## style, types, layers and links alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.docs.links

bench: $(DEV) ## measures the broker, Artemis and RabbitMQ where they can run
	$(BIN)/python -m bench

crash: $(DEV) ## kills brokers, cuts their power, and checks every promise; SEED=N repeats a run
	$(BIN)/python -m tests.crash $(if $(SEED),--seed $(SEED))

soak: $(DEV) ## an hour of mixed load with faults: memory, descriptors and latency are judged; MINUTES=N
	$(BIN)/python -m tests.soak --minutes $(or $(MINUTES),60) $(if $(SEED),--seed $(SEED))

# Where atheris has no wheel for the interpreter, the run says so, and has the property tests alone.
fuzz: $(DEV) ## 10 minutes of coverage-guided fuzzing of every parser, and the property tests; MINUTES=N
	@$(BIN)/python tests/extras.py fuzz || { $(call install,.[fuzz],about 40 MB: what fuzzing needs); } || true
	$(BIN)/python -m tests.fuzz --minutes $(or $(MINUTES),10) $(if $(SEED),--seed $(SEED))

# `make test` has it without a registry.
newcomer: $(DEV) ## clone, install, serve with TLS, log in, send, receive, watch, upgrade: the first hour
	$(BIN)/python -m tests.packaging.newcomer

# Survivors have their explanation in tests/mutants/survivors.toml. A run that is stopped goes on where it was.
mutants: $(MUTANTS) ## plants small faults in the critical modules, and lists those that no test finds
	$(BIN)/python -m tests.mutants

spec: $(BASE) ## checks the generated AMQP tables against the OASIS XML
	$(BIN)/python -m ambermq.tools.spec --check

# The rhea tests run where Node.js is; without it they are shown as skipped.
rhea: ## installs what the rhea tests need, if npm is installed
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory $(RHEA); else echo "npm not found: the rhea tests will be skipped"; fi

$(RHEA): tests/interop/rhea/package.json
	npm install --prefix tests/interop/rhea --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

# An environment that was made without make is taken as it is, if it holds what is needed.
$(BASE): pyproject.toml
	@$(environment)
	@$(BIN)/python tests/extras.py || $(call install,.,about 60 MB: what the broker needs)
	@touch $@

$(DEV): pyproject.toml
	@$(environment)
	@$(BIN)/python tests/extras.py dev || $(call install,.[dev],about 1.3 GB: what the tests need$(comma) PySpark among it)
	@touch $@ $(BASE)

$(MUTANTS): pyproject.toml | $(DEV)
	@$(BIN)/python tests/extras.py mutants || $(call install,.[mutants],about 20 MB: what mutation testing needs)
	@touch $@

install = { echo "installing $(2)"; $(BIN)/pip install --disable-pip-version-check -e "$(1)"; }
comma := ,

# In the environment of another interpreter venv makes one that is half of each. It may be in use: make removes none unasked.
define environment
ours="$$($(PYTHON) $(WHICH))" || exit 1; theirs="$$($(BIN)/python $(WHICH) 2>/dev/null)"; \
	if [ -e $(VENV) ] && [ "$$ours" != "$$theirs" ]; then \
		echo "$(VENV) is of $${theirs:-a Python that is gone}, not of $$ours: make clean, or name its own with PYTHON=" >&2; \
		exit 1; \
	fi; \
	[ -e $(VENV) ] || $(PYTHON) -m venv $(VENV)
endef

clean: ## removes the environment and the built files
	rm -rf $(VENV) build dist *.egg-info tests/interop/rhea/node_modules
