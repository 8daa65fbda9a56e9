"""The example's configuration with other sections in places, as TOML."""

from __future__ import annotations

import tomllib
from datetime import date
from typing import Any

import pytest

from contracts.config.config import load
from sluice.airflow_demo.daily_config import merged, toml, write
from sluice.airflow_demo.demo_world import FIELDS, sections


def test_named_keys_change_and_all_others_stay(tmp_path):
    changes: dict[str, dict[str, Any]] = {
        "train": {"epochs": 9}, "label": {"clicks": {"window": "6h"}}, "pair_rates": {"pairs": []},
    }
    changed = load(write(tmp_path / "daily.toml", changes, ["device", "item_id"]))
    assert (changed.train.epochs, changed.train.batch_size, changed.label_window) == (9, 1024, 6 * 3600)
    assert changed.label.clicks is not None
    assert changed.label.clicks.on == ("request_id", "item_id")
    assert {field.name for field in changed.fields} == {"device", "item_id"}


def test_the_configuration_of_the_demo_is_one(tmp_path):
    found = load(write(tmp_path / "daily.toml", sections(6_000), FIELDS))
    assert {field.name for field in found.fields} == set(FIELDS)
    assert found.log.history == 7 * 86_400


def test_merging_goes_into_tables_and_replaces_everything_else():
    assert merged({"a": {"b": 1, "c": [1, 2]}, "d": 2}, {"a": {"c": [3]}, "e": {"f": 1}}) == {
        "a": {"b": 1, "c": [3]}, "d": 2, "e": {"f": 1}}


@pytest.mark.parametrize("value", [
    True, 1, 0.25, 'quote " and \\', [1, [2, 3]], {"a b": {"c": [{"d": "e"}]}}, date(2026, 1, 5), [],
])
def test_a_value_is_read_back_as_it_was(value):
    assert tomllib.loads(f"value = {toml(value)}")["value"] == value
