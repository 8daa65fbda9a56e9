"""Makes days of one run's features again: after late data, a repaired delivery, or a mended feature."""

from __future__ import annotations

from datetime import date, timedelta

from airflow.sdk import Param, chain, dag, get_current_context, task
from airflow.sdk.exceptions import AirflowFailException

from airflow_dags.lateness import due_within
from airflow_dags.platform_assets import FEATURES
from airflow_dags.rules import OTHER_CONFIG, START, TASKS
from airflow_dags.settings import CONFIG, DATA, RUNS
from airflow_dags.sluice_command import run, sluice

OUT = f"{RUNS}/{{{{ params.run }}}}"
NIGHT = """
Started by hand, with `run` (the day whose folder below RUNS is mended), `first` and `last`: those days are ingested,
labelled and encoded again with the run's fitted encoding and as of the end of its day, one after the other, each
replaced as a whole; no other day changes. Then the run's last day passes the quality gate again. To have the repaired
days trained on, clear `pretrain` of that day in daily_ranking, with what follows it.

Nothing here matters at night. A failed day: read the last line of its log, repair, clear that mapped task alone.
`quality` refused (exit code 3): the repair was none.
"""


@task
def days() -> list[str]:
    """From the parameter `first` to `last`, as in 2026-01-18."""
    params = get_current_context()["params"]
    first, last = date.fromisoformat(params["first"]), date.fromisoformat(params["last"])
    if last < first:
        raise AirflowFailException(f"the last day, {last}, is before the first, {first}")
    return [str(first + timedelta(days=number)) for number in range((last - first).days + 1)]


@task(max_active_tis_per_dagrun=1, execution_timeout=timedelta(hours=2), map_index_template="{{ day }}")
def day_again(day: str, config: str, out: str, data: list[str], until: str) -> None:
    """One at a time: they share the run's folder."""
    get_current_context()["day"] = day  # type: ignore[typeddict-unknown-key]
    run(["features", config, "--out", out, *data, "--day", day, "--until", until], spark=True)


@dag(
    dag_id="backfill_features", schedule=None, start_date=START, catchup=False, max_active_runs=1, default_args=TASKS,
    doc_md=NIGHT, dagrun_timeout=timedelta(days=2), tags=["sluice"],
    deadline=due_within("backfill_features", timedelta(hours=12)),
    params={
        "config": OTHER_CONFIG,
        "run": Param("2026-01-18", type="string", format="date", description="the day whose run is mended"),
        "first": Param("2026-01-18", type="string", format="date"),
        "last": Param("2026-01-18", type="string", format="date"),
    },
)
def backfill_features() -> None:
    mended = day_again.partial(config=CONFIG, out=OUT, data=DATA, until="{{ params.run }}").expand(day=days())
    quality = sluice.override(task_id="quality", outlets=[FEATURES])(["quality", CONFIG, "--out", OUT], spark=True)
    chain(mended, quality)


backfill_features()
