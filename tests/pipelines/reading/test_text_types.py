from __future__ import annotations

from datetime import UTC, date, datetime
from math import inf, isnan
from typing import Any

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import types as T

from contracts.errors import SchemaError
from pipelines.reading.text_files import CORRUPT
from pipelines.reading.text_types import typed


def values(spark: SparkSession, kind: str, *texts: str | None, **options: str) -> list[tuple[Any, str | None]]:
    rows = [(str(n), text, None) for n, text in enumerate(texts)]
    frame = spark.createDataFrame(rows, f"n string, x string, {CORRUPT} string")
    schema = T.StructType.fromDDL(f"n string, x {kind}")
    assert isinstance(schema, T.StructType)
    found = typed(frame, schema, options, "log").collect()
    return [(row["x"], row[CORRUPT]) for row in sorted(found, key=lambda row: int(row["n"]))]


def test_whole_numbers_have_a_sign_and_digits_alone(spark: SparkSession) -> None:
    found = values(spark, "int", "7", "-7", "+7", " 7", "7.0", "x", "", None, "3000000000")
    assert [value for value, _ in found] == [7, -7, 7, None, None, None, None, None, None]
    assert [corrupt for _, corrupt in found] == [None, None, None, "3, 7", "4,7.0", "5,x", None, None, "8,3000000000"]


def test_numbers_as_java_reads_them(spark: SparkSession) -> None:
    texts = ("1e3", ".5", "5.", "-2d", "Infinity", "-Inf", "NaN", "1,5", "0x1")
    found = [value for value, _ in values(spark, "double", *texts)]
    assert found[:6] == [1000.0, 0.5, 5.0, -2.0, inf, -inf]
    assert isnan(found[6])
    assert found[7:] == [None, None]


def test_booleans_and_times(spark: SparkSession) -> None:
    assert [value for value, _ in values(spark, "boolean", "true", "FALSE", "1")] == [True, False, None]
    assert values(spark, "date", "2026-02-28", "2026-02-30") == [(date(2026, 2, 28), None), (None, "1,2026-02-30")]
    (when, _), (never, text) = values(spark, "timestamp", "2026-01-05 01:02:03.5", "never")
    assert when.replace(tzinfo=UTC) == datetime(2026, 1, 5, 1, 2, 3, 500_000, UTC)
    assert (never, text) == (None, "1,never")


def test_blanks_and_the_word_for_null(spark: SparkSession) -> None:
    trimmed = {"ignoreleadingwhitespace": "true", "ignoretrailingwhitespace": "true", "nullvalue": "?"}
    assert [value for value, _ in values(spark, "string", " a ", " ? ", "  ", **trimmed)] == ["a", None, None]
    assert [value for value, _ in values(spark, "string", " a ", "?")] == [" a ", "?"]


def test_a_table_may_have_hundreds_of_numbers(spark: SparkSession) -> None:
    names = [f"x{number}" for number in range(300)]
    frame = spark.createDataFrame([(*["1.5"] * 300, None), (*["1.5"] * 299, "one", None)],
                                  ", ".join(f"{name} string" for name in [*names, CORRUPT]))
    schema = T.StructType([T.StructField(name, T.DoubleType()) for name in names])
    found = typed(frame, schema, {}, "log").select("x299", CORRUPT).collect()
    assert sorted((row["x299"], row[CORRUPT]) for row in found if row[CORRUPT] is None) == [(1.5, None)]
    assert [row[CORRUPT][-7:] for row in found if row[CORRUPT]] == ["1.5,one"]


def test_a_type_that_no_field_can_hold_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="column 'x' is array<int>, which no CSV file can hold"):
        values(spark, "array<int>", "1")
