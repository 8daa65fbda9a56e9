from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from pipelines.encoding.example_figures import FIGURES, describe
from pipelines.engine.content_hash import content_hash

START = datetime(2026, 1, 5, tzinfo=UTC)


def put(folder: Path, number: int, ids: list[int], name: str = "part.parquet") -> None:
    times = pa.array([START + timedelta(days=number, hours=n) for n in range(len(ids))], pa.timestamp("us", "UTC"))
    place = folder / f"day={(START + timedelta(days=number)).date().isoformat()}"
    place.mkdir(parents=True, exist_ok=True)
    labels = pa.array([float(n % 2) for n in ids], pa.float32())
    pq.write_table(pa.table({"_label": labels, "_time": times, "slot": pa.array(ids, pa.int32())}), place / name)


@pytest.fixture
def window(tmp_path: Path) -> Path:
    for number in range(3):
        put(tmp_path, number, [number, number + 1, 7])
    return tmp_path


def test_sums_of_days_are_those_of_the_window(spark: SparkSession, window: Path) -> None:
    found = describe(spark, window, ["2026-01-05"])
    assert (found.rows, found.positives, found.days, found.written) == (9, 6, 3, ("2026-01-05",))
    whole = spark.read.option("pathGlobFilter", "*.parquet").parquet(str(window))
    assert found.content_hash == content_hash(whole)


def test_only_days_whose_files_are_others_are_read_again(spark: SparkSession, window: Path) -> None:
    before = describe(spark, window)
    untouched = window / "day=2026-01-05" / "part.parquet"
    untouched.write_bytes(b"-" * untouched.stat().st_size)
    assert describe(spark, window) == before
    (window / "day=2026-01-06" / "part.parquet").unlink()
    put(window, 1, [3], "other.parquet")
    after = describe(spark, window)
    assert (after.rows, after.days) == (7, 3)
    assert after.content_hash != before.content_hash
    put(window, 1, [1, 2, 7], "other.parquet")
    assert describe(spark, window) == before


def test_a_day_that_is_gone_no_longer_counts(spark: SparkSession, window: Path) -> None:
    describe(spark, window)
    (window / "day=2026-01-07" / "part.parquet").unlink()
    (window / "day=2026-01-07").rmdir()
    found = describe(spark, window)
    assert (found.rows, found.days) == (6, 2)
    (window / FIGURES).unlink()
    assert describe(spark, window) == found
