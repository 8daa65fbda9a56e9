"""Keys of each type from a raw feature's column to ids, one a row and in lists, by join and as a constant."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.config.section import KeyType
from contracts.features.vocabulary import Vocabulary
from pipelines.engine import key_lookup
from pipelines.engine.key_lookup import SPARK_TYPES, key_column, look_up, look_up_lists

VALUES: dict[KeyType, list[Any]] = {
    "string": ["b", None, "", "é", "never seen"], "int64": [7, None, -1, 2**40, 8], "bool": [True, None, False],
}


def vocabulary(key_type: KeyType) -> Vocabulary:
    """Of every value but the last, which stays unknown."""
    known = [value for value in VALUES[key_type][:-1] if value is not None]
    return Vocabulary.of(known, key_type)


def raw(spark: SparkSession, key_type: KeyType) -> DataFrame:
    """One value a row, and the list of all."""
    values, kind = VALUES[key_type], SPARK_TYPES[key_type]
    rows = [(number, value, values if number else None) for number, value in enumerate(values)]
    return spark.createDataFrame(rows, f"_row bigint, value {kind}, list array<{kind}>")


@pytest.mark.parametrize("key_type", list(SPARK_TYPES))
def test_a_raw_column_becomes_keys_of_the_vocabularys_type(spark: SparkSession, key_type: KeyType) -> None:
    keys = raw(spark, key_type).select(key_column(F.col("value"), key_type).alias("key"))
    assert keys.dtypes == [("key", "string" if key_type == "string" else "bigint")]
    assert [row["key"] for row in keys.collect()] == VALUES[key_type]


@pytest.mark.parametrize("key_type", list(SPARK_TYPES))
@pytest.mark.parametrize("largest_constant", [key_lookup.CONSTANT_KEYS, 0], ids=["constant", "joined"])
def test_ids_are_those_of_a_request(
    spark: SparkSession, key_type: KeyType, largest_constant: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(key_lookup, "CONSTANT_KEYS", largest_constant)
    values, known = VALUES[key_type], vocabulary(key_type)
    ids = known.look_up(values, key_type).tolist()
    frame = look_up(raw(spark, key_type), key_column(F.col("value"), key_type), known, "id")
    wide = look_up_lists(frame, "list", key_type, len(values) + 1, known, "ids")
    rows = sorted(wide.select("_row", "id", "ids").collect())
    assert [row["id"] for row in rows] == ids
    assert [row["ids"] for row in rows] == [[0] * (len(values) + 1)] + [[*ids, 0]] * (len(values) - 1)
