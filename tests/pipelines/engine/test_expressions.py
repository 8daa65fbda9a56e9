from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from contracts.errors import ConfigError, DataError, SchemaError
from pipelines.engine.expressions import with_expression


def test_the_column_and_its_type(spark: SparkSession) -> None:
    frame, kind = with_expression(spark.range(2), "x", "id * 2.0D", "log.derive.x")
    assert kind == "double"
    assert sorted(row["x"] for row in frame.collect()) == [0.0, 2.0]


@pytest.mark.parametrize(("expression", "error", "sentence"), [
    ("id +", ConfigError, r"log.derive.x 'id \+' is no SQL expression"),
    ("idd + 1", SchemaError, r"log.derive.x: unknown column `idd`"),
    ("no_such_function(id)", DataError, r"log.derive.x"),
])
def test_what_is_wrong_is_said_where_it_is_written(
    spark: SparkSession, expression: str, error: type[Exception], sentence: str
) -> None:
    with pytest.raises(error, match=sentence):
        with_expression(spark.range(2), "x", expression, "log.derive.x")
