from __future__ import annotations

import pytest
from pyspark.sql import SparkSession

from contracts.errors import DataError
from pipelines.engine.failures import explained


def test_a_failed_cast_says_what_to_use_instead(spark: SparkSession) -> None:
    with (
        pytest.raises(DataError, match=r"log: an expression fails on a value: .*use try_cast"),
        explained("log", "p"),
    ):
        spark.range(1).selectExpr("cast(concat('x', id) as int)").collect()


def test_any_other_condition_is_told_in_one_line(spark: SparkSession) -> None:
    with (
        pytest.raises(DataError, match=r"^log \(p\): .*because") as caught,
        explained("log", "p"),
    ):
        spark.range(1).selectExpr("raise_error('because')").collect()
    assert "\n" not in str(caught.value)


def test_our_own_errors_pass(spark: SparkSession) -> None:
    with pytest.raises(DataError, match=r"^mine$"), explained("log", "p"):
        raise DataError("mine")
