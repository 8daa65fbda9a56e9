"""A file as pandas writes it is read as one in microseconds is."""

from __future__ import annotations

import datetime as dt
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.config.log import Source
from contracts.errors import DataError
from pipelines.reading import pandas_types, sources
from pipelines.reading.pandas_types import files_to_copy, stage_plain

NANOSECONDS = [1_704_103_200_123_456_789, None, -1_500, 0]
SHOWN = ["2024-01-01 10:30:00", None, "9999-12-31 23:59:59.999999", "0001-01-01 00:00:00"]
FAR = [text and dt.datetime.fromisoformat(text) for text in SHOWN]


def table(unit: str) -> pa.Table:
    """Times in a zone, in none and in lists, those in microseconds cut off towards zero, beside all else; with those in
    nanoseconds codes are categories."""
    codes = pa.array(["a", None, "b", "a"])
    values = [value and int(value / (1 if unit == "ns" else 1000)) for value in NANOSECONDS]
    return pa.table({
        "zoned": pa.array(values, pa.timestamp(unit, "Europe/Berlin")),
        "local time": pa.array(values, pa.timestamp(unit)),
        "times": pa.array([values, [], None, values], pa.list_(pa.timestamp(unit))),
        "number": pa.array([1, 2, None, 4], pa.int64()), "words": pa.array([["x"], [], None, ["y", "z"]]),
        "code": codes.dictionary_encode() if unit == "ns" else codes})


@pytest.fixture
def held() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def int96(file: Path, columns: dict[str, Any], note: bool = True) -> None:
    """As Apache Spark writes times by default; by Arrow with, by all others without its note of the types."""
    pq.write_table(pa.table(columns), file, use_deprecated_int96_timestamps=True, store_schema=note)


def shown(spark: SparkSession, path: Path, held: ExitStack) -> list[str | None]:
    """The column t as text."""
    read = sources.read(spark, Source(path=str(path), derive={"text": "cast(t AS STRING)"}), str(path), held)
    return [row.text for row in read.select("text").collect()]


@pytest.mark.every_engine
@pytest.mark.parametrize("place", ["t.parquet", "folder/t.parquet", "folder/day=3/t.parquet"])
def test_nanoseconds_and_categories_are_read_as_microseconds_and_values_are(
    spark: SparkSession, held: ExitStack, tmp_path: Path, place: str
) -> None:
    read = {}
    for unit in ("ns", "us"):
        file = tmp_path / unit / place
        file.parent.mkdir(parents=True)
        pq.write_table(table(unit), file)
        (file.parent / "_SUCCESS").touch()
        path = str(tmp_path / unit / Path(place).parts[0])
        read[unit] = sources.read(spark, Source(path=path, derive={"date": "date(zoned)"}), path, held)
    assert read["ns"].dtypes == read["us"].dtypes
    assert read["ns"].collect() == read["us"].collect()


@pytest.mark.every_engine
@pytest.mark.every_engine
def test_unsigned_numbers_are_read_and_hashed(spark: SparkSession, held: ExitStack, tmp_path: Path) -> None:
    path, kinds = tmp_path / "t.parquet", (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())
    most = [2**bits - 1 for bits in (8, 16, 32, 64)]
    columns = {str(kind): pa.array([value], kind) for kind, value in zip(kinds, most, strict=True)}
    pq.write_table(pa.table(columns), path)
    read = sources.read(spark, Source(path=str(path)), str(path), held)
    row = read.selectExpr("*", "xxhash64(uint8, uint16, uint32, uint64) AS hashed").collect()[0]
    assert [int(row[str(kind)]) for kind in kinds] == most
    assert row.hashed is not None


@pytest.mark.parametrize("unit", ["s", "ms", "us"])
def test_times_of_every_unit_are_read(spark: SparkSession, held: ExitStack, tmp_path: Path, unit: str) -> None:
    """As pandas writes columns of datetime64[s] and [ms]."""
    times = pa.array([1_704_105_000, None, 253_402_300_799], pa.timestamp("s", "UTC")).cast(pa.timestamp(unit, "UTC"))
    wanted = ["2024-01-01 10:30:00", None, "9999-12-31 23:59:59"]
    pq.write_table(pa.table({"t": times}), tmp_path / "t.parquet")
    assert files_to_copy(tmp_path / "t.parquet") == []
    assert shown(spark, tmp_path / "t.parquet", held) == wanted
    lists = pa.ListArray.from_arrays(pa.array([0, 1, 2, 3], pa.int32()), times)
    pq.write_table(pa.table({"times": lists, "t": times}), file := tmp_path / "lists.parquet")
    read = sources.read(spark, Source(path=str(file), derive={"text": "cast(times[0] AS STRING)"}), str(file), held)
    assert [row.text for row in read.select("text").collect()] == wanted


def test_the_copy_goes_when_the_source_is_let_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pq.write_table(table("ns"), path := str(tmp_path / "t.parquet"))
    with ExitStack() as held:
        sources.read(spark, Source(path=path), path, held)
        [copy] = tmp_path.glob("sluice-table.*/t.parquet")
    assert not copy.parent.exists()


def test_what_every_engine_reads_is_not_copied(tmp_path: Path) -> None:
    pq.write_table(table("us"), tmp_path / "us.parquet")
    (tmp_path / "text.csv").write_text("a,b\n1,2\n")
    (tmp_path / "empty").mkdir()
    for name in ("us.parquet", "text.csv", "empty", "nowhere"):
        assert files_to_copy(tmp_path / name) == []


def test_a_large_file_is_copied_in_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pandas_types, "ROWS", 3)
    pq.write_table(pa.concat_tables([table("ns")] * 5), tmp_path / "t.parquet")
    copy = stage_plain([tmp_path / "t.parquet"], tmp_path / "t.parquet", tmp_path / "copy", "log")
    assert pq.read_table(copy / "t.parquet").to_pydict() == pa.concat_tables([table("us")] * 5).to_pydict()


@pytest.mark.every_engine
@pytest.mark.parametrize("codes", [
    ["a", None, "b", "a"], [3, None, -1, 3], [True, None, False, True], [1.5, None, -0.25, 1.5],
    [dt.date(2024, 1, 1), None, dt.date(1969, 1, 1), dt.date(2024, 1, 1)]])
@pytest.mark.parametrize("within", ["column", "list", "struct"])
def test_categories_are_read_as_their_values(
    spark: SparkSession, held: ExitStack, tmp_path: Path, codes: list[Any], within: str
) -> None:
    read = {}
    for name, values in {"plain": pa.array(codes), "category": pa.array(codes).dictionary_encode()}.items():
        placed = {"column": values, "struct": pa.StructArray.from_arrays([values], ["part"]),
                  "list": pa.ListArray.from_arrays(pa.array([0, 1, 1, 2, 4], pa.int32()), values)}[within]
        pq.write_table(pa.table({"code": placed, "place": [0, 1, 2, 3]}), path := str(tmp_path / f"{name}.parquet"))
        read[name] = sources.read(spark, Source(path=path), path, held)
    assert read["category"].dtypes == read["plain"].dtypes
    assert read["category"].orderBy("place").collect() == read["plain"].orderBy("place").collect()


@pytest.mark.every_engine
@pytest.mark.parametrize(("zone", "note"), [(None, False), (None, True), ("UTC", False), ("UTC", True)])
def test_int96_times_are_read_in_place_up_to_the_year_9999(
    spark: SparkSession, held: ExitStack, tmp_path: Path, zone: str | None, note: bool
) -> None:
    times = pa.array(FAR, pa.timestamp("us", zone))
    int96(tmp_path / "t.parquet", {"t": times, "l": pa.array([FAR] * 4, pa.list_(times.type))}, note)
    assert files_to_copy(tmp_path) == files_to_copy(tmp_path / "t.parquet") == []
    assert shown(spark, tmp_path / "t.parquet", held) == SHOWN


def test_int96_times_that_arrow_notes_as_nanoseconds_are_copied_where_a_zone_is_noted_too(tmp_path: Path) -> None:
    for zone in (None, "Europe/Berlin"):
        int96(file := tmp_path / f"{zone and 'zone'}.parquet", {"t": pa.array(NANOSECONDS, pa.timestamp("ns", zone))})
        assert files_to_copy(file) == ([file] if zone else [])


@pytest.mark.every_engine
@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
def test_int96_times_are_copied_as_the_instants_that_they_are(
    spark: SparkSession, held: ExitStack, tmp_path: Path, zone: str | None
) -> None:
    times = pa.array(FAR, pa.timestamp("us", zone))
    int96(tmp_path / "t.parquet", {"t": times, "code": pa.array([1, 2, 1, 2]).dictionary_encode()})
    assert files_to_copy(tmp_path / "t.parquet")
    assert shown(spark, tmp_path / "t.parquet", held) == SHOWN


def test_a_copy_has_int96_times_in_utc_at_every_depth_and_all_other_times_in_the_zone_they_had(tmp_path: Path) -> None:
    local, utc = pa.timestamp("us"), pa.timestamp("us", "UTC")
    kinds = {time: {"t": time, "l": pa.list_(time), "m": pa.map_(pa.string(), pa.struct([("a", time)]))}
             for time in (local, utc)}
    columns = {"t": FAR, "l": [FAR, [], None, FAR], "m": [[("a", {"a": time})] for time in FAR]}
    int96(tmp_path / "int96.parquet", {n: pa.array(columns[n], kind) for n, kind in kinds[local].items()})
    pq.write_table(table("ns"), tmp_path / "ns.parquet")
    copy = stage_plain(sorted(tmp_path.glob("*.parquet")), tmp_path, tmp_path / "copy", "log")
    assert pq.read_table(copy / "int96.parquet").equals(pa.table(
        {n: pa.array(columns[n], kind) for n, kind in kinds[utc].items()}))
    assert pq.read_table(copy / "ns.parquet").equals(table("us"))


@pytest.mark.every_engine
@pytest.mark.parametrize("category", [False, True])
@pytest.mark.parametrize("other", [0, 1, 2])
def test_any_file_of_a_table_may_have_such_columns(
    spark: SparkSession, held: ExitStack, tmp_path: Path, category: bool, other: int
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for number in range(3):
        times = pa.array([number * 1_000_000], pa.timestamp("us", "UTC"))
        written = times.dictionary_encode() if category else times.cast(pa.timestamp("ns", "UTC"))
        pq.write_table(pa.table({"t": written if number == other else times}), folder / f"{number}.parquet")
    assert len(files_to_copy(folder)) == 3
    assert sorted(map(str, shown(spark, folder, held))) == [f"1970-01-01 00:00:0{second}" for second in range(3)]


@pytest.mark.parametrize("damage", ["cut short", "pages", "no Parquet"])
def test_a_damaged_file_of_a_table_to_copy_is_named(
    spark: SparkSession, held: ExitStack, tmp_path: Path, damage: str
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in ("a.parquet", "b.parquet"):
        pq.write_table(pa.concat_tables([table("ns")] * 1000), folder / name, compression="none", use_dictionary=False)
    whole = (folder / "b.parquet").read_bytes()
    (folder / "b.parquet").write_bytes({
        "cut short": whole[:-20], "pages": whole[:4] + b"\xff" * 2000 + whole[2004:], "no Parquet": b"a,b\n1,2\n" * 9,
    }[damage])
    path = str(folder)
    with pytest.raises(DataError) as told:
        sources.read(spark, Source(path=path), path, held, "items")
    assert str(told.value) == f"items: {folder / 'b.parquet'} is damaged or cut short; copy or write this file again"


def test_a_file_that_cannot_be_opened_is_not_called_damaged(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"^log: .*/gone\.parquet cannot be read \(.*No such file.*\); check"):
        stage_plain([tmp_path / "gone.parquet"], tmp_path, tmp_path / "copy", "log")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux alone has a full disk at hand")
def test_a_full_disk_is_told_with_the_temporary_folder_and_the_cure(tmp_path: Path) -> None:
    pq.write_table(table("ns"), tmp_path / "t.parquet")
    (folder := tmp_path / "copy").mkdir()
    (folder / "t.parquet").symlink_to("/dev/full")
    with pytest.raises(DataError, match=rf"to {folder} \(.*No space left on device.*\); free space there, set TMPDIR"):
        stage_plain([tmp_path / "t.parquet"], tmp_path / "t.parquet", folder, "log")
