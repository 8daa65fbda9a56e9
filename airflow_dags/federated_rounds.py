"""After each cross search: secure federated rounds, one mapped task for each cohort of clients."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

from airflow.sdk import Context, Param, Variable, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException

from airflow_dags.lateness import due_within
from airflow_dags.platform_assets import CROSSES
from airflow_dags.rules import START, TASKS
from airflow_dags.sluice_command import run, setting

NIGHT = """
A cohort is a configuration file of its own: its log, its clients, its settings. The Variable `sluice_cohorts` is a JSON
list of such files; without it there is one cohort, that of `sluice_config`. Each writes a bundle to
`RUNS/federated/DAY/NAME`, which nobody serves until somebody registers and promotes it. What a client has answered and
spent stays in `RUNS/federated/memory/NAME` from day to day, and is never to be removed.

Nothing here matters at night. `federate` failed for one cohort: the others are not touched; a round that lost too many
clients changed nothing, so clear the mapped task. Exit code 2 is the cohort's file: ask its owner.
"""


@task
def cohorts() -> list[dict[str, str]]:
    """The run's parameter, the Variable, or the one configuration there is."""
    context = get_current_context()
    given: list[str] = context["params"]["cohorts"] or json.loads(Variable.get("sluice_cohorts", default="[]"))
    day, files = day_of(context), given or [Variable.get("sluice_config")]
    if len({Path(file).stem for file in files}) < len(files):
        raise AirflowFailException(f"two cohorts have files of one name, and would write to one folder: {files}")
    return [{"config": file, "day": day} for file in files]


def day_of(context: Context) -> str:
    """The run's parameter, or the day of the search that this run follows."""
    events = (context.get("triggering_asset_events") or {}).get(CROSSES) or []
    day = context["params"]["day"] or (events[-1].extra.get("day") if events else None)
    if not day:
        raise AirflowFailException("no cross search started this run: give it the parameter `day`, as in 2026-01-18")
    return str(day)


@task(map_index_template="{{ cohort }}", execution_timeout=timedelta(hours=12))
def federate(config: str, day: str) -> None:
    """The rounds of one cohort, whose configuration's name is that of its folder."""
    get_current_context()["cohort"] = name = Path(config).stem  # type: ignore[typeddict-unknown-key]
    out = f"{setting('sluice_runs')}/federated/{day}/{name}"
    run(["federate", config, "--out", out, "--data", Variable.get("sluice_data"), "--until", day,
         "--memory", f"{setting('sluice_runs')}/federated/memory/{name}"], spark=True)


@dag(
    dag_id="federated_rounds", schedule=CROSSES, start_date=START, catchup=False, max_active_runs=1, default_args=TASKS,
    doc_md=NIGHT, dagrun_timeout=timedelta(days=2), tags=["sluice"],
    deadline=due_within("federated_rounds", timedelta(hours=12)),
    params={
        "day": Param(None, type=["null", "string"], description="last day of the log, YYYY-MM-DD"),
        "cohorts": Param([], type="array", description="TOML files instead of the Variable sluice_cohorts'"),
    },
)
def federated_rounds() -> None:
    federate.expand_kwargs(cohorts())


federated_rounds()
