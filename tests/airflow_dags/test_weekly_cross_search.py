"""weekly_cross_search: its way, the week it searches, and that daily runs find what it found."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG

from airflow_dags.platform_assets import CROSSES
from airflow_dags.run_folders import CROSSES as FILE
from airflow_dags.run_folders import newest_crosses
from airflow_dags.weekly_cross_search import LAST_DAY, OUT, publish
from tests.airflow_dags.dag_rules import arrows, commands, filled_in, in_a_row


class Macros:
    timedelta = timedelta


def test_a_week_goes_one_way_from_features_to_the_asset(dags: dict[str, DAG]) -> None:
    dag = dags["weekly_cross_search"]
    assert arrows(dag) == in_a_row("features", "search", "publish")
    assert [words[0] for _, words in commands(dag)] == ["features", "crosses"]


def test_daily_runs_find_the_search_of_the_weeks_last_day(dags: dict[str, DAG], tmp_path: Path) -> None:
    """A week that ends as Monday begins ends with Sunday."""
    dag, monday = dags["weekly_cross_search"], datetime(2026, 1, 19, tzinfo=UTC)
    filled = [filled_in(dag, text, {"sluice_runs": str(tmp_path)}, data_interval_end=monday, macros=Macros)
              for text in (LAST_DAY, OUT)]
    assert filled[0] == "2026-01-18"
    found = Path(filled[1]) / FILE
    found.parent.mkdir(parents=True)
    found.touch()
    assert newest_crosses(tmp_path, "2026-01-18") == found
    assert newest_crosses(tmp_path, "2026-01-17") is None


def test_who_waits_for_crosses_is_told_their_day() -> None:
    told = publish.function("2026-01-18")
    assert (told.asset, told.extra) == (CROSSES, {"day": "2026-01-18"})
