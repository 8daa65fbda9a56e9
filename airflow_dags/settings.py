"""What the DAGs are set by: Airflow Variables, with defaults for the checkout, as templates that tasks fill in.

    sluice_config         the run's TOML file, needed; a run's parameter `config` takes its place
    sluice_data           the folder that {data} stands for in it, needed
    sluice                the platform's command, in its own environment
    sluice_runs           where every day's outputs are kept, one folder a day
    sluice_registry       MLflow's address
    sluice_serving        HOST:PORT of the server that follows the alias champion; empty: nothing is served
    sluice_answers        its response log
    sluice_clicks         the table of clicks that the watch reads; empty: the configured one
    sluice_spark_master   where Spark steps are submitted to; empty: as the configuration says

The environment's SLUICE_SCHEDULED=no leaves every run to whoever triggers it, with its data interval.
"""

from __future__ import annotations

import os
from pathlib import Path

from airflow.sdk import CronDataIntervalTimetable

ROOT = Path(__file__).resolve().parents[1]
DEFAULTS = {
    "sluice": str(ROOT / ".venv" / "bin" / "sluice"),
    "sluice_runs": str(ROOT / "out" / "airflow" / "runs"),
    "sluice_registry": f"sqlite:///{ROOT}/out/airflow/registry.db",
    "sluice_serving": "",
    "sluice_answers": str(ROOT / "out" / "airflow" / "answers"),
    "sluice_clicks": "",
    "sluice_spark_master": "",
}


def variable(name: str) -> str:
    """A template for the Variable's value, which is looked up when a task runs and not when a file is read."""
    return f"var.value.get({name!r}, {DEFAULTS[name]!r})"


def every(cron: str) -> CronDataIntervalTimetable | None:
    """Runs after each interval of a cron expression, UTC."""
    return CronDataIntervalTimetable(cron, timezone="UTC") if os.environ.get("SLUICE_SCHEDULED") != "no" else None


def filled(expression: str) -> str:
    """The expression as a template that Airflow fills in when a task runs."""
    return "{{ " + expression + " }}"


CONFIG = filled("params.config or var.value.sluice_config")
DATA = ["--data", filled("var.value.sluice_data")]
RUNS = filled(variable("sluice_runs"))
DAY = filled("data_interval_start | ds")
OUT = f"{RUNS}/{DAY}"
