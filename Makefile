# Every target sets up what it needs, and no more: `make run` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
INSTALL := $(BIN)/pip install --quiet --editable

.PHONY: setup run test test-all bench bench-peers soak lint docs clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(INSTALL) ".[sundials]"
	@touch $@

$(READY)-test: $(READY)
	$(INSTALL) ".[test,docs]"
	@touch $@

$(READY)-lint: $(READY)
	$(INSTALL) ".[lint]"
	@touch $@

$(READY)-docs: $(READY)
	$(INSTALL) ".[docs]"
	@touch $@

$(READY)-bench: $(READY)
	$(INSTALL) ".[bench]"
	@touch $@

run: setup
	$(BIN)/dalembert reproduce --out out/report

# The many processes that tests start find modules compiled, also where the user's environment forbids to keep them.
test test-all: export PYTHONDONTWRITEBYTECODE =
# So many processes compute at a time that threads of BLAS only wait for each other: small eigenproblems took 100 times as long.
test test-all: export OPENBLAS_NUM_THREADS = 1

test: $(READY)-test
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-all: $(READY)-test
	$(BIN)/python -m pytest -n auto --dist loadgroup -m ""

bench: $(READY)-test
	$(BIN)/python benchmarks/run.py

bench-peers: $(READY)-bench
	$(BIN)/python benchmarks/peers_work_precision.py

soak: $(READY)-test
	$(BIN)/python benchmarks/fuzz.py --cases 1000000 --log fuzz.jsonl

lint: $(READY)-lint
	$(BIN)/ruff check dalembert tests benchmarks docs
	$(BIN)/ruff format --check dalembert tests benchmarks docs
	$(BIN)/mypy

docs: $(READY)-docs
	$(BIN)/python -m sphinx -q -W --keep-going docs out/docs
	@echo out/docs/index.html

clean:
	rm -rf $(VENV) out build dist *.egg-info
