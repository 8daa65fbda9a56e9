"""The demo's world: a configuration that holds together, and settings that DAGs know."""

from __future__ import annotations

from contracts.config.config import load
from sluice.airflow_demo import daily_config
from sluice.airflow_demo.demo_world import DAYS, FIELDS, HISTORY, sections


def test_the_configuration_rolls_over_all_days_of_the_demo(tmp_path):
    config = load(daily_config.write(tmp_path / "daily.toml", sections(6_000), FIELDS))
    assert {field.name for field in config.fields} == set(FIELDS)
    assert config.simulation is not None
    assert config.simulation.days == HISTORY + DAYS + 1
    assert config.simulation.events == 6_000 * config.simulation.days
    assert config.log.history == 7 * 86_400
