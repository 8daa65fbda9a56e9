#!/bin/sh
# Runs Airflow in the environment that `make airflow` makes, its web page on loopback, with everything that it writes
# below AIRFLOW_HOME (out/airflow unless given); AIRFLOW_PORT is the page's.      usage: setup/airflow.sh COMMAND...
# The two ports after it are Airflow's log servers, on loopback too, which show logs only to who has a key of this
# AIRFLOW_HOME.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
port=${AIRFLOW_PORT:-8080}
if [ ! -x "$root/.venv-airflow/bin/airflow" ]; then
    echo "there is no Airflow in $root/.venv-airflow: run make airflow" >&2
    exit 1
fi
export AIRFLOW_HOME="${AIRFLOW_HOME:-$root/out/airflow}"
export AIRFLOW__CORE__EXECUTOR=warm_executor.WarmExecutor # a task starts without importing Airflow anew
export AIRFLOW__CORE__DAGS_FOLDER="$root/airflow_dags"
export AIRFLOW__CORE__LOAD_EXAMPLES=False
export AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_ALL_ADMINS=True # the page listens on loopback alone
export AIRFLOW__CORE__EXECUTION_API_SERVER_URL="http://127.0.0.1:$port/execution/"
export AIRFLOW__API__HOST=127.0.0.1 AIRFLOW__API__PORT="$port" AIRFLOW__API__WORKERS=1
export AIRFLOW__API__BASE_URL="http://127.0.0.1:$port"
export AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT=$((port + 1)) AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT=$((port + 2))
export AIRFLOW__SCHEDULER__ENABLE_TRACEMALLOC=False
export AIRFLOW__USAGE_DATA_COLLECTION__ENABLED=False
export PATH="$root/.venv-airflow/bin:$PATH"
export PYTHONPATH="$root:$root/setup/airflow_settings${PYTHONPATH:+:$PYTHONPATH}" # the second: log servers on loopback, the executor
[ "${1:-} ${2:-}" != "dags test" ] || export SLUICE_DEADLINES=no # see airflow_dags/lateness.py
exec airflow "$@"
