# Everything runs from .venv, made by the first target that needs it. Nothing has to be prepared but
# Python 3.11 or newer; PYTHON=... names one. `make help` lists the targets.

.DEFAULT_GOAL := help
.SUFFIXES:

BIN := .venv/bin
# What users need, and what the project's own checks need besides; each is there when its file is.
REQUIRED := .venv/.required
STAMP := .venv/.installed
NEED := PYTHON="$(PYTHON)" sh .ci/need
# Compiled modules are kept, whatever the user's own wish: without them every start of Python compiles again,
# and a test run starts hundreds.
export PYTHONDONTWRITEBYTECODE :=
# Four workers on two processors: a test waits for processes of its own half of the time.
# Worksteal: each worker begins with one part in order, so that what tests share is made once, and no long
# test is left alone at the end.
PYTEST := $(BIN)/pytest -n 4 --dist worksteal --durations=10
# A test that takes this long hangs; it ends with the stack of each thread, and the others go on. A run that takes
# longer than CI waits ends by itself, so that it still says what failed.
HANGS := -o timeout=600 -o timeout_method=thread -o session_timeout=4500
# While types are checked, which takes one processor, the tests are compiled: each worker would do it, at once.
BEFORE = $(MAKE) --no-print-directory -j 2 lint compiled
TARGET := cooperative-sticky

# A .venv that does not run, or belongs to another checkout (a copied tree), is made again.
OURS := $(shell $(BIN)/python -c 'import os, pip, rebalance_verifier.model as m; \
	print(os.path.samefile(m.__path__[0], "model"))' 2>/dev/null)
ifneq ($(OURS),True)
.PHONY: $(BIN)/python $(REQUIRED) $(STAMP)
endif

.PHONY: help gate test check lint docs results bench switches states machine audit campaign code clients hour mutants tlc nightly format doctor clean
.PHONY: java compiled

help: ## list the targets
	@sed -n 's/^\([a-z]*\):.*## \(.*\)/make \1: \2/p' Makefile

gate: $(REQUIRED) ## judge the built-in cooperative-sticky assignor (another: TARGET=range)
	$(BIN)/rebalance check $(TARGET)

test: $(BIN)/python java $(STAMP) ## lint, format, types and all tests but the nightly ones: what CI runs
	+@$(BEFORE)
	$(PYTEST) $(HANGS) -m "not nightly"

check: $(STAMP) ## lint, format, types and the fast tests: the loop while working
	+@$(BEFORE)
	$(PYTEST) $(HANGS) -m "not slow and not nightly"

compiled: $(STAMP)
	$(BIN)/pytest --collect-only -qq >/dev/null || true
	$(BIN)/python -c 'from hypothesis.strategies import text; text().validate()' # its tables of Unicode

lint: $(STAMP) .ns/rebalance_verifier ## lint, format and types, of the product and of the tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy

docs: $(STAMP) ## write what in docs/ follows from the code
	$(BIN)/python -m tools.docs

# The newest releases of Java and Python clients are those that the registries have today; what gate/compare/clients.json
# names stands beside them. Of Go and npm the adapters say which; the pages say which is the newest there is.
# It goes on where it stopped.
results: $(STAMP) ## judge all clients in all releases, into docs/results (hours; needs mvn, go, npm)
	cd examples/adapters/go && go build -o bin/ ./franz-go ./kafka-go ./sarama
	for client in kafkajs platformatic; do \
	  (cd examples/adapters/js/$$client && npm ci --silent --no-audit --no-fund --ignore-scripts) || exit 1; done
	$(BIN)/python -m tools.results --client all @examples/adapters/clients.json --traces docs/results/known \
	  --profile ci --wire smoke --out .rebalance/results --pages docs/results || [ $$? -eq 3 ]

bench: $(STAMP) ## the benchmarks, into tools/benchmarks/results.md
	$(BIN)/python -m tools.benchmarks.run

switches: $(STAMP) ## how soon each design switch is found, into tools/benchmarks/switches.md
	$(BIN)/python -m tools.benchmarks.switches

states: $(STAMP) ## how many states the explorer searches and how fast, into tools/benchmarks/explore.md
	$(BIN)/python -m tools.benchmarks.explore

machine: $(STAMP) ## how the Hypothesis machine does beside the explorer, into tools/benchmarks/stateful.md
	$(BIN)/python -m tools.benchmarks.stateful

audit: $(STAMP) ## what an audit costs and finds, into tools/benchmarks/audit.md
	@$(NEED) java >/dev/null
	$(BIN)/python -m tools.benchmarks.audit

campaign: $(STAMP) ## campaigns on Spark beside plain multiprocessing, into tools/benchmarks/campaign.md
	@$(NEED) java >/dev/null
	$(BIN)/python -m tools.benchmarks.campaign

code: $(STAMP) ## each switch on every release of Kafka's consumer and coordinator, into model/bugs/observed.toml (needs mvn)
	@$(NEED) java >/dev/null
	$(BIN)/python -m tools.on_code || [ $$? -eq 1 ]
	$(BIN)/python -m tools.docs

clients: $(STAMP) ## what each client writes into JoinGroup, into model/written.toml (needs mvn, go, npm)
	@$(NEED) java >/dev/null
	$(BIN)/python -m tools.client_bytes
	$(BIN)/python -m tools.docs

hour: $(STAMP) ## a random hour of recorded runs per client, into docs/results/recorded-hour.md (four hours)
	@$(NEED) java >/dev/null
	$(BIN)/python -m tools.hour --examples

mutants: $(STAMP) ## the mutation score of the model, its clauses and the logic, into tools/mutation/mutation.md; of thirty functions elsewhere, into edits.md beside it
	$(BIN)/python -m tools.mutation
	$(BIN)/python -m tools.mutation.edits

tlc: $(STAMP) ## TLC and our own search count the states of finite groups (TLA2TOOLS=/path/to/tla2tools.jar names another TLC)
	@$(NEED) java >/dev/null
	$(BIN)/python -m tools.tlc

nightly: $(BIN)/python java $(STAMP) ## the tests of the night, into tests/nightly.md; it goes on where it stopped (hours)
	$(BIN)/python -m tools.nightly

format: $(STAMP) ## format the code and repair what ruff can
	$(BIN)/ruff format
	$(BIN)/ruff check --fix

doctor: ## what this machine has of what is needed
	@python=$$($(NEED) python) && "$$python" -c 'import sys; print("python", sys.version.split()[0], sys.executable)'
	@$(NEED) java 2>&1 || true
	@$(NEED) git 2>&1 || true

clean: ## remove .venv, caches and build products, not the recorded results in .rebalance
	rm -rf .venv .ns build dist *.egg-info .hypothesis .mypy_cache .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Says at once which tests will be skipped, and why.
java:
	@$(NEED) java 2>&1 >/dev/null || true

$(BIN)/python:
	@python=$$($(NEED) python) && rm -rf .venv && echo "making .venv with $$python" && "$$python" -m venv .venv

# The stamps come last, so that the next make resumes an installation that was interrupted or failed.
INSTALL = @PIP_USE_PEP517=1 $(BIN)/python -m pip install --quiet --no-input --disable-pip-version-check -e $(1) \
  </dev/null || \
  { echo "installation failed, pip says why above; it needs a package index: is the network up?" >&2; exit 1; }

$(REQUIRED): pyproject.toml | $(BIN)/python
	$(call INSTALL,.)
	@touch $@

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "installing what the checks need: a minute or more, mostly for pyspark"
	$(call INSTALL,'.[dev]')
	@touch $(REQUIRED) $@

# mypy cannot see the import hook of the editable installation, but it follows links.
PACKAGES := base model properties explore specs live gate pipeline traces report api cli
.ns/rebalance_verifier:
	@mkdir -p $@ && ln -sfn $(addprefix ../../,$(PACKAGES)) $(addprefix ../../rebalance_verifier/,__init__.py __main__.py py.typed) $@/
