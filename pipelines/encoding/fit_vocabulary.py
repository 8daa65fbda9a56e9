"""Which keys a field knows: those of at least `min_count` training rows, ordered as contracts/features/vocabulary.py.

A vocabulary is the one thing of its size that comes to the driver.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.config.section import KeyType
from contracts.errors import DataError
from contracts.features.vocabulary import fit_order
from pipelines.engine.key_lookup import key_column


def fit_scalar(train: DataFrame, column: str, key_type: KeyType, min_count: int) -> np.ndarray:
    """Vocabulary of a column with one key a row; nulls are no key."""
    return _frequent(train.select(key_column(F.col(column), key_type).alias("key")), column, key_type, min_count)


def fit_lists(train: DataFrame, column: str, key_type: KeyType, min_count: int, length: int) -> np.ndarray:
    """Vocabulary of a list column: a row counts once for each distinct key among its first `length`."""
    keys = F.explode(F.array_distinct(F.slice(F.col(column), 1, length)))
    exploded = train.select(keys.alias("key"))
    return _frequent(exploded.select(key_column(F.col("key"), key_type).alias("key")), column, key_type, min_count)


def _frequent(keys: DataFrame, column: str, key_type: KeyType, min_count: int) -> np.ndarray:
    """Raises DataError on a string key with a NUL character, which fixed-width storage cannot hold."""
    counted = keys.where(F.col("key").isNotNull()).groupBy("key").count().where(F.col("count") >= min_count)
    found: pa.Table = counted.select("key").toArrow()
    if key_type != "string":
        return fit_order(found.column("key").to_numpy().astype(np.int64))
    texts = found.column("key").to_pylist()
    wrong = next((text for text in texts if "\0" in text), None)
    if wrong is not None:
        raise DataError(f"column {column!r} holds the key {wrong!r} with a NUL character; clean the column first")
    return fit_order(np.array([text.encode() for text in texts], dtype=np.bytes_))
