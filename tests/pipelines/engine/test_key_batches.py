from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.types import LongType, StringType, StructField, StructType

from pipelines.engine.key_batches import key_numbers, per_key

SCHEMA = StructType([StructField("key", StringType()), StructField("rows", LongType())])


def sizes(table: pa.Table, group: np.ndarray) -> pa.Table:
    """Each key and its number of rows in this call."""
    _, first, counts = np.unique(group, return_index=True, return_counts=True)
    return pa.table({"key": table.column("key").take(first), "rows": pa.array(counts)})


def test_all_rows_of_a_key_come_in_one_call(spark: SparkSession) -> None:
    keys = [f"k{n % 37}" for n in range(1000)]
    parts = [spark.createDataFrame([(key,) for key in keys[start::3]], "key string") for start in range(3)]
    found = per_key(parts[0].union(parts[1]).union(parts[2]), ["key"], sizes, SCHEMA).collect()
    assert {row["key"]: row["rows"] for row in found} == {key: keys.count(key) for key in keys}
    assert len(found) == 37


def test_keys_of_several_columns_are_told_apart() -> None:
    table = pa.table({"a": ["x", "x", "y", "x"], "b": [1, 2, 1, 1]})
    first, second, third, fourth = key_numbers(table, ["a", "b"]).tolist()
    assert first == fourth
    assert len({first, second, third}) == 3
