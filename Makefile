# Everything runs in .venv inside the project; the locked dependencies are in requirements.lock.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
JOBS   ?= auto
STAMP  := $(VENV)/.set-up
BUILT  := $(VENV)/.built

PACKAGES := formats yfilter overlay registration onyx
CODE   := $(PACKAGES) demo benchmarks tests docs setup.py

.DEFAULT_GOAL := help
.PHONY: help setup demo fast test golden check format bench docs wheel lock clean

help:
	@echo "make setup   set up $(VENV) and compile the hot modules (quick when nothing changed)"
	@echo "make demo    the paper's Figure 4 as six broker processes, every delivery checked"
	@echo "             make demo MESSAGES=DIR does it with your own XML files"
	@echo "make fast    the tests that start no process, in about a minute on two cores"
	@echo "make test    the tests on all cores, those of formats and yfilter with either build"
	@echo "             make test JOBS=0 does it in one process"
	@echo "make golden  write the golden files anew (tests/golden), for a change that is decided"
	@echo "make check   ruff and mypy"
	@echo "make bench   a quick version of the benchmarks (results: docs/benchmarks.md)"
	@echo "make docs    the documents as a site, in build/site (installs zensical)"
	@echo "make wheel   what can be installed elsewhere, in dist/: sdist, a wheel for this machine, one for all"
	@echo "make lock    resolve requirements.lock anew (needs uv)"
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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@echo "setup: onyx itself"
	@ONYX_COMPILE=skip $(BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --no-deps --no-build-isolation --editable .
	@touch $@

# Compiles again what has changed; ONYX_COMPILE=auto|require|skip.
$(BUILT): $(STAMP) setup.py $(foreach p,formats yfilter,$(wildcard $(p)/*.p* $(p)/*/*.p* $(p)/*/*/*.p*))
	@echo "setup: hot modules"
	@$(BIN)/python setup.py --quiet build_ext --inplace
	@$(BIN)/python -m compileall -q $(PACKAGES)  # as an installation has it: a start takes half the time
	@echo "setup: done, build: `$(BIN)/python -c 'import formats; print(formats.build_info())'`"
	@touch $@

demo: $(BUILT)
	@$(BIN)/python -m demo $(if $(MESSAGES),--messages "$(MESSAGES)")

fast: $(BUILT)
	$(BIN)/python -m pytest --fast -q -n $(JOBS) --maxprocesses 8

test: $(BUILT)
	$(BIN)/python -m pytest -n $(JOBS) --maxprocesses 8

golden: $(BUILT)
	$(BIN)/python -m tests.golden

check: $(STAMP)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(BUILT)
	$(BIN)/python -m benchmarks all

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

lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	  --upgrade --extra dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	rm -f formats/compiled.json
	find formats yfilter -name '*.so' -delete
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
