from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.engine.content_hash import content_hash

ROWS = [(1, "a", [1, 2]), (2, None, [3]), (2, None, [3])]
DDL = "x int, y string, z array<int>"


def hashed(spark: SparkSession, rows: list[Any], ddl: str = DDL) -> str:
    return content_hash(spark.createDataFrame(rows, ddl))


def test_order_of_rows_columns_and_files_does_not_matter(spark: SparkSession) -> None:
    frame = spark.createDataFrame(ROWS[::-1], DDL).repartition(3).select("z", "x", "y")
    assert content_hash(frame) == hashed(spark, ROWS)


@pytest.mark.parametrize(
    "rows",
    [
        ROWS[:2],
        [*ROWS, ROWS[0]],
        [(1, "a", [2, 1]), *ROWS[1:]],
        [(1, "b", [1, 2]), *ROWS[1:]],
        [(1, None, [1, 2]), (2, "a", [3]), ROWS[2]],
        [(1, "a", [1, None, 2]), *ROWS[1:]],
    ],
)
def test_any_other_content_differs(spark: SparkSession, rows: list[Any]) -> None:
    assert hashed(spark, rows) != hashed(spark, ROWS)


def test_nulls_keep_their_place(spark: SparkSession) -> None:
    assert hashed(spark, [(1, None)], "x int, y int") != hashed(spark, [(None, 1)], "x int, y int")


def test_the_schema_counts(spark: SparkSession) -> None:
    frame = spark.range(2)
    assert content_hash(frame) != content_hash(frame.withColumn("id", F.col("id").cast("int")))
    assert content_hash(spark.range(0)) == content_hash(spark.range(0))
