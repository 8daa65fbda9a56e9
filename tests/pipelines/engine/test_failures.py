from __future__ import annotations

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from contracts.errors import DataError
from pipelines.engine.failures import explained, out_of_memory, said_by_workers


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


@pytest.mark.parametrize("said", [
    "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.s3a.S3AFileSystem not found",
    'No FileSystem for scheme "gs"',
])
def test_an_address_that_an_engine_cannot_reach_says_what_is_missing(said: str) -> None:
    with pytest.raises(DataError, match=r"^log \(s3a://b/log\): .*add its package to spark\.settings"), \
            explained("log", "s3a://b/log"):
        raise PySparkException(said)


@pytest.mark.parametrize("said", ['cast Timestamp(Nanosecond, Some("UTC")) to Spark data type',
                                  "Illegal Parquet type: INT64 (TIMESTAMP(NANOS,true))."])
def test_times_in_nanoseconds_are_named_with_the_cure(said: str) -> None:
    with pytest.raises(DataError, match=r"times in nanoseconds.*in microseconds"), explained("log", "p"):
        raise PySparkException(said)


def test_our_own_errors_pass(spark: SparkSession) -> None:
    with pytest.raises(DataError, match=r"^mine$"), explained("log", "p"):
        raise DataError("mine")


def test_what_the_platforms_code_says_in_a_worker_is_the_sentence(spark: SparkSession) -> None:
    def refuse(batches):
        raise DataError("no files on this machine")
        yield from batches

    with pytest.raises(Exception, match="no files") as caught:
        spark.range(3).mapInArrow(refuse, "id bigint").collect()
    assert str(said_by_workers(caught.value)) == "no files on this machine"
    lacking = said_by_workers(RuntimeError("ModuleNotFoundError: No module named 'pipelines.encoding'"))
    assert "install the same wheel" in str(lacking)
    assert said_by_workers(RuntimeError("No module named 'mine'")) is None


@pytest.mark.parametrize(("line", "bounded"), [
    ("MemoryError", True),
    ("pyarrow.lib.ArrowMemoryError: malloc of size 262144 failed", True),
    ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 1. MiB", True),
    ("java.lang.OutOfMemoryError: Java heap space", False),
])
def test_a_worker_without_memory_is_told_what_to_lower(line: str, bounded: bool) -> None:
    found = out_of_memory(RuntimeError(f"Job aborted\nTraceback (most recent call last):\n  File x\n{line}\n\n at"))
    assert ("lower features.max_key_rows" in str(found)) == bounded
