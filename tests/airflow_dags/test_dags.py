"""The rules that every DAG keeps, and that each of them can be broken."""

from __future__ import annotations

import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.sdk import DAG, task

from airflow_dags.lateness import due_within
from tests.airflow_dags.dag_rules import FOLDER, broken_rules, foreign_imports

ROOT = FOLDER.parent
NAMES = {"daily_ranking", "weekly_cross_search", "federated_rounds", "backfill_features", "retention"}
def test_the_folder_holds_the_dags(dags: dict[str, DAG]) -> None:
    assert set(dags) == NAMES


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_dag_keeps_the_rules(dags: dict[str, DAG], name: str) -> None:
    assert broken_rules(dags[name]) == []


def nothing() -> None:
    """A task."""


def test_a_dag_without_anything_breaks_every_rule() -> None:
    with DAG("bare", schedule=None, catchup=True, max_active_runs=2) as bare:
        task(retries=0)(nothing)()
    assert len(broken_rules(bare)) == 8


@pytest.mark.parametrize("longer", [timedelta(hours=3), timedelta(0)])
def test_a_deadline_that_never_comes_in_time_breaks_a_rule(longer: timedelta) -> None:
    rule = "late: a deadline that is no time, or comes after the limit of a run"
    with DAG("late", schedule=None, dagrun_timeout=timedelta(hours=2), deadline=due_within("late", longer)) as late:
        task(nothing)()
    assert rule in broken_rules(late)
    with DAG("late", schedule=None, dagrun_timeout=timedelta(hours=4), deadline=due_within("late", longer)) as late:
        task(nothing)()
    assert (rule in broken_rules(late)) == (longer == timedelta(0))


def test_text_about_the_night_names_every_task_that_can_fail_by_itself(dags: dict[str, DAG]) -> None:
    dag = dags["daily_ranking"]
    assert [name for name in dag.task_ids if f"`{name}`" not in str(dag.doc_md)] == ["crosses_of_the_week"]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_a_file_imports_airflow_and_the_standard_library_alone(path: Path) -> None:
    assert foreign_imports(path.read_text(encoding="utf-8")) == set()


@pytest.mark.parametrize("source", ["import torch", "from models.networks.dnn import Dnn",
                                    "from airflow.models import DagRun"])
def test_a_foreign_import_is_found(source: str) -> None:
    assert foreign_imports(source)


def test_reading_the_files_loads_no_heavy_library() -> None:
    names = ", ".join(f"airflow_dags.{name}" for name in sorted(NAMES))
    heavy = {"torch", "pyspark", "faiss", "mlflow", "numpy", "pandas", "pyarrow"}
    code = f"import sys, {names}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"
