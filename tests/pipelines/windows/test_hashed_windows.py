from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from contracts.config.config import Config
from contracts.errors import ConfigError, DataError, EmptyLogError, SchemaError, WindowError
from pipelines.windows.hashed_windows import HashedWindows, add_test_rows
from pipelines.windows.windows import WINDOW

SHARES = {"statistics": 0.0, "train": 0.5, "validation": 0.3, "test": 0.2}


def windows(seed: int = 1, **changes: Any) -> HashedWindows:
    return HashedWindows.of(Config.model_validate({
        "name": "t", "seed": seed, "log": {"path": "log"}, "label": {"expression": "y"},
        "fields": [{"name": "x", "kind": "categorical", "side": "context"}], "windows": SHARES | changes,
    }))


def rows(spark: SparkSession, count: int = 20_000) -> DataFrame:
    return spark.range(count).withColumnRenamed("id", "_row")


def where(frame: DataFrame) -> dict[int, str]:
    return {row["_row"]: row[WINDOW] for row in frame.collect()}


def test_windows_get_their_shares_whatever_the_partitions(spark: SparkSession) -> None:
    counted = windows().count(rows(spark))
    assert list(counted) == ["train", "validation", "test"]
    for name, count in counted.items():
        assert count / 20_000 == pytest.approx(SHARES[name], abs=4 * 0.5 / 20_000**0.5)
    assert where(windows().assign(rows(spark))) == where(windows().assign(rows(spark).repartition(7)))
    assert where(windows().assign(rows(spark))) != where(windows(seed=2).assign(rows(spark)))


def test_an_official_test_window_is_kept_and_the_rest_shared(spark: SparkSession) -> None:
    marked = add_test_rows(rows(spark), "_row < 1000")
    found = where(windows(test_where="_row < 1000").assign(marked))
    assert {row for row, window in found.items() if window == "test"} == set(range(1000))
    assert sum(window == "train" for window in found.values()) / 19_000 == pytest.approx(5 / 8, abs=0.02)


def test_a_null_condition_is_no_test_row(spark: SparkSession) -> None:
    marked = add_test_rows(rows(spark, 2), "CASE WHEN _row = 0 THEN null ELSE true END")
    assert {row["_row"]: row["_test"] for row in marked.collect()} == {0: False, 1: True}


@pytest.mark.parametrize(("expression", "error", "message"), [
    ("_row <", ConfigError, "is no SQL expression"),
    ("_rwo < 3", SchemaError, "windows.test_where: unknown column"),
    ("_row + 1", SchemaError, "is bigint, expected a condition"),
])
def test_a_wrong_expression_is_named(
    spark: SparkSession, expression: str, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        add_test_rows(rows(spark, 2), expression)


def test_an_empty_window_is_refused(spark: SparkSession) -> None:
    with pytest.raises(EmptyLogError, match="no events"):
        windows().count(rows(spark, 0))
    with pytest.raises(WindowError, match=r"window '\w+' got none of 1 rows: its share of those is 0\.\d; raise"):
        windows().count(rows(spark, 1))
    with pytest.raises(WindowError, match="test_where is true for none of 20000 rows"):
        windows(test_where="_row < 0").count(add_test_rows(rows(spark), "_row < 0"))


def test_written_windows_come_back(tmp_path: Path) -> None:
    path = tmp_path / "ingest" / "windows.json"
    windows(test_where="x").write(path)
    assert HashedWindows.read(path) == windows(test_where="x")
    path.write_text(json.dumps({"train": ["2026-01-05", "2026-01-06"]}))
    with pytest.raises(DataError, match="has no hashed windows"):
        HashedWindows.read(path)
