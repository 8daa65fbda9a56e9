from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from pipelines.features.ingested_tables import Tables, read_tables
from tests.pipelines.ingested_log import START, event, write_ingested

CATEGORICAL: dict[str, Any] = {"name": "city", "kind": "categorical", "side": "user"}
SEQUENCE: list[dict[str, Any]] = [
    {"name": "item", "kind": "categorical", "side": "item", "column": "iid"},
    {"name": "recent", "kind": "sequence", "side": "user", "of": "item"},
]


def config(*fields: dict[str, Any]) -> Config:
    return Config.model_validate({
        "name": "t", "log": {"path": "p", "user_id": "uid", "item_id": "iid", "event_time": "time"},
        "label": {"expression": "y"}, "users": {"path": "users", "key": "uid"}, "fields": [CATEGORICAL, *fields],
    })


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Tables:
    folder: Path = tmp_path_factory.mktemp("out")
    rows = [event(day, 24 * day + 1, user="u" if day else "stranger") for day in range(10)]
    return read_tables(spark, config(), write_ingested(Artifacts(folder), rows, users=[{"_user": "u", "city": "rome"}]))


def days(tables: Tables) -> list[str]:
    return sorted({row["day"] for row in tables.events.collect()})


def test_only_configured_tables_are_read(tables: Tables) -> None:
    assert tables.items is None
    assert tables.users is not None
    assert "_bid" in tables.reserved
    assert "_request" not in tables.reserved


def test_impressions_bring_the_tables_columns_and_null_for_a_key_that_it_does_not_know(tables: Tables) -> None:
    columns = tables.columns(config())
    located = columns.of_field(config().fields[0])
    found = {row["_row"]: row for row in tables.impressions([located], 3600).collect()}
    cities = {number: row["_users_city"] for number, row in found.items()}
    assert cities == {0: None} | dict.fromkeys(range(1, 10), "rome")
    assert {row["_close"] - row["_at"] for row in found.values()} == {3_600_000_000}


def test_a_days_features_see_no_later_event_and_none_older_than_every_window(tables: Tables) -> None:
    wanted = (START + timedelta(days=7)).date().isoformat()
    counter = {"name": "seen", "kind": "counter", "side": "user", "by": ["uid"], "windows": ["2d"]}
    assert days(tables.seen_from([wanted], config(counter)))[0] == (START + timedelta(days=4)).date().isoformat()
    assert days(tables.seen_from([wanted], config(*SEQUENCE)))[0] == START.date().isoformat()
    for fields in ([counter], SEQUENCE):
        assert days(tables.seen_from([wanted], config(*fields)))[-1] == wanted
