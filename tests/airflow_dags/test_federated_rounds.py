"""federated_rounds: which cohorts run, over which day, and what each is told."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from airflow.sdk import DAG
from airflow.sdk.exceptions import AirflowFailException

from airflow_dags import federated_rounds as module
from airflow_dags.platform_assets import CROSSES
from tests.airflow_dags.dag_rules import arrows, in_a_row
from tests.airflow_dags.fake_platform import FakePlatform


@pytest.fixture
def context(monkeypatch: pytest.MonkeyPatch, platform: FakePlatform) -> dict[str, Any]:
    """Of the task that runs, after a search of 2026-01-18."""
    events = {CROSSES: [SimpleNamespace(extra={"day": "2026-01-11"}), SimpleNamespace(extra={"day": "2026-01-18"})]}
    context: dict[str, Any] = {"params": {"day": None, "cohorts": []}, "triggering_asset_events": events}
    monkeypatch.setattr(module, "get_current_context", lambda: context)
    platform.variables(sluice_config="/shop.toml", sluice_data="/data", sluice_runs="/runs", sluice_cohorts="[]")
    return context


def test_cohorts_are_mapped_over_one_task(dags: dict[str, DAG]) -> None:
    dag = dags["federated_rounds"]
    assert arrows(dag) == in_a_row("cohorts", "federate")
    assert dag.get_task("federate").is_mapped


def test_without_a_list_there_is_one_cohort_the_configured_one(context: dict[str, Any]) -> None:
    assert module.cohorts.function() == [{"config": "/shop.toml", "day": "2026-01-18"}]


def test_the_variable_names_cohorts_and_the_parameter_goes_before_it(
    context: dict[str, Any], platform: FakePlatform
) -> None:
    platform.variables(sluice_cohorts='["/a.toml", "/b.toml"]')
    assert [cohort["config"] for cohort in module.cohorts.function()] == ["/a.toml", "/b.toml"]
    context["params"]["cohorts"] = ["/c.toml"]
    assert [cohort["config"] for cohort in module.cohorts.function()] == ["/c.toml"]


def test_two_cohorts_of_one_name_fail_at_once(context: dict[str, Any]) -> None:
    context["params"]["cohorts"] = ["/a/shop.toml", "/b/shop.toml"]
    with pytest.raises(AirflowFailException, match="would write to one folder"):
        module.cohorts.function()


def test_the_day_is_the_parameters_else_the_newest_searchs(context: dict[str, Any]) -> None:
    assert module.day_of(context) == "2026-01-18"
    context["params"]["day"] = "2026-02-01"
    assert module.day_of(context) == "2026-02-01"


@pytest.mark.parametrize("events", [None, {}, {CROSSES: [SimpleNamespace(extra={})]}])
def test_a_run_that_no_search_started_needs_a_day(context: dict[str, Any], events: Any) -> None:
    context["triggering_asset_events"] = events
    with pytest.raises(AirflowFailException, match="give it the parameter `day`"):
        module.day_of(context)


def test_a_cohort_writes_to_a_folder_of_its_own(context: dict[str, Any], platform: FakePlatform) -> None:
    module.federate.function("/cohorts/north.toml", "2026-01-18")
    assert platform.calls == [["federate", "/cohorts/north.toml", "--out", "/runs/federated/2026-01-18/north",
                               "--data", "/data", "--until", "2026-01-18", "--memory",
                               "/runs/federated/memory/north"]]
    assert context["cohort"] == "north"  # names the mapped task
