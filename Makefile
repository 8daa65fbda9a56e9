# make demo | test | test-all | kill-test | check | clean        PIP_ARGS=... is passed to pip, PYTHON=python3.12 picks another Python
PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
export OMP_NUM_THREADS ?= 2

.PHONY: demo test test-all kill-test check java chromium proto clean

demo: $(READY) java
	$(BIN)/sluice demo --out out/demo

test: $(READY) java
	$(BIN)/pytest -q -m "not slow"

test-all: $(READY) java chromium
	$(BIN)/pytest -q

kill-test: $(READY) java
	$(BIN)/python -m tests.sluice.random_kills --times 10

check: $(READY)
	$(BIN)/ruff check .
	$(BIN)/mypy contracts pipelines models federated serving sluice benchmarks
	$(BIN)/pytest -q tests/test_layering.py

java:
	@setup/system_packages.sh java

chromium:
	@setup/system_packages.sh chromium

proto: $(READY)
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. --grpc_python_out=. serving/proto/sluice.proto

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 13) else f"Sluice needs Python 3.11 or 3.12, {sys.executable} is {v[0]}.{v[1]}: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	@touch $(READY)

clean:
	rm -rf out build .pytest_cache .mypy_cache .ruff_cache
