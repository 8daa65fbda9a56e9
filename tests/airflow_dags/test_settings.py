"""Variables and their defaults as tasks see them, and the schedule."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from airflow.sdk import DAG

from airflow_dags.settings import CONFIG, DATA, DEFAULTS, OUT, ROOT, every, filled, variable
from tests.airflow_dags.dag_rules import filled_in

DAY = datetime(2026, 1, 18, tzinfo=UTC)


@pytest.mark.parametrize("name", sorted(DEFAULTS))
def test_a_variable_is_its_value_or_its_default(dags: dict[str, DAG], name: str) -> None:
    dag, template = dags["daily_ranking"], filled(variable(name))
    assert filled_in(dag, template, {}) == DEFAULTS[name]
    assert filled_in(dag, template, {name: "another's"}) == "another's"


def test_defaults_lie_in_the_checkout() -> None:
    assert (ROOT / "airflow_dags" / "settings.py").exists()
    assert DEFAULTS["sluice"] == str(ROOT / ".venv" / "bin" / "sluice")


def test_a_runs_own_configuration_goes_before_the_variable(dags: dict[str, DAG]) -> None:
    dag, variables = dags["daily_ranking"], {"sluice_config": "/shop.toml", "sluice_data": "/data"}
    assert filled_in(dag, CONFIG, variables, params={"config": None}) == "/shop.toml"
    assert filled_in(dag, CONFIG, variables, params={"config": "/other.toml"}) == "/other.toml"
    assert [filled_in(dag, word, variables) for word in DATA] == ["--data", "/data"]


def test_every_day_has_a_folder_of_its_own(dags: dict[str, DAG]) -> None:
    out = filled_in(dags["daily_ranking"], OUT, {"sluice_runs": "/runs"}, data_interval_start=DAY)
    assert out == "/runs/2026-01-18"


def test_runs_are_scheduled_unless_the_environment_leaves_them_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SLUICE_SCHEDULED", raising=False)
    daily = every("0 0 * * *")
    assert daily is not None
    assert daily.expression == "0 0 * * *"
    monkeypatch.setenv("SLUICE_SCHEDULED", "no")
    assert every("0 0 * * *") is None
