from __future__ import annotations

from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.config.log import Source
from contracts.errors import DataError
from contracts.table_files import landed_name
from pipelines.reading import sources

TIME = datetime(2026, 1, 5, 8, 30, tzinfo=UTC)
DERIVE = {"time": "try_to_timestamp(stamp)", "hour": "hour(time)", "place": "lower(place)", "band": "age div 10",
          "late": "hour > 20"}
CSV = Source(path="log.csv", format="csv", options={"header": "true"}, derive=DERIVE,
             schema_ddl="id STRING, stamp STRING, place STRING, age INT")


def landed(folder: Path, number: int, **columns: Any) -> None:
    folder.mkdir(exist_ok=True)
    time = pa.array([TIME], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"id": [f"e{number}"], "time": time, **columns}), folder / landed_name(number, number))


def read(spark: SparkSession, source: Source, folder: Path) -> list[dict[str, Any]]:
    with ExitStack() as held:
        frame = sources.read(spark, source, str(folder), held)
        return sorted((row.asDict() for row in frame.drop("_corrupt").collect()), key=lambda row: str(row["id"]))


@pytest.mark.parametrize("format_", ["csv", "json", "parquet", "delta"])
def test_landed_events_are_read_whatever_the_format_of_the_log(
    spark: SparkSession, tmp_path: Path, format_: str
) -> None:
    landed(tmp_path / "log.csv", 1, place=["Top"])
    (row,) = read(spark, CSV.model_copy(update={"format": format_}), tmp_path / "log.csv")
    assert row.pop("time").replace(tzinfo=UTC) == TIME
    assert row == {"id": "e1", "place": "Top", "hour": 8, "late": False}  # as the server knew it; `band` has no source


def test_what_is_landed_as_null_is_derived_and_files_may_differ_in_columns(spark: SparkSession, tmp_path: Path) -> None:
    landed(tmp_path / "log", 1, age=pa.array([34], pa.int64()))
    landed(tmp_path / "log", 2, age=pa.array([34], pa.int64()), band=pa.array([None], pa.int64()))
    landed(tmp_path / "log", 3, age=pa.array([34], pa.int64()), band=pa.array([7], pa.int64()))
    assert [row["band"] for row in read(spark, CSV, tmp_path / "log")] == [3, 3, 7]


def test_a_column_of_two_types_is_read_as_the_newest_files_have_it(spark: SparkSession, tmp_path: Path) -> None:
    """What an earlier configuration read as text, and a later one as numbers."""
    landed(tmp_path / "log", 1, age=["34"], size=pa.array([1], pa.int64()), tags=["a"], stars=pa.array([4.0]))
    landed(tmp_path / "log", 2, age=["old"], size=pa.array([2], pa.int64()), tags=["b"], stars=pa.array([4.5]))
    landed(tmp_path / "log", 3, age=pa.array([35.5]), size=pa.array([2.5]), place=["Top"], tags=[["c", "d"]],
           stars=pa.array([5], pa.int64()))
    landed(tmp_path / "log", 4, size=pa.array([3.5]))
    rows = read(spark, CSV.model_copy(update={"derive": {}}), tmp_path / "log")
    assert [row["id"] for row in rows] == ["e1", "e2", "e3", "e4"]
    assert [row["age"] for row in rows] == [34.0, None, 35.5, None]
    assert [row["size"] for row in rows] == [1.0, 2.0, 2.5, 3.5]
    assert [row["place"] for row in rows] == [None, None, "Top", None]
    assert [row["tags"] for row in rows] == [None, None, ["c", "d"], None]
    assert [row["stars"] for row in rows] == [4, None, 5, None]


def test_a_damaged_one_is_named(spark: SparkSession, tmp_path: Path) -> None:
    landed(tmp_path / "log", 1)
    landed(tmp_path / "log", 2)
    file = tmp_path / "log" / landed_name(2, 2)
    file.write_bytes(file.read_bytes()[:40])
    with pytest.raises(DataError, match=f"{file} is damaged or cut short; copy or write this file again"):
        read(spark, CSV, tmp_path / "log")


def test_a_table_of_ones_own_beside_landed_files_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    landed(tmp_path / "log.csv", 1)
    (tmp_path / "log.csv" / "part.csv").write_text("id,stamp,place,age\n")
    with pytest.raises(DataError, match=r"landed, which are Parquet, beside part\.csv, which is read as csv"):
        read(spark, CSV, tmp_path / "log.csv")


def test_derived_columns_of_a_table_of_ones_own_are_derived(spark: SparkSession, tmp_path: Path) -> None:
    file = tmp_path / "log.csv"
    file.write_text("id,stamp,place,age\ne1,2026-01-05 08:30:00,Top,34\n")
    assert read(spark, CSV, file)[0]["place"] == "top"
