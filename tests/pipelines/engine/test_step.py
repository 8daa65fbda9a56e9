from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.errors import SchemaError
from pipelines.engine.step import check_columns, step


@step(needs={"id": "bigint"}, gives={"id": "bigint", "twice": "bigint"})
def doubled(frame: DataFrame, *, kind: str = "bigint", name: str = "twice") -> DataFrame:
    return frame.withColumn(name, (F.col("id") * 2).cast(kind))


def test_a_step_that_keeps_its_word_is_transparent(spark: SparkSession) -> None:
    assert [tuple(row) for row in doubled(spark.range(2)).collect()] == [(0, 0), (1, 2)]
    assert doubled.__name__ == "doubled"


def test_a_missing_input_names_step_column_and_nearest(spark: SparkSession) -> None:
    with pytest.raises(
        SchemaError, match="input of step doubled: column 'id' is missing; found idd; did you mean 'idd'"
    ):
        doubled(spark.range(1).withColumnRenamed("id", "idd"))


def test_a_wrong_input_type_names_both_types(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="input of step doubled: column 'id' is string, expected bigint"):
        doubled(spark.range(1).select(F.col("id").cast("string")))


def test_a_wrong_output_is_refused(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="output of step doubled: column 'twice' is int, expected bigint"):
        doubled(spark.range(1), kind="int")
    with pytest.raises(SchemaError, match="output of step doubled: column 'twice' is missing"):
        doubled(spark.range(1), name="double")


def test_any_type_still_needs_the_column(spark: SparkSession) -> None:
    check_columns(spark.range(1), {"id": "any"}, "here")
    with pytest.raises(SchemaError, match="here: column 'other' is missing"):
        check_columns(spark.range(1), {"other": "any"}, "here")
