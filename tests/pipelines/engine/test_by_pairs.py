from __future__ import annotations

from operator import add

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.engine.by_pairs import by_pairs


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_as_many_columns_as_there_are_become_one(spark: SparkSession, count: int) -> None:
    frame = spark.range(1).select(by_pairs(add, [F.lit(number) + F.col("id") for number in range(count)]).alias("all"))
    assert [row["all"] for row in frame.collect()] == [count * (count - 1) // 2]
