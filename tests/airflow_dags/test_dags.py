"""The rules that DAGs keep, and what the DAGs say to the platform."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest
from airflow.dag_processing.dagbag import DagBag
from airflow.sdk import DAG, task

from tests.airflow_dags.dag_rules import FOLDER, broken_rules, commands, foreign_imports

ROOT = FOLDER.parent
NAMES = {"daily_ranking", "weekly_cross_search", "federated_rounds", "backfill_features", "retention"}
ORDER = ["crosses_of_the_week", "features", "quality", "pretrain", "train", "prerank", "bundle", "verify", "register",
         "promote", "picked_up", "watch", "roll_back"]


@pytest.fixture(scope="module")
def dags() -> dict[str, DAG]:
    bag = DagBag(FOLDER)
    assert bag.import_errors == {}
    return bag.dags


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


def test_text_about_the_night_names_every_task_that_can_fail_by_itself(dags: dict[str, DAG]) -> None:
    dag = dags["daily_ranking"]
    assert [one for one in dag.task_ids if f"`{one}`" not in str(dag.doc_md)] == ["crosses_of_the_week"]


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


def test_the_daily_run_goes_one_way(dags: dict[str, DAG]) -> None:
    dag = dags["daily_ranking"]
    chain, following = [], dag.roots
    while following:
        assert len(following) == 1 or {one.task_id for one in following} == {"watch", "roll_back"}
        chain.append(min(following, key=lambda one: ORDER.index(one.task_id)))
        following = sorted(chain[-1].downstream_list, key=lambda one: ORDER.index(one.task_id))[:1]
    assert [one.task_id for one in chain] == ORDER


def test_a_refused_day_holds_up_the_days_after_it(dags: dict[str, DAG]) -> None:
    assert dags["daily_ranking"].get_task("quality").depends_on_past


def test_assets_connect_the_dags(dags: dict[str, DAG]) -> None:
    made = {asset.name: (dag.dag_id, one.task_id) for dag in dags.values() for one in dag.tasks for asset in one.outlets
            if dag.dag_id != "backfill_features"}
    assert made == {"sluice-features": ("daily_ranking", "features"), "sluice-champion": ("daily_ranking", "promote"),
                    "sluice-crosses": ("weekly_cross_search", "publish")}
    waits = {name: str(dags[name].timetable.asset_condition) for name in ("federated_rounds", "retention")}
    assert "sluice-crosses" in waits["federated_rounds"]
    assert "sluice-champion" in waits["retention"]
    read = {asset.name for one in dags["daily_ranking"].tasks for asset in one.inlets}
    assert read == {"sluice-crosses"}


def test_federated_rounds_are_mapped_over_cohorts(dags: dict[str, DAG]) -> None:
    assert dags["federated_rounds"].get_task("federate").is_mapped


def test_deadlines_come_before_the_limit_of_a_run(dags: dict[str, DAG]) -> None:
    for dag in dags.values():
        for alert in dag.deadline:
            assert timedelta() < alert.interval < dag.dagrun_timeout


def test_every_command_and_option_is_one_of_the_platform(dags: dict[str, DAG]) -> None:
    used: dict[str, set[str]] = {}
    for dag in dags.values():
        for _, words in commands(dag):
            used.setdefault(words[0], set()).update(word for word in words if word.startswith("--"))
    used |= {"rank": {"--user", "--target", "--timeout", "--json"}, "rollback": {"--only"}}
    used["watch"] |= {"--answers", "--clicks", "--bundle"}
    used["federate"] = {"--out", "--data", "--until"}
    used["features"].add("--day")
    assert set(used) >= {"features", "quality", "pretrain", "train", "prerank", "bundle", "verify", "register",
                         "promote", "crosses"}
    for command, options in used.items():
        help_ = subprocess.run([ROOT / ".venv" / "bin" / "python", "-m", "sluice.cli", command, "--help"], cwd=ROOT,
                               capture_output=True, text=True, check=True, env={"COLUMNS": "200", "PATH": ""}).stdout
        known = set(re.findall(r"--[a-z-]+", help_))
        assert options <= known, f"{command} has no {options - known}"
