# Everything runs in .venv inside the project; the locked dependencies are in requirements.lock.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.set-up

CODE   := formats yfilter overlay registration onyx demo benchmarks tests

.DEFAULT_GOAL := help
.PHONY: help setup demo test check format bench lock clean

help:
	@echo "make setup   set up $(VENV) (quick when nothing changed)"
	@echo "make demo    the paper's Figure 4 as six broker processes, every delivery checked"
	@echo "             make demo MESSAGES=DIR does it with your own XML files"
	@echo "make test    the tests"
	@echo "make check   ruff and mypy"
	@echo "make bench   the benchmarks (results: docs/benchmarks.md)"
	@echo "make lock    resolve requirements.lock anew (needs uv)"
	@echo "make clean   remove $(VENV) and everything that was built"

setup: $(STAMP)

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
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@
	@echo "setup: done"

demo: $(STAMP)
	@$(BIN)/python -m demo $(if $(MESSAGES),--messages "$(MESSAGES)")

test: $(STAMP)
	$(BIN)/python -m pytest

check: $(STAMP)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/ruff check $(CODE)
	$(BIN)/mypy

format: $(STAMP)
	$(BIN)/ruff format $(CODE)
	$(BIN)/ruff check --fix $(CODE)

bench: $(STAMP)
	$(BIN)/python -m benchmarks

lock:
	uv pip compile --universal --python-version 3.11 --generate-hashes --no-header --no-emit-index-url \
	  --upgrade --extra dev pyproject.toml --output-file requirements.lock

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
