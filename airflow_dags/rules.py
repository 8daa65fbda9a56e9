"""What every DAG has: an owner, retries that wait longer each time, a time limit per task."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.sdk import Param

START = datetime(2026, 1, 1, tzinfo=UTC)
TASKS: dict[str, object] = {
    "owner": "ranking",
    "retries": 2,
    "retry_delay": timedelta(minutes=2),
    "retry_exponential_backoff": 2.0,
    "max_retry_delay": timedelta(minutes=20),
    "execution_timeout": timedelta(hours=1),
}
OTHER_CONFIG = Param(None, type=["null", "string"], description="a TOML file instead of the Variable sluice_config's")
