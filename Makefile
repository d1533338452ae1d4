# Everything runs in .venv inside the project.  The locked dependencies of setup and demo are in
# requirements.lock, those of tests and extras too in requirements-dev.lock.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# One more than cores, since tests of processes wait now and then.
JOBS   ?= $(shell $(PYTHON) -c "import os; print((os.cpu_count() or 1) + 1)")
CAMPAIGN_SECONDS ?= 7200
STAMP  := $(VENV)/.set-up
DEV    := $(VENV)/.set-up-dev
BUILT  := $(VENV)/.built
CLASSES := $(VENV)/.classes
# Of mypy, by contents: a second clone checks only files that are new to it, as setup.py compiles only such.
CHECKED := $(if $(HOME),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/onyx/mypy,.mypy_cache)
# The locks are complete, hence no resolving; Python compiles the modules that are imported, not all 7,000.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile

PACKAGES := formats yfilter overlay registration onyx
CODE   := $(PACKAGES) demo benchmarks tests docs setup.py pyspark_onyx.py

# Images for containers set it; each of hundreds of processes would then compile what it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup dev demo fast test check format bench campaign docs wheel lock clean

help:
	@echo "make setup   set up $(VENV) and compile the hot modules (quick when nothing changed)"
	@echo "make dev     set up everything else as well: tests, gateway, Spark, PostgreSQL, traces"
	@echo "make demo    the paper's Figure 4 as six broker processes, every delivery checked"
	@echo "             make demo MESSAGES=DIR does it with your own XML files"
	@echo "make fast    the tests that start no process, in about a minute on two cores"
	@echo "make test    the tests on all cores"
	@echo "             make test JOBS=0 does it in one process"
	@echo "make check   ruff, cython-lint and mypy"
	@echo "make bench   a quick version of the benchmarks (results: docs/benchmarks.md)"
	@echo "make campaign  hours of faults, seeds, damage and conformance: CAMPAIGN_SECONDS=$(CAMPAIGN_SECONDS)"
	@echo "make docs    the documents as a site, in build/site (installs zensical)"
	@echo "make wheel   what can be installed elsewhere, in dist/: sdist, a wheel for this machine, one for all"
	@echo "make lock    resolve both locks anew (needs uv)"
	@echo "make clean   remove $(VENV) and everything that was built"

setup: $(BUILT)

$(STAMP): requirements.lock pyproject.toml
	@command -v $(PYTHON) >/dev/null || { echo "onyx: '$(PYTHON)' not found; set PYTHON=/path/to/python3.11 or newer" >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "onyx: Python 3.11 or newer is needed, $(PYTHON) is `$(PYTHON) -V`; set PYTHON=/path/to/python" >&2; exit 1; }
	@echo "setup: virtual environment in $(VENV)"
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV) || { rm -rf $(VENV); \
	  echo "onyx: '$(PYTHON) -m venv' failed; on Debian or Ubuntu: apt-get install python3-venv" >&2; exit 1; }
	@echo "setup: locked dependencies (requirements.lock)"
	@$(INSTALL) --require-hashes -r requirements.lock
	@echo "setup: onyx itself"
	@ONYX_COMPILE=skip $(INSTALL) --no-build-isolation --editable .
	@touch $@

dev: $(BUILT) $(DEV) $(CLASSES)

$(DEV): $(STAMP) requirements-dev.lock
	@echo "setup: locked dependencies of tests and extras (requirements-dev.lock)"
	@$(INSTALL) --no-build-isolation --require-hashes -r requirements-dev.lock
	@touch $@

# Compiles again what has changed, unless it was compiled before (setup.py); ONYX_COMPILE=auto|require|skip.
$(BUILT): $(STAMP) setup.py $(foreach p,formats yfilter,$(wildcard $(p)/*.p* $(p)/*/*.p* $(p)/*/*/*.p*))
	@echo "setup: hot modules"
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@$(BIN)/python -m compileall -q -j 0 $(PACKAGES) demo  # as an installation has it: a start takes half the time
	@echo "setup: done, build: `$(BIN)/python -c 'import formats; print(formats.build_info())'`"
	@touch $@

# Of the JVM of Spark, whose sessions take half of the time then.
$(CLASSES): $(DEV) $(BUILT)
	@echo "setup: archive of Spark's classes"
	@$(BIN)/python -m registration.spark.class_archive
	@touch $@

demo: $(BUILT)
	@$(BIN)/python -m demo $(if $(MESSAGES),--messages "$(MESSAGES)")

fast: $(BUILT) $(DEV)
	$(BIN)/python -m pytest --fast -q -n $(JOBS) --maxprocesses 8

test: $(BUILT) $(DEV) $(CLASSES)
	$(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8

check: $(DEV)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	PATH="$(BIN):$$PATH" $(BIN)/cython-lint --max-line-length 100 formats yfilter  # it calls pycodestyle
	$(BIN)/mypy --cache-dir $(CHECKED)

format: $(DEV)
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(BUILT) $(DEV)
	$(BIN)/python -m benchmarks all

# Steps, and what of the time each gets: tests/campaign.py.
campaign: $(BUILT) $(DEV)
	$(BIN)/python -m tests.campaign --seconds $(CAMPAIGN_SECONDS) --jobs $(JOBS) $(STEPS)

docs: $(STAMP)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check 'zensical>=0.0.73'
	$(BIN)/python docs/site_pages.py build/docs
	$(BIN)/zensical build --strict --config-file mkdocs.yml
	@echo "build/site/index.html"

# The wheel of this machine is made one for all Linuxes that are no older, where auditwheel and patchelf are there.
wheel: $(STAMP)
	rm -rf build dist
	$(BIN)/python -c 'import setuptools.build_meta as b; b.build_sdist("dist")'
	ONYX_COMPILE=skip $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	ONYX_COMPILE=require $(BIN)/python -m pip wheel --quiet --no-deps --no-build-isolation --wheel-dir dist .
	@if command -v auditwheel >/dev/null; then auditwheel repair --wheel-dir dist dist/*-linux_*.whl && rm dist/*-linux_*.whl; \
	  else echo "auditwheel is not installed: the wheel is for this machine only"; fi
	@ls -l dist

# Both have the same pins; what a release needs is a part of what its tests need.
LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url

lock:
	$(LOCK) --upgrade --extra dev pyproject.toml --output-file requirements-dev.lock
	$(LOCK) --upgrade --extra demo --constraint requirements-dev.lock pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f formats/compiled.json
	find formats yfilter -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
