# One word each; every target makes what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEED ?=
ROUNDS ?= 10
STAMP := $(VENV)/.installed
WHICH := -c 'import os, sys; print("Python %d.%d in %s" % (*sys.version_info[:2], os.path.realpath(sys.base_prefix)))'
RHEA := tests/interop/rhea/node_modules/.installed

.PHONY: help run demo test test-interop spark lint bench crash fuzz spec rhea clean

help: ## lists these words; so does make alone
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-13s %s\n", $$1, $$2 }' Makefile

run: $(STAMP) ## serves ./data on 127.0.0.1:5672
	$(BIN)/ambermq serve --data ./data

demo: $(STAMP) ## shows a kill in which no message is lost, a snapshot, the story of one message and a compaction
	$(BIN)/python -m ambermq.tools.demo

test: lint rhea ## style, types, layers and all tests
	$(BIN)/pytest -n 2 --dist worksteal -m "not spark"
	@$(MAKE) --no-print-directory spark

# Real clients, each where its toolchain is; what came of them is written into the page.
test-interop: rhea ## drives the broker with real clients, and writes docs/interop.md
	$(BIN)/python -m tests.interop.matrix --write docs/interop.md

# One process and one session, when the others have ended: Spark takes both cores, and half a gigabyte.
spark: $(STAMP) ## the tests that start Spark alone
	$(BIN)/pytest -m spark

lint: $(STAMP) ## style, types and layers alone
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP) ## measures, beside RabbitMQ where that is installed
	$(BIN)/python -m bench

crash: $(STAMP) ## kills brokers under load, and checks every promise; SEED=N does it again
	$(BIN)/python -m tests.crash $(if $(SEED),--seed $(SEED))

# The laws with other examples than those of `make test`; what fails is printed with the line that repeats it.
fuzz: $(STAMP) ## the laws with other examples; ROUNDS=N times
	for round in $$(seq $(ROUNDS)); do AMBERMQ_HYPOTHESIS=fuzz $(BIN)/pytest -n 2 --dist worksteal -m hypothesis || exit 1; done

spec: $(STAMP) ## checks the generated AMQP tables against the OASIS XML
	$(BIN)/python -m ambermq.tools.spec --check

# The rhea tests run where Node.js is; without it they are shown as skipped.
rhea: $(STAMP) ## fetches what the rhea tests need, where npm is
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory $(RHEA); else echo "npm not found: the rhea tests will be skipped"; fi

$(RHEA): tests/interop/rhea/package.json
	npm install --prefix tests/interop/rhea --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

# Over the environment of another interpreter venv makes one that is half of each. It may be somebody's: nothing goes unasked.
$(STAMP): pyproject.toml
	@ours="$$($(PYTHON) $(WHICH))" || exit 1; theirs="$$($(BIN)/python $(WHICH) 2>/dev/null)"; \
	if [ -e $(VENV) ] && [ "$$ours" != "$$theirs" ]; then \
		echo "$(VENV) is of $${theirs:-a Python that is gone}, not of $$ours: make clean, or name its own with PYTHON=" >&2; \
		exit 1; \
	fi
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

clean: ## removes the environment and what was built
	rm -rf $(VENV) build dist *.egg-info tests/interop/rhea/node_modules
