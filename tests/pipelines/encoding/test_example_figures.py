from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.summaries.features import ExampleRows
from pipelines.encoding.example_figures import FIGURES, describe
from pipelines.engine.content_hash import content_hash
from tests.pipelines.queries import counted_queries

START = datetime(2026, 1, 5, tzinfo=UTC)


def put(folder: Path, number: int, ids: list[int], name: str = "part.parquet", slot: str = "slot") -> None:
    times = pa.array([START + timedelta(days=number, hours=n) for n in range(len(ids))], pa.timestamp("us", "UTC"))
    place = folder / f"day={(START + timedelta(days=number)).date().isoformat()}"
    place.mkdir(parents=True, exist_ok=True)
    labels = pa.array([float(n % 2) for n in ids], pa.float32())
    pq.write_table(pa.table({"_label": labels, "_time": times, slot: pa.array(ids, pa.int32())}), place / name)


@pytest.fixture
def window(tmp_path: Path) -> Path:
    for number in range(3):
        put(tmp_path / "train", number, [number, number + 1, 7])
    return tmp_path / "train"


def described(spark: SparkSession, folder: Path) -> ExampleRows:
    return describe(spark, {"train": folder})["train"]


def whole_hash(spark: SparkSession, folder: Path) -> str:
    return content_hash(spark.read.option("pathGlobFilter", "*.parquet").parquet(str(folder)))


def test_sums_of_days_are_those_of_the_window(spark: SparkSession, window: Path) -> None:
    found = describe(spark, {"train": window}, {"train": ["2026-01-05"], "test": ["2026-01-09"]})["train"]
    assert (found.rows, found.positives, found.days, found.written) == (9, 6, 3, ("2026-01-05",))
    assert found.content_hash == whole_hash(spark, window)


def test_all_windows_are_one_query_and_none_where_nothing_has_changed(spark: SparkSession, window: Path) -> None:
    folders = {name: window.with_name(name) for name in ("train", "validation", "test", "empty")}
    put(folders["validation"], 2, [1, 2])
    put(folders["test"], 3, [5], slot="other")
    folders["empty"].mkdir()
    with counted_queries(spark) as queries:
        found = describe(spark, folders)
    assert len(queries) == 1
    assert {name: (rows.rows, rows.positives, rows.days) for name, rows in found.items()} == {
        "train": (9, 6, 3), "validation": (2, 1, 1), "test": (1, 1, 1), "empty": (0, 0, 0)}
    for name in ("train", "validation", "test"):
        assert found[name].content_hash == whole_hash(spark, folders[name])
    with counted_queries(spark) as queries:
        assert describe(spark, folders) == found
    assert not queries


def test_only_days_whose_files_are_others_are_read_again(spark: SparkSession, window: Path) -> None:
    before = described(spark, window)
    untouched = window / "day=2026-01-05" / "part.parquet"
    untouched.write_bytes(b"-" * untouched.stat().st_size)
    assert described(spark, window) == before
    (window / "day=2026-01-06" / "part.parquet").unlink()
    put(window, 1, [3], "other.parquet")
    after = described(spark, window)
    assert (after.rows, after.days) == (7, 3)
    assert after.content_hash != before.content_hash
    put(window, 1, [1, 2, 7], "other.parquet")
    assert described(spark, window) == before


def test_a_day_of_other_columns_than_the_kept_ones_makes_all_be_read_again(spark: SparkSession, window: Path) -> None:
    described(spark, window)
    put(window, 1, [3], slot="other")
    found = described(spark, window)
    assert (found.rows, found.days) == (7, 3)
    (window / FIGURES).unlink()
    assert described(spark, window) == found


def test_a_day_that_is_gone_no_longer_counts(spark: SparkSession, window: Path) -> None:
    described(spark, window)
    (window / "day=2026-01-07" / "part.parquet").unlink()
    (window / "day=2026-01-07").rmdir()
    found = described(spark, window)
    assert (found.rows, found.days) == (6, 2)
    (window / FIGURES).unlink()
    assert described(spark, window) == found
