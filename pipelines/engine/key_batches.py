"""Runs a function over Arrow tables that hold all rows of their keys: what one sort and prefix sums can do.

Rows are brought together by key and handed over a partition at a time, never one call a key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.types import StructType

from pipelines.engine.arrow_batches import plain
from pipelines.engine.embedded import is_embedded

SHUFFLE_PARTITIONS, DEFAULT_PARTITIONS = "spark.sql.shuffle.partitions", 200
KeyFunction = Callable[[pa.Table, np.ndarray], pa.Table]


def per_key(
    frame: DataFrame, keys: Sequence[str], function: KeyFunction, schema: StructType, spread: bool = False
) -> DataFrame:
    """The tables that `function` returns, of this schema.

    function    (rows, int64 number of each row's key) -> table; in no order, but all rows of a key in one call
    spread      in as many parts as are configured, however small: Apache Spark puts small ones together else
    """
    names = schema.names

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        held = [batch for batch in map(plain, batches) if batch.num_rows]
        if held:
            table = pa.Table.from_batches(held).combine_chunks()
            yield from function(table, key_numbers(table, keys)).select(names).to_batches()

    parted = _spread(frame, keys) if spread else frame.repartition(*keys)
    return parted.mapInArrow(run, schema)


def _spread(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Adaptive execution leaves a number of parts that was asked for as it is."""
    if is_embedded(frame.sparkSession):
        return frame.repartition(*keys)
    return frame.repartition(int(frame.sparkSession.conf.get(SHUFFLE_PARTITIONS) or DEFAULT_PARTITIONS), *keys)


def key_numbers(table: pa.Table, keys: Sequence[str]) -> np.ndarray:
    """int64 [rows]: equal for rows of equal keys; below the number of rows."""
    numbers = np.zeros(table.num_rows, dtype=np.int64)
    for key in keys:
        values = table.column(key).combine_chunks().dictionary_encode()
        joint = numbers * len(values.dictionary) + values.indices.to_numpy().astype(np.int64)
        numbers = joint if len(keys) == 1 else np.unique(joint, return_inverse=True)[1]
    return numbers
