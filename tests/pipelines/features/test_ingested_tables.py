from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from pipelines.features.ingested_tables import Tables, first_day, read_tables
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
def out(tmp_path_factory: pytest.TempPathFactory) -> Artifacts:
    rows = [event(2 * day + n, 24 * day + 1 + n, user="u" if day else "stranger", clicked=24 * day + 3 if n else None)
            for day in range(10) for n in range(2)]
    return write_ingested(Artifacts(tmp_path_factory.mktemp("out")), rows, users=[{"_user": "u", "city": "rome"}])


@pytest.fixture(scope="module")
def tables(spark: SparkSession, out: Artifacts) -> Tables:
    return read_tables(spark, config(), out)


def day(number: int) -> str:
    return (START + timedelta(days=number)).date().isoformat()


def test_only_configured_tables_are_read(tables: Tables) -> None:
    assert tables.items is None
    assert tables.users is not None
    columns = tables.impressions([], 3600).columns
    assert "_bid" in columns
    assert "_request" not in columns


def test_impressions_bring_the_tables_columns_and_null_for_a_key_that_it_does_not_know(tables: Tables) -> None:
    columns = tables.columns(config())
    located = columns.of_field(config().fields[0])
    found = {row["_row"]: row for row in tables.impressions([located], 3600).collect()}
    cities = {number: row["_users_city"] for number, row in found.items()}
    assert cities == {0: None, 1: None} | dict.fromkeys(range(2, 20), "rome")
    assert {row["_close"] - row["_at"] for row in found.values()} == {3_600_000_000}


def test_a_days_features_see_no_later_event_and_of_those_older_than_every_window_the_clicks_of_its_users(
    spark: SparkSession, out: Artifacts
) -> None:
    """The first day is of a user who never came back."""
    counter = {"name": "seen", "kind": "counter", "side": "user", "by": ["uid"], "windows": ["2d"]}
    assert first_day(day(7), config(counter)) == day(4)  # two days, and one to the publish

    def seen(*fields: dict[str, Any]) -> dict[str, int]:
        rows = read_tables(spark, config(*fields), out, [day(7)]).events.groupBy("day").count().collect()
        return {row["day"]: row["count"] for row in rows}

    assert seen(counter) == {day(n): 2 for n in range(4, 8)}
    assert seen(counter, *SEQUENCE) == {day(n): 1 if n < 4 else 2 for n in range(1, 8)}


def test_no_file_of_another_day_is_opened(spark: SparkSession, tmp_path: Path) -> None:
    rows = [event(n, 24 * n + 1) for n in range(10)]
    log = write_ingested(Artifacts(tmp_path), rows, users=[{"_user": "u", "city": "rome"}])
    counter = {"name": "seen", "kind": "counter", "side": "user", "by": ["uid"], "windows": ["2d"]}
    for number in (0, 1, 2, 3, 8, 9):
        (log.events / f"day={day(number)}" / "part.parquet").write_bytes(b"no Parquet")
    assert read_tables(spark, config(counter), log, [day(7)]).events.count() == 4
    with pytest.raises(Exception, match=r"(?i)parquet"):
        read_tables(spark, config(counter), log).events.count()
