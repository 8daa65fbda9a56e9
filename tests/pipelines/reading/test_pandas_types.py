"""A file as pandas writes it is read as one in microseconds is."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.config.log import Source
from pipelines.reading import pandas_types, sources
from pipelines.reading.pandas_types import files_to_copy, stage_plain

NANOSECONDS = [1_704_103_200_123_456_789, None, -1_500, 0]


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


def test_the_copy_goes_when_the_source_is_let_go(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    pq.write_table(table("ns"), path := str(tmp_path / "t.parquet"))
    with ExitStack() as held:
        sources.read(spark, Source(path=path), path, held)
        [copy] = tmp_path.glob("sluice-plain-*/t.parquet")
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
    copy = stage_plain([tmp_path / "t.parquet"], tmp_path / "t.parquet", tmp_path / "copy")
    assert pq.read_table(copy / "t.parquet").to_pydict() == pa.concat_tables([table("us")] * 5).to_pydict()
