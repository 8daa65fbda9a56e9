from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import DataFrame, SparkSession

from contracts.config.log import Table
from contracts.errors import DataError, QuarantineError, SchemaError
from contracts.summaries.features import TableRows
from pipelines.ingest.key_tables import stage_table

TABLE = Table(path="users", key="id")


def raw(spark: SparkSession, rows: list[tuple[int | None, str]], kind: str = "int") -> DataFrame:
    return spark.createDataFrame([(*row, None) for row in rows], f"id {kind}, city string, _corrupt string")


def test_one_row_per_key_whatever_the_order_and_the_log_says_so(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    rows: list[tuple[int | None, str]] = [(1, "a"), (2, "b"), (1, "c"), (None, "d")]
    kept = []
    for order in (1, -1):
        staged = stage_table(raw(spark, rows[::order]), TABLE, "_user", tmp_path / "users", tmp_path / "bad", 0.5)
        assert staged.publish() == TableRows(rows_in=4, rows=2, duplicates=1, quarantined=1)
        table = spark.read.parquet(str(tmp_path / "users"))
        assert table.dtypes == [("_user", "string"), ("city", "string")]
        kept.append({tuple(row) for row in table.collect()})
    assert kept[0] == kept[1] > {("2", "b")}
    said = [line for line in caplog.messages if "rows repeat" in line]
    assert len(said) == 2
    assert said[0].startswith("users: 1 of 4 rows repeat a value of id; of each, the row with the smallest hash")


def test_a_table_with_a_row_per_key_needs_no_word(
    spark: SparkSession, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    stage_table(raw(spark, [(1, "a"), (2, "b")]), TABLE, "_user", tmp_path / "users", tmp_path / "bad", 0.5)
    assert not [line for line in caplog.messages if "repeat" in line]


def test_bad_tables_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    users, bad = tmp_path / "users", tmp_path / "bad"
    with pytest.raises(QuarantineError, match="users: 1 of 2 rows"):
        stage_table(raw(spark, [(1, "a"), (None, "b")]), TABLE, "_user", users, bad, 0.1)
    with pytest.raises(DataError, match="users: no row with a usable 'id'"):
        stage_table(raw(spark, []), TABLE, "_user", users, bad, 0.1)
    with pytest.raises(SchemaError, match=r"users.key: column 'id' is double, a key is text"):
        stage_table(raw(spark, [], "double"), TABLE, "_user", users, bad, 0.1)
