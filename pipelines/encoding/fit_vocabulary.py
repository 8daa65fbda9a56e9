"""Which keys a field knows: those of at least `min_count` training rows, ordered as contracts/features/vocabulary.py.

A vocabulary is the one thing of its size that comes to the driver.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from contracts.config.section import KeyType
from contracts.features.vocabulary import Vocabulary
from pipelines.engine.key_lookup import key_column


def fit_scalar(train: DataFrame, column: str, key_type: KeyType, min_count: int) -> Vocabulary:
    """Vocabulary of a column with one key a row; nulls are no key."""
    return _frequent(train.select(key_column(F.col(column), key_type).alias("key")), key_type, min_count)


def fit_lists(train: DataFrame, column: str, key_type: KeyType, min_count: int, length: int) -> Vocabulary:
    """Vocabulary of a list column: a row counts once for each distinct key among its first `length`."""
    keys = F.explode(F.array_distinct(F.slice(F.col(column), 1, length)))
    exploded = train.select(keys.alias("key"))
    return _frequent(exploded.select(key_column(F.col("key"), key_type).alias("key")), key_type, min_count)


def _frequent(keys: DataFrame, key_type: KeyType, min_count: int) -> Vocabulary:
    counted = keys.where(F.col("key").isNotNull()).groupBy("key").count().where(F.col("count") >= min_count)
    found = counted.select("key").toArrow().column("key")
    return Vocabulary.of(found, "string" if key_type == "string" else "int64")
