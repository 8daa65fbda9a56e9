"""backfill_features: its way, the days it makes, and what it tells the platform for each."""

from __future__ import annotations

from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_dags import backfill_features as module
from tests.airflow_dags.dag_rules import arrows, commands, filled_in, in_a_row
from tests.airflow_dags.fake_platform import FakePlatform


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Of the task that runs."""
    context: dict[str, Any] = {"params": {"run": "2026-01-18", "first": "2026-01-15", "last": "2026-01-17"}}
    monkeypatch.setattr(module, "get_current_context", lambda: context)
    return context


def test_days_are_made_one_at_a_time_and_then_pass_the_gate(dags: dict[str, DAG]) -> None:
    dag = dags["backfill_features"]
    assert arrows(dag) == in_a_row("days", "day_again", "quality")
    again = dag.get_task("day_again")
    assert again.is_mapped
    assert again.max_active_tis_per_dagrun == 1  # they share the run's folder


def test_all_days_between_the_first_and_the_last_are_made(context: dict[str, Any]) -> None:
    assert module.days.function() == ["2026-01-15", "2026-01-16", "2026-01-17"]
    context["params"]["last"] = "2026-01-15"
    assert module.days.function() == ["2026-01-15"]


def test_days_in_the_wrong_order_fail_at_once(context: dict[str, Any]) -> None:
    context["params"]["last"] = "2026-01-14"
    with pytest.raises(AirflowFailException, match="2026-01-14, is before the first, 2026-01-15"):
        module.days.function()


def test_a_day_is_made_as_of_the_runs_last_day(context: dict[str, Any], platform: FakePlatform) -> None:
    module.day_again.function("2026-01-16", "shop.toml", "/runs/2026-01-18", ["--data", "/data"], "2026-01-18")
    assert platform.calls == [["features", "shop.toml", "--out", "/runs/2026-01-18", "--data", "/data",
                               "--day", "2026-01-16", "--until", "2026-01-18"]]
    assert context["day"] == "2026-01-16"  # names the mapped task


def test_the_folder_is_that_of_the_mended_run(dags: dict[str, DAG]) -> None:
    dag = dags["backfill_features"]
    assert [task for task, _ in commands(dag)] == ["quality"]
    out = filled_in(dag, module.OUT, {"sluice_runs": "/runs"}, params={"run": "2026-01-18"})
    assert out == "/runs/2026-01-18"
