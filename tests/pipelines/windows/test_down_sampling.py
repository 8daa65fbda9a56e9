from __future__ import annotations

import math

from pyspark.sql import functions as F

from contracts.artifacts import LABEL, ROW
from pipelines.windows.down_sampling import kept, positives_and_some_negatives

ROWS = 20_000


def rows(spark, partitions):
    labelled = spark.range(0, ROWS, 1, partitions).withColumn(LABEL, (F.col("id") % 10 == 0).cast("float"))
    return labelled.withColumn(ROW, F.xxhash64("id"))


def ids(df):
    return {row["id"] for row in df.select("id").collect()}


def test_keeps_all_positives_and_the_asked_share_of_negatives_whatever_the_partitioning(spark):
    found = ids(rows(spark, 3).where(positives_and_some_negatives(0.3)))
    positives = {i for i in range(ROWS) if i % 10 == 0}
    negatives = ROWS - len(positives)
    assert positives <= found
    assert abs(len(found - positives) - 0.3 * negatives) < 5 * math.sqrt(negatives * 0.3 * 0.7)
    assert ids(rows(spark, 1).where(positives_and_some_negatives(0.3))) == found


def test_salts_choose_independently_and_smaller_shares_lie_in_larger_ones(spark):
    df = rows(spark, 2)
    small, large, other = ids(df.where(kept(0.2, "a"))), ids(df.where(kept(0.5, "a"))), ids(df.where(kept(0.5, "b")))
    assert small < large
    assert abs(len(large & other) - 0.25 * ROWS) < 5 * math.sqrt(ROWS * 0.25 * 0.75)
    assert len(ids(df.where(kept(1.0, "a")))) == ROWS
