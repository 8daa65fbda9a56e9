from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.errors import DataError
from pipelines.engine.day_partitions import groups_of, in_turn, publish, read_days, stage, write_days
from tests.heard_progress import heard


def days(spark: SparkSession, rows: dict[str, int]) -> DataFrame:
    return spark.createDataFrame(list(rows.items()), "day string, x int")


def content(spark: SparkSession, folder: Path) -> dict[str, int]:
    return {
        path.name.removeprefix("day="): spark.read.parquet(str(path)).collect()[0]["x"] for path in folder.glob("day=*")
    }


@pytest.mark.every_engine
def test_a_day_is_replaced_alone(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    assert write_days(days(spark, {"2026-01-05": 1, "2026-01-06": 2}), folder) == ["2026-01-05", "2026-01-06"]
    other = {p: p.stat().st_mtime_ns for p in (folder / "day=2026-01-05").iterdir()}
    write_days(days(spark, {"2026-01-06": 3}), folder, ["2026-01-06"])
    assert content(spark, folder) == {"2026-01-05": 1, "2026-01-06": 3}
    assert {p: p.stat().st_mtime_ns for p in (folder / "day=2026-01-05").iterdir()} == other
    assert [p.name for p in tmp_path.iterdir()] == ["events"]


@pytest.mark.every_engine
def test_a_day_without_rows_any_more_goes(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    write_days(days(spark, {"2026-01-05": 1, "2026-01-06": 2}), folder)
    write_days(days(spark, {}), folder, ["2026-01-06"])
    assert content(spark, folder) == {"2026-01-05": 1}
    write_days(days(spark, {"2026-01-07": 3}), folder)
    assert content(spark, folder) == {"2026-01-07": 3}


@pytest.mark.every_engine
def test_a_write_that_dies_changes_nothing(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    write_days(days(spark, {"2026-01-05": 1}), folder)
    broken = days(spark, {"2026-01-05": 2, "2026-01-06": 0}).withColumn("x", F.expr("10 div x"))
    with pytest.raises(Exception, match=r"DIVIDE_BY_ZERO|Division by zero"):
        write_days(broken, folder)
    assert content(spark, folder) == {"2026-01-05": 1}
    publish(spark, stage(days(spark, {"2026-01-05": 4}), folder), folder)
    assert content(spark, folder) == {"2026-01-05": 4}


def stamps(folder: Path) -> dict[Path, int]:
    return {path: path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


@pytest.mark.every_engine
def test_days_whose_rows_are_the_same_are_left_untouched(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    rows = [("2026-01-05", n % 3) for n in range(9)] + [("2026-01-06", None), ("2026-01-07", 4)]
    write_days(spark.createDataFrame(rows, "day string, x int"), folder)
    before = stamps(folder)
    again = spark.createDataFrame(rows[::-1], "day string, x int").repartition(3)
    assert write_days(again, folder) == []
    assert stamps(folder) == before
    changed = [*rows[:8], ("2026-01-05", 7), ("2026-01-06", 0), ("2026-01-07", 4)]
    assert write_days(spark.createDataFrame(changed, "day string, x int"), folder) == ["2026-01-05", "2026-01-06"]
    assert {path for path, when in before.items() if stamps(folder).get(path) == when} == set(
        (folder / "day=2026-01-07").glob("*.parquet"))


@pytest.mark.every_engine
def test_a_day_of_other_columns_is_written_anew(spark: SparkSession, tmp_path: Path) -> None:
    folder = tmp_path / "events"
    write_days(days(spark, {"2026-01-05": 1, "2026-01-06": 1}), folder)
    wider = days(spark, {"2026-01-05": 1, "2026-01-06": 1}).withColumn("y", F.lit(2))
    assert write_days(wider.where("day = '2026-01-06'"), folder, ["2026-01-06"]) == ["2026-01-06"]
    assert write_days(wider, folder) == ["2026-01-05"]


def put(folder: Path, day: int, **columns: object) -> None:
    place = folder / f"day=2026-01-{day:02d}"
    place.mkdir(parents=True, exist_ok=True)
    time = pa.array([datetime(2026, 1, day, 23, 59, tzinfo=UTC)], pa.timestamp("us", "UTC"))
    pq.write_table(pa.table({"_time": time, **columns}), place / "part.parquet")


def test_some_days_are_read_from_their_own_files(spark: SparkSession, tmp_path: Path) -> None:
    for day in range(5, 9):
        put(tmp_path, day, x=[day])
    (tmp_path / "day=2026-01-08" / "part.parquet").write_bytes(b"no Parquet")
    put(tmp_path, 7, x=[7], y=["new"])
    rows = read_days(spark, tmp_path, ["2026-01-05", "2026-01-07"]).orderBy("x").collect()
    assert [(row["x"], row["y"], row["day"]) for row in rows] == [(5, None, "2026-01-05"), (7, "new", "2026-01-07")]


def test_days_whose_columns_have_other_types_are_refused(spark: SparkSession, tmp_path: Path) -> None:
    put(tmp_path, 5, x=[5])
    put(tmp_path, 6, x=["six"])
    with pytest.raises(DataError, match="without --day"):
        read_days(spark, tmp_path, ["2026-01-05", "2026-01-06"])


def test_days_are_together_while_their_rows_are_few() -> None:
    rows = {"d3": 5, "d1": 4, "d2": 2, "d4": 90, "d5": 1}
    assert groups_of(rows, 8) == [["d1", "d2"], ["d3"], ["d4"], ["d5"]]
    assert groups_of(rows, 1000) == [["d1", "d2", "d3", "d4", "d5"]]


def test_groups_in_turn_are_reported_by_their_rows_and_a_single_one_as_a_whole() -> None:
    rows = {"d1": 4, "d2": 2, "d3": 5}
    with heard() as said:
        assert list(in_turn("features", [["d1", "d2"], ["d3"]], rows)) == [["d1", "d2"], ["d3"]]
        assert list(in_turn("all", [["d1", "d2", "d3"]], rows)) == [["d1", "d2", "d3"]]
    assert said == [("features", 0, 11), ("features", 6, 11), ("features", 11, 11), ("all: 11 rows at once", 0, 0)]
