"""Keys -> ids inside Spark: the rank in the sorted vocabulary plus 2, or 1 for unknown and null keys.

One key a row is looked up by a join with the broadcast vocabulary. Lists are looked up in place, without a shuffle, in
a hash table that is a constant of the query: an array of small maps, chosen by CRC-32 of the key's text. A vocabulary
too large to be a constant is joined with the exploded lists instead.
"""

from __future__ import annotations

import json
import zlib

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from pyspark.sql.pandas.types import from_arrow_schema

from contracts.artifacts import ROW
from contracts.config.section import KeyType
from contracts.features.feature_spec import FIRST_ID, PADDING, UNKNOWN

# Bounds of a vocabulary that may be a constant: number of keys, bytes of its longest key.
CONSTANT_KEYS, CONSTANT_WIDTH = 100_000, 1_000
SPARK_TYPES: dict[KeyType, str] = {"string": "string", "int64": "bigint", "bool": "boolean"}  # of a raw feature


def key_column(column: Column, key_type: KeyType) -> Column:
    """A raw feature as its vocabulary holds it: text, or int64, to which false is 0 and true 1."""
    return column.cast("int").cast("bigint") if key_type == "bool" else column.cast(SPARK_TYPES[key_type])


def look_up(df: DataFrame, key: Column, vocabulary: np.ndarray, name: str) -> DataFrame:
    """Adds the id of `key` as column `name`."""
    frame = F.broadcast(_frame(df, vocabulary, f"key:{name}", f"found:{name}"))
    joined = df.join(frame, key == F.col(f"key:{name}"), "left")
    known = joined.withColumn(name, F.coalesce(F.col(f"found:{name}"), F.lit(UNKNOWN)))
    return known.drop(f"key:{name}", f"found:{name}")


def look_up_lists(
    df: DataFrame, column: str, key_type: KeyType, length: int, vocabulary: np.ndarray, name: str,
) -> DataFrame:
    """Adds the ids of the first `length` entries as array<int>, padded right with 0; a null list is an empty one."""
    if len(vocabulary) <= CONSTANT_KEYS and vocabulary.dtype.itemsize <= CONSTANT_WIDTH:
        entries = F.slice(F.col(column), 1, length)
        return df.withColumn(name, _padded(_constant_look_up(entries, key_type, vocabulary), length))
    return _joined_lists(df, column, key_type, length, vocabulary, name)


def _constant_look_up(entries: Column, key_type: KeyType, vocabulary: np.ndarray) -> Column:
    keys = [key.decode() if isinstance(key, bytes) else str(key) for key in vocabulary.tolist()]
    maps: list[dict[str, int]] = [{} for _ in range(max(1, len(keys)))]
    for rank, key in enumerate(keys):
        maps[zlib.crc32(key.encode()) % len(maps)][key] = rank + FIRST_ID
    table = F.from_json(F.lit(json.dumps(maps)), "array<map<string,int>>")

    def id_of(entry: Column) -> Column:
        text = key_column(entry, key_type).cast("string")
        bucket = F.get(table, F.pmod(F.crc32(text), F.lit(len(maps))).cast("int"))
        return F.coalesce(F.element_at(bucket, text), F.lit(UNKNOWN))

    return F.transform(entries, id_of)


def _padded(ids: Column, length: int) -> Column:
    filled = F.concat(F.coalesce(ids, F.array().cast("array<int>")), F.array_repeat(F.lit(PADDING), length))
    return F.slice(filled, 1, length)


def _joined_lists(
    df: DataFrame, column: str, key_type: KeyType, length: int, vocabulary: np.ndarray, name: str,
) -> DataFrame:
    entries = df.select(ROW, F.posexplode(F.slice(F.col(column), 1, length)).alias("place", "entry"))
    found = look_up(entries, key_column(F.col("entry"), key_type), vocabulary, "id")
    ordered = F.array_sort(F.collect_list(F.struct("place", "id")))
    lists = found.groupBy(ROW).agg(ordered.alias("ordered")).select(ROW, F.col("ordered.id").alias(f"found:{name}"))
    return df.join(lists, ROW, "left").withColumn(name, _padded(F.col(f"found:{name}"), length)).drop(f"found:{name}")


def _frame(df: DataFrame, vocabulary: np.ndarray, key: str, name: str) -> DataFrame:
    ids = pa.array(np.arange(len(vocabulary), dtype=np.int32) + FIRST_ID, pa.int32())
    if vocabulary.dtype.kind == "S":
        keys = pa.array([text.decode() for text in vocabulary.tolist()], pa.string())
    else:
        keys = pa.array(np.asarray(vocabulary), pa.int64())
    table = pa.table({key: keys, name: ids})
    schema = from_arrow_schema(table.schema)
    return df.sparkSession.createDataFrame(table if len(table) else [], schema)
