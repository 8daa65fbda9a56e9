"""Once a week: which cross features pay? What is found is a field of every daily run from then on."""

from __future__ import annotations

from datetime import timedelta

from airflow.sdk import Metadata, chain, dag, task

from airflow_dags.lateness import due_within
from airflow_dags.platform_assets import CROSSES, FEATURES
from airflow_dags.rules import OTHER_CONFIG, START, TASKS
from airflow_dags.settings import CONFIG, DATA, RUNS, every, filled
from airflow_dags.sluice_command import sluice

LAST_DAY = filled("(data_interval_end - macros.timedelta(days=1)) | ds")
OUT = f"{RUNS}/crosses/{LAST_DAY}"
NIGHT = """
Searches over the log as it stood at the end of the week's last day, in a folder of its own. Daily runs take the newest
search that is not younger than their day; those that are done stay as they are.

Nothing here matters at night: without a new search the daily runs go on with the crosses of the week before.
`features` failed: see the same task of daily_ranking. `search` failed: clear it; it starts from the features again.
"""


@task(outlets=[CROSSES])
def publish(day: str) -> Metadata:
    """Tells the DAGs that wait for crosses which day they are of."""
    return Metadata(CROSSES, extra={"day": day})


@dag(
    dag_id="weekly_cross_search", schedule=every("0 0 * * 1"), start_date=START,
    catchup=False, max_active_runs=1, default_args=TASKS, doc_md=NIGHT, dagrun_timeout=timedelta(days=1),
    tags=["sluice"], deadline=due_within("weekly_cross_search", timedelta(hours=6)), params={"config": OTHER_CONFIG},
)
def weekly_cross_search() -> None:
    of_week = [CONFIG, "--out", OUT]
    features = sluice.override(task_id="features", inlets=[FEATURES], execution_timeout=timedelta(hours=6))(
        ["features", *of_week, *DATA, "--until", LAST_DAY], spark=True)
    search = sluice.override(task_id="search", execution_timeout=timedelta(hours=8))(["crosses", *of_week], spark=True)
    chain(features, search, publish(LAST_DAY))


weekly_cross_search()
