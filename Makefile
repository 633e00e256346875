# `make` alone lists what there is to do. Another interpreter: make run PYTHON=python3.12
.DEFAULT_GOAL := help
.NOTPARALLEL:

PYTHON ?= python3
# A worker that runs out of tests takes some of another's.
PYTEST_ARGS ?= -n auto --dist worksteal
# Two at a time, as each starts processes of its own; a file's tests share a server or a cluster.
HEAVY_ARGS ?= -n 2 --dist loadfile

# Bytecode is kept, whatever the environment says: it halves the time to collect the tests, and
# many of them start Python anew.
unexport PYTHONDONTWRITEBYTECODE

VENV := .venv
BIN := $(VENV)/bin

# A stamp is written only after its installation succeeded, and lives in the environment it
# describes: an interrupted installation is repeated, a removed environment is rebuilt.
RUN_STAMP := $(VENV)/.installed-run
DEV_STAMP := $(VENV)/.installed-dev
HEAVY_STAMP := $(VENV)/.installed-heavy
BENCH_STAMP := $(VENV)/.installed-bench
SITE_STAMP := $(VENV)/.installed-site
PACKAGE_STAMP := $(VENV)/.installed-package
SOURCES := pyproject.toml src/partita/_version.py

SUPPORTED := import sys; sys.exit(sys.version_info < (3, 11))

# A working environment is kept, an unusable one (half made, or its interpreter gone) made anew.
define ensure_venv
	@if ! $(BIN)/python -c 'import pip; $(SUPPORTED)' >/dev/null 2>&1; then \
		"$(PYTHON)" -c '$(SUPPORTED)' || { \
			echo "Partita needs Python 3.11 or newer. Name one: make PYTHON=python3.12 $(MAKECMDGOALS)" >&2; \
			exit 1; }; \
		echo "Creating $(VENV)"; \
		"$(PYTHON)" -m venv --clear $(VENV); \
	fi
endef

define install
	$(ensure_venv)
	@echo "Installing $(1) into $(VENV)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '$(1)'
endef

.PHONY: help run reproduce dev test test-heavy test-browser test-nojit soak lint format docs site notebooks \
	package bench clean distclean

help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' $(firstword $(MAKEFILE_LIST)) \
		| while IFS='|' read -r name text; do printf '  make %-12s %s\n' "$$name" "$$text"; done

run: $(RUN_STAMP) ## Set up .venv and reproduce the paper's table and figures, in two minutes
	@$(BIN)/python -m partita reproduce all --quick --out results/quick

reproduce: $(RUN_STAMP) ## The same at full length: 12 runs of 10,000 evaluations, 40 minutes or more
	@$(BIN)/python -m partita reproduce all --out results/full

dev: $(DEV_STAMP) ## Install everything that development needs

test: $(DEV_STAMP) ## Run the tests (PYTEST_ARGS="-k name" to choose)
	$(BIN)/python -m pytest $(PYTEST_ARGS)

test-heavy: $(HEAVY_STAMP) ## Run the tests with real clusters and servers: Ray, Dask, PostgreSQL
	$(BIN)/python -m pytest tests/heavy $(HEAVY_ARGS)

# Debian's packages, where this may install them; elsewhere the tests say what to install and skip.
test-browser: $(DEV_STAMP) ## Run the tests of the live page in a real Chromium
	@command -v chromium >/dev/null && command -v chromedriver >/dev/null \
		|| { [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null \
			&& apt-get install -y --no-install-recommends chromium chromium-driver; } \
		|| echo "Install Chromium and its driver: apt-get install chromium chromium-driver" >&2
	$(BIN)/python -m pytest tests/browser -q

test-nojit: $(DEV_STAMP) ## Run the tests of the compiled loops with the compiler off
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest tests/gp/test_loops.py tests/partition/test_loops.py -q

soak: $(DEV_STAMP) ## Run the long tests of reliability, two hours or more (SOAK_ARGS="fuzz --share 0.1" to choose)
	$(BIN)/python tests/soak $(SOAK_ARGS)

lint: $(DEV_STAMP) ## Check style, format, types and which room imports which
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(DEV_STAMP) ## Format the code and apply the safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(DEV_STAMP) ## Make the parts of the docs that come from the code
	$(BIN)/python docs/build.py

# From nothing each time: an earlier build hides that a page is gone, and keeps old titles.
site: $(SITE_STAMP) ## Build the documentation site into build/site; warnings are errors
	rm -rf build/site build/doctrees
	$(BIN)/python -m sphinx --quiet -j auto --fail-on-warning --keep-going -d build/doctrees docs build/site
	$(BIN)/python docs/check_site.py build/site

notebooks: $(SITE_STAMP) ## Run the site's notebooks and write them as .ipynb into build/notebooks
	rm -rf build/notebooks
	mkdir -p build/notebooks
	for name in docs/notebooks/*.nb.py; do \
		$(BIN)/jupytext --quiet --to ipynb --execute \
			--output build/notebooks/$$(basename $$name .nb.py).ipynb $$name || exit 1; \
	done

package: $(PACKAGE_STAMP) ## Build wheel and sdist into dist, check them, install the wheel and run it
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	$(BIN)/check-wheel-contents dist
	$(BIN)/python tests/package/smoke.py dist

bench: $(BENCH_STAMP) ## Measure what a step costs
	$(BIN)/python benchmarks/step_cost.py

clean: ## Remove caches and build output
	rm -rf build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache
	find . \( -path ./$(VENV) -o -path ./.git \) -prune -o -type d -name __pycache__ \
		-exec rm -rf {} +

distclean: clean ## Remove the environment as well
	rm -rf $(VENV)

$(RUN_STAMP): $(SOURCES)
	$(call install,.[experiments])
	@touch $@

# What development and benchmarks need includes what a run needs.
$(DEV_STAMP): $(SOURCES)
	$(call install,.[dev])
	@touch $(RUN_STAMP) $@

$(HEAVY_STAMP): $(SOURCES)
	$(call install,.[heavy])
	@touch $(RUN_STAMP) $(DEV_STAMP) $@

$(BENCH_STAMP): $(SOURCES)
	$(call install,.[bench])
	@touch $(RUN_STAMP) $@

$(SITE_STAMP): $(SOURCES)
	$(call install,.[site])
	@touch $@

$(PACKAGE_STAMP): $(SOURCES)
	$(call install,.[package])
	@touch $@
