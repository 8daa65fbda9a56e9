from __future__ import annotations

import os
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.engine import worker_files
from pipelines.engine.session import is_local
from pipelines.engine.worker_files import GROUP, PartedFiles, put_in_order, workers_write, write_files, write_parted


def rows_below(folder: Path) -> dict[str, list[int]]:
    """x by folder, in file order."""
    return {str(place.relative_to(folder)): [x for file in sorted(place.glob("*.parquet"))
                                             for x in pq.read_table(file, partitioning=None)["x"].to_pylist()]
            for place in sorted({file.parent for file in folder.rglob("*.parquet")})}


def test_rows_lie_in_the_folders_of_their_values_without_these_columns(tmp_path: Path) -> None:
    files = PartedFiles(tmp_path, ["day", "n"], ["x"], "a.parquet")
    files.add(pa.record_batch({"x": [1, 2, 3, 4], "day": ["b", "a", "b", "a"], "n": [0, 0, 1, 0]}))
    files.add(pa.record_batch({"x": [5], "day": ["b"], "n": [0]}))
    assert files.close() == 5
    assert rows_below(tmp_path) == {"day=a/n=0": [2, 4], "day=b/n=0": [1, 5], "day=b/n=1": [3]}
    assert pq.read_schema(tmp_path / "day=a" / "n=0" / "a.parquet").names == ["x"]


def test_many_rows_are_written_as_they_come_and_are_one_file(tmp_path: Path) -> None:
    files = PartedFiles(tmp_path, ["day"], ["x"], "a.parquet")
    batch = pa.record_batch({"x": list(range(GROUP)), "day": ["a"] * GROUP})
    files.add(batch)
    files.add(batch)
    assert files.close() == 2 * GROUP
    assert pq.read_metadata(tmp_path / "day=a" / "a.parquet").num_row_groups == 2


def test_of_more_days_than_files_may_be_open_every_row_is_written_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(worker_files, "OPEN", 2)
    monkeypatch.setattr(worker_files, "HELD", 5)  # every batch is written as it comes
    descriptors, open_now = Path("/proc/self/fd"), []
    files = PartedFiles(tmp_path, ["day"], ["x"], "a.parquet")
    (tmp_path / "day=0").mkdir()
    (tmp_path / "day=0" / "a-7.parquet").touch()  # of a first try
    for number in range(3):
        files.add(pa.record_batch({"x": range(6 * number, 6 * number + 6), "day": list("012345")}))
        open_now.append(sum(os.path.realpath(each).startswith(f"{tmp_path}/day=") for each in descriptors.glob("*")))
    assert files.close() == 18
    assert {day: sorted(found) for day, found in rows_below(tmp_path).items()} == {
        f"day={day}": [day, day + 6, day + 12] for day in range(6)}
    assert 1 <= max(open_now) <= 2


def test_files_of_a_folder_become_one_in_order(tmp_path: Path) -> None:
    for name, values in (("a", [3, 1]), ("b", [2])):
        files = PartedFiles(tmp_path, ["day"], ["x"], f"{name}.parquet")
        files.add(pa.record_batch({"x": values, "day": ["d"] * len(values)}))
        files.close()
    put_in_order([tmp_path / "day=d"], "x", group=2)
    assert pq.read_metadata(tmp_path / "day=d" / "a.parquet").num_row_groups == 2
    assert rows_below(tmp_path) == {"day=d": [1, 2, 3]}
    assert [file.name for file in (tmp_path / "day=d").iterdir()] == ["a.parquet"]


@pytest.mark.every_engine
def test_workers_write_in_local_mode_alone_and_what_every_reader_knows(spark: SparkSession) -> None:
    rows = spark.range(3)
    assert workers_write(rows) == is_local(spark)
    assert not workers_write(rows.withColumn("nested", F.struct("id")))
    assert not workers_write(rows.withColumn("nested", F.array(F.array("id"))))


@pytest.mark.every_engine
def test_a_frame_is_written_by_several_tasks(spark: SparkSession, tmp_path: Path) -> None:
    rows = spark.range(9).select(F.col("id").alias("x"), F.concat(F.lit("d"), F.col("id") % 2).alias("day"))
    write_parted(rows.repartition(3), tmp_path, ["day"])
    assert {place: sorted(found) for place, found in rows_below(tmp_path).items()} == {
        "day=d0": [0, 2, 4, 6, 8], "day=d1": [1, 3, 5, 7]}


@pytest.mark.every_engine
def test_a_frame_takes_the_place_of_a_folder(spark: SparkSession, tmp_path: Path) -> None:
    for count in (9, 4):
        write_files(spark.range(count).withColumnRenamed("id", "x"), tmp_path / "table")
    assert sorted(rows_below(tmp_path / "table")["."]) == [0, 1, 2, 3]
