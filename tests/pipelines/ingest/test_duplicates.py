from __future__ import annotations

from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession

from pipelines.ingest.duplicates import add_row, drop_duplicates, find_repeats, number_copies

START = datetime(2026, 1, 5, tzinfo=UTC)
RAW = ["key", "x"]


def log(spark: SparkSession, order: int) -> DataFrame:
    rows = [("a", 1, 5, "d1"), ("a", 2, 3, "d1"), ("a", 3, 3, "d1"), ("b", 4, 1, "d1"), ("b", 4, 1, "d2")]
    timed = [(k, x, START + timedelta(seconds=s), day) for k, x, s, day in rows]
    return spark.createDataFrame(timed[::order], "key string, x int, _known timestamp, day string")


def _unique(rows: DataFrame, few: int) -> DataFrame:
    """`few`: events with copies that pass through the driver."""
    return drop_duplicates(rows, RAW, find_repeats(rows, few))


def test_one_copy_stays_whatever_the_order(spark: SparkSession) -> None:
    kept = [
        {
            tuple(row)
            for row in _unique(add_row(log(spark, order), ["key"], RAW), few).select("key", "x", "day").collect()
        }
        for order in (1, -1) for few in (0, 9)
    ]
    assert kept[0] == kept[1] == kept[2] == kept[3]
    assert len(kept[0]) == 3
    assert kept[0] > {("b", 4, "d1"), ("b", 4, "d2")}
    assert ("a", 1, "d1") not in kept[0]


def test_without_a_key_the_whole_row_counts(spark: SparkSession) -> None:
    rows = add_row(log(spark, 1), [], RAW)
    assert rows.select("_row").distinct().count() == 5
    assert find_repeats(rows) == (0, None)
    assert [find_repeats(rows.union(rows), few).rows for few in (0, 4, 5)] == [5, 5, 5]
    assert _unique(rows.union(rows), 5).count() == 5


def test_equal_rows_of_a_plain_table_stay_apart_whatever_the_order(spark: SparkSession) -> None:
    table = spark.createDataFrame([("a", 1), ("a", 1), ("a", 1), (None, 1), ("b", 2)], "key string, x int")
    table = table.selectExpr("*", "'all' AS day")
    ids = [
        sorted(row["_row"] for row in number_copies(frame, RAW).collect()) for frame in (table, table.repartition(3))
    ]
    assert ids[0] == ids[1]
    assert len(set(ids[0])) == 5
    assert find_repeats(number_copies(table, RAW)).rows == 0
