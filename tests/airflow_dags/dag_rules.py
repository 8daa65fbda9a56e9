"""What every DAG must hold; each broken rule is one sentence."""

from __future__ import annotations

import ast
import sys
from datetime import timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

FOLDER = Path(__file__).resolve().parents[2] / "airflow_dags"
OURS = {"airflow_dags", "airflow.sdk", "airflow.sdk.exceptions"}
TRIED_ONCE = {"verify"}  # a second look at the same files finds the same


def broken_rules(dag: Any) -> list[str]:
    """Owner, retries, limits, deadline, and a text that says what to do at night about every task."""
    text = dag.doc_md or ""
    alerts = dag.deadline or []
    sentences = [
        ("no deadline alert", not alerts),
        ("a deadline that is no time, or comes after the limit of a run", any(
            not timedelta() < alert.interval < (dag.dagrun_timeout or timedelta.max) for alert in alerts)),
        ("no limit for a run", dag.dagrun_timeout is None),
        ("runs of it may overlap", dag.max_active_runs != 1),
        ("it would catch up with all days since its start", dag.catchup),
        ("its text does not say what matters at night", "at night" not in text),
    ]
    found = [f"{dag.dag_id}: {sentence}" for sentence, broken in sentences if broken]
    for task in dag.tasks:
        rules = [
            ("nobody owns it", task.owner in ("", "airflow")),
            ("it is not tried again", task.retries < 1 and task.task_id not in TRIED_ONCE),
            ("it has no time limit", task.execution_timeout is None),
        ]
        found += [f"{dag.dag_id}.{task.task_id}: {sentence}" for sentence, broken in rules if broken]
    return found


def foreign_imports(source: str) -> set[str]:
    """What a file imports besides the standard library, Airflow's SDK and this folder."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            names.add(node.module or "")
    return {name for name in names
            if name not in OURS and name.split(".")[0] not in {"airflow_dags", *sys.stdlib_module_names}}


def commands(dag: Any) -> list[tuple[str, list[str]]]:
    """(task, words) of the tasks that are given the words of a command."""
    found = []
    for task in dag.tasks:
        words = getattr(task, "op_args", None) or ()
        if words and isinstance(words[0], list):
            found.append((task.task_id, [str(word) for word in words[0]]))
    return found


def arrows(dag: Any) -> dict[str, set[str]]:
    """Task -> the tasks that wait for it, of a DAG whose tasks are all there."""
    return {task.task_id: set(task.downstream_task_ids) for task in dag.tasks}


def in_a_row(*tasks: str) -> dict[str, set[str]]:
    """The arrows of a DAG that goes one way, from its first task to its last."""
    return {task: set(tasks[number + 1:number + 2]) for number, task in enumerate(tasks)}


def filled_in(dag: Any, text: str, variables: dict[str, str], **context: Any) -> str:
    """A template of the DAG as Airflow fills it in."""
    values = SimpleNamespace(value=_Values(variables))
    return str(dag.get_template_env().from_string(text).render(var=values, **context))


class _Values(dict[str, str]):
    def __getattr__(self, name: str) -> str:
        return self[name]
