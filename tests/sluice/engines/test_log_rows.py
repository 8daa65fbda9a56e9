from __future__ import annotations

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.config.log import Log
from contracts.errors import ConfigError, DataError
from contracts.table_files import landed_name
from pipelines.reading.text_files import files_at
from sluice.engines.log_rows import evenly, take_rows


def test_rows_are_taken_at_even_distances_and_all_where_there_are_no_more() -> None:
    assert evenly(10, 4) == [0, 2, 5, 7]
    assert evenly(3, 5) == [0, 1, 2]
    assert len(set(evenly(1_000_003, 1_000))) == 1_000


def test_parquet_files_of_a_log_and_their_partitions(tmp_path: Path) -> None:
    for day, rows in (("a", range(10)), ("b", range(10, 30))):
        folder = tmp_path / "log" / f"day={day}"
        folder.mkdir(parents=True)
        pq.write_table(pa.table({"n": list(rows)}), folder / "x.parquet")
    assert take_rows(Log(path="log"), str(tmp_path / "log"), 6, tmp_path / "small") == 6
    small = pq.read_table(tmp_path / "small")
    assert small.column("n").to_pylist() == [0, 5, 10, 15, 20, 25]
    assert {str(day) for day in small.column("day").to_pylist()} == {"a", "b"}


def test_lines_of_text_keep_the_header_of_every_file(tmp_path: Path) -> None:
    (tmp_path / "log").mkdir()
    (tmp_path / "log" / "1.csv").write_text("n,t\n0,ä\n1,b\n2,c\n", encoding="latin-1")
    with gzip.open(tmp_path / "log" / "2.csv.gz", "wt", encoding="latin-1") as packed:
        packed.write("n,t\n3,d\n4,é\n5,f\n")
    log = Log(path="log", format="csv", options={"header": "true", "encoding": "latin-1"})
    assert take_rows(log, str(tmp_path / "log"), 3, tmp_path / "small") == 3
    texts = [file.read_text(encoding="latin-1") for file in files_at(str(tmp_path / "small"), "log")]
    assert texts == ["n,t\n0,ä\n2,c\n", "n,t\n4,é\n"]


def test_landed_events_are_parquet_whatever_the_format_of_the_log_and_stay_landed(tmp_path: Path) -> None:
    (tmp_path / "log.csv").mkdir()
    pq.write_table(pa.table({"n": [0, 1, 2, 3]}), tmp_path / "log.csv" / landed_name(1, 4))
    log = Log(path="log.csv", format="csv", options={"header": "true"})
    assert take_rows(log, str(tmp_path / "log.csv"), 2, tmp_path / "small") == 2
    assert pq.read_table(tmp_path / "small" / landed_name(1, 4)).column("n").to_pylist() == [0, 2]


def test_a_pattern_means_several_files_and_hidden_ones_are_none(tmp_path: Path) -> None:
    for name in ("a.data", "a.test", "a.names", ".a.data"):
        (tmp_path / name).write_text("1\n", encoding="utf-8")
    assert [file.name for file in files_at(str(tmp_path / "a.{data,test}"), "log")] == ["a.data", "a.test"]
    assert [file.name for file in files_at(str(tmp_path), "log")] == ["a.data", "a.names", "a.test"]


def test_what_cannot_be_taken_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="nothing to read at"):
        take_rows(Log(path="log"), str(tmp_path / "none"), 5, tmp_path / "small")
    (tmp_path / "a.csv").write_text("1\n", encoding="utf-8")
    with pytest.raises(ConfigError, match="read by Apache Spark alone"):
        take_rows(Log(path="log", format="delta"), str(tmp_path / "a.csv"), 5, tmp_path / "small")
    with pytest.raises(ConfigError, match="multiLine"):
        take_rows(Log(path="log", format="csv", options={"multiLine": "true"}), str(tmp_path / "a.csv"), 5, tmp_path)
    with pytest.raises(ConfigError, match="not at s3a://bucket/log: copy a part of it"):
        take_rows(Log(path="log"), "s3a://bucket/log", 5, tmp_path / "small")
