"""retention: which folders it looks into, and that each keeps its newest days."""

from __future__ import annotations

from pathlib import Path

from airflow.sdk import DAG

from airflow_dags.retention import remove
from tests.airflow_dags.dag_rules import arrows, filled_in

VARIABLES = {"sluice_runs": "/runs", "sluice_answers": "/answers"}
PARAMS = {"keep_runs": 14, "keep_answers": 90}


def test_no_folder_waits_for_another(dags: dict[str, DAG]) -> None:
    assert arrows(dags["retention"]) == {
        task: set() for task in ("runs", "cross_searches", "federated_rounds", "answers")}


def test_each_task_keeps_as_many_days_as_its_parameter_says(dags: dict[str, DAG]) -> None:
    dag = dags["retention"]
    told = {task.task_id: tuple(filled_in(dag, text, VARIABLES, params=PARAMS) for text in task.op_args)
            for task in dag.tasks}
    assert told == {"runs": ("/runs", "14"), "cross_searches": ("/runs/crosses", "14"),
                    "federated_rounds": ("/runs/federated", "14"), "answers": ("/answers", "90")}


def test_the_oldest_days_go(tmp_path: Path) -> None:
    for day in ("2026-01-01", "2026-01-02", "2026-01-03"):
        (tmp_path / day).mkdir()
    assert remove.function(str(tmp_path), "2") == ["2026-01-01"]
    assert {path.name for path in tmp_path.iterdir()} == {"2026-01-02", "2026-01-03"}


def test_nobody_may_keep_fewer_than_two_days(dags: dict[str, DAG]) -> None:
    assert {name: dags["retention"].params.get_param(name).schema["minimum"] for name in PARAMS} == {
        "keep_runs": 2, "keep_answers": 2}
