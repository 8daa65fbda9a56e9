"""The demo's world: a configuration that holds together, and settings that DAGs know."""

from __future__ import annotations

import pytest
from rich.console import Console

from contracts.config.config import load
from sluice.airflow_demo import daily_config
from sluice.airflow_demo.demo_world import DAYS, FIELDS, HISTORY, DemoWorld, sections


def test_the_configuration_rolls_over_all_days_of_the_demo(tmp_path):
    config = load(daily_config.write(tmp_path / "daily.toml", sections(6_000), FIELDS))
    assert {field.name for field in config.fields} == set(FIELDS)
    assert config.simulation is not None
    assert config.simulation.days == HISTORY + DAYS + 1
    assert config.simulation.events == 6_000 * config.simulation.days
    assert config.log.history == 7 * 86_400


@pytest.mark.slow
def test_a_seed_and_changed_keys_are_in_every_configuration_of_the_world(tmp_path):
    world = DemoWorld(tmp_path, 100, Console(quiet=True), 7, {"watch": {"click_wait": "1s"}})
    worse = load(world.configured("worse.toml", {"train": {"ranker": "popularity"}}))
    for config in (world.config, worse):
        assert (config.seed, config.watch.click_wait, config.watch.min_answers) == (7, 1, 200)
    assert (world.config.train.ranker, worse.train.ranker) == ("dnn", "popularity")
    assert worse.train.epochs == world.config.train.epochs
