# One word each; every target makes what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SEED ?=
ROUNDS ?= 10
STAMP := $(VENV)/.installed
RHEA := tests/interop/rhea/node_modules/.installed

.PHONY: run demo test test-interop spark lint bench crash fuzz spec rhea clean

run: $(STAMP)
	$(BIN)/ambermq serve --data ./data

demo: $(STAMP)
	$(BIN)/python -m tools.demo

test: lint rhea
	$(BIN)/pytest -n 2 --dist worksteal -m "not spark"
	@$(MAKE) --no-print-directory spark

# Real clients, each where its toolchain is; what came of them is written into the page.
test-interop: rhea
	$(BIN)/python -m tests.interop.matrix --write docs/interop.md

# One process and one session, when the others have ended: Spark takes both cores, and half a gigabyte.
spark: $(STAMP)
	$(BIN)/pytest -m spark

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(STAMP)
	$(BIN)/python -m bench

crash: $(STAMP)
	$(BIN)/python -m tests.crash $(if $(SEED),--seed $(SEED))

# The laws with other examples than those of `make test`; what fails is printed with the line that repeats it.
fuzz: $(STAMP)
	for round in $$(seq $(ROUNDS)); do AMBERMQ_HYPOTHESIS=fuzz $(BIN)/pytest -n 2 --dist worksteal -m hypothesis || exit 1; done

spec: $(STAMP)
	$(BIN)/python -m tools.spec --check

# The rhea tests run where Node.js is; without it they are shown as skipped.
rhea: $(STAMP)
	@if command -v npm >/dev/null 2>&1; then $(MAKE) --no-print-directory $(RHEA); else echo "npm not found: the rhea tests will be skipped"; fi

$(RHEA): tests/interop/rhea/package.json
	npm install --prefix tests/interop/rhea --no-audit --no-fund --no-package-lock --loglevel=error
	@touch $@

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info tests/interop/rhea/node_modules
