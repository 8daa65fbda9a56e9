"""The executor that `setup/airflow.sh` names has imported what tasks need by the time its workers are forked."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
EXECUTOR = "warm_executor.WarmExecutor"
START = """import sys
from airflow.executors.executor_loader import ExecutorLoader
from airflow.executors.local_executor import LocalExecutor
import warm_executor
LocalExecutor.start = lambda self: print("forks with", len(set(warm_executor.IMPORTED) - set(sys.modules)), "missing")
ExecutorLoader.get_default_executor().start()
"""


def test_airflow_is_run_with_this_executor() -> None:
    assert f"AIRFLOW__CORE__EXECUTOR={EXECUTOR}" in (ROOT / "setup" / "airflow.sh").read_text(encoding="utf-8")


def test_what_a_task_imports_is_there_before_workers_are_forked(tmp_path: Path) -> None:
    here = {"AIRFLOW_HOME": str(tmp_path), "AIRFLOW__CORE__EXECUTOR": EXECUTOR,
            "PYTHONPATH": f"{ROOT}:{ROOT / 'setup' / 'airflow_settings'}"}
    started = subprocess.run([sys.executable, "-c", START], env={**os.environ, **here}, capture_output=True, text=True)
    assert started.stdout.splitlines()[-1:] == ["forks with 0 missing"], started.stderr
