# Every target sets up what it needs: `make run` and `make test` work on a fresh clone.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: setup run test test-all bench bench-peers lint docs clean

setup: $(READY)

$(READY): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet --editable ".[test,lint,docs]"
	@touch $@

run: setup
	$(BIN)/dalembert reproduce --out out/report

test: setup
	$(BIN)/python -m pytest -n auto --dist loadgroup

test-all: setup
	$(BIN)/python -m pytest -n auto --dist loadgroup -m ""

bench: setup
	$(BIN)/python benchmarks/run.py

bench-peers: setup
	$(BIN)/pip install --quiet ".[bench]"
	$(BIN)/python benchmarks/peers_work_precision.py

lint: setup
	$(BIN)/ruff check dalembert tests benchmarks docs
	$(BIN)/ruff format --check dalembert tests benchmarks docs
	$(BIN)/mypy

docs: setup
	$(BIN)/python docs/build.py

clean:
	rm -rf $(VENV) out build dist *.egg-info
