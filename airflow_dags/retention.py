"""After each new champion: folders of days that nobody needs any more are removed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from airflow.sdk import Param, dag, task

from airflow_dags.lateness import due_within
from airflow_dags.platform_assets import CHAMPION
from airflow_dags.rules import START, TASKS
from airflow_dags.run_folders import remove_old
from airflow_dags.settings import RUNS, filled, variable

NIGHT = """
Keeps the newest `keep_runs` days of RUNS, of its cross searches and federated rounds, and the newest `keep_answers`
days of the response log. It counts folders and not the calendar: where no run succeeds, nothing is removed. Bundles are
copied into the registry when they are registered, so that a roll-back never needs a removed folder.

Nothing here matters at night, but a disk that fills up does: then start it with smaller numbers.
"""


@task
def remove(folder: str, keep: str) -> list[str]:
    """Returns the names of the days that went."""
    return remove_old(Path(folder), int(keep))


@dag(
    dag_id="retention", schedule=CHAMPION, start_date=START, catchup=False, max_active_runs=1, default_args=TASKS,
    doc_md=NIGHT, dagrun_timeout=timedelta(hours=6), tags=["sluice"],
    deadline=due_within("retention", timedelta(hours=1)),
    params={"keep_runs": Param(14, type="integer", minimum=2), "keep_answers": Param(90, type="integer", minimum=2)},
)
def retention() -> None:
    runs = "{{ params.keep_runs }}"
    remove.override(task_id="runs")(RUNS, runs)
    remove.override(task_id="cross_searches")(f"{RUNS}/crosses", runs)
    remove.override(task_id="federated_rounds")(f"{RUNS}/federated", runs)
    remove.override(task_id="answers")(filled(variable("sluice_answers")), "{{ params.keep_answers }}")


retention()
