from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from contracts.config.log import Source
from contracts.errors import ConfigError, DataError, SchemaError
from pipelines.engine.failures import explained
from pipelines.reading import sources
from pipelines.reading.text_files import CORRUPT
from tests.pipelines.object_store import access, object_store

HELD = ExitStack()
DDL = "a INT, t TIMESTAMP"


@pytest.fixture(autouse=True)
def held() -> Iterator[None]:
    """What a test has read is let go at its end, with its temporary files."""
    yield
    HELD.close()


def read(spark: SparkSession, source: Source, path: str, what: str = "log") -> DataFrame:
    return sources.read(spark, source, path, HELD, what)


READER = """
import sys
from contextlib import ExitStack
from contracts.config.log import Source, SparkSettings
from pipelines.engine.session import session
from pipelines.reading.sources import read
with session(SparkSettings(), "read") as spark, ExitStack() as held:
    read(spark, Source(path=sys.argv[1], format="csv"), sys.argv[1], held)
    print("read", flush=True)
    sys.stdin.read()
"""


def texts(path: Path, text: str) -> str:
    path.write_text(text, encoding="utf-8")
    return str(path)


def test_csv_rows_that_do_not_fit_are_marked_with_their_text(spark: SparkSession, tmp_path: Path) -> None:
    path = texts(tmp_path / "log.csv", "a,t\n1,2026-01-05 00:00:00\nx,2026-01-05 00:00:00\n3,never\n4\n")
    frame = read(spark, Source(path=path, format="csv", options={"header": "true"}, schema_ddl=DDL), path)
    assert [r[0] for r in frame.where(f"{CORRUPT} is null").select("a").collect()] == [1]
    assert {r[0] for r in frame.where(f"{CORRUPT} is not null").select("a", CORRUPT).select(CORRUPT).collect()} == {
        "x,2026-01-05 00:00:00",
        "3,never",
        "4",
    }


def test_the_copy_of_a_killed_process_goes_with_the_next_read_and_of_a_living_one_stays(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, table = texts(tmp_path / "log.csv", "a,b\n1,2\n"), tmp_path / "users"
    pq.write_table(pa.table({"a": [1]}), table)
    copies = tmp_path / "copies"
    copies.mkdir()
    monkeypatch.setenv("TMPDIR", str(copies))
    monkeypatch.setattr(tempfile, "tempdir", str(copies))
    with subprocess.Popen([sys.executable, "-c", READER, log], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                          text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "read\n"
        of_reader = list(copies.iterdir())
        read(spark, Source(path=log, format="csv"), log)
        assert (len(of_reader), len(list(copies.iterdir()))) == (1, 2)
        reader.kill()
    HELD.close()
    assert list(copies.iterdir()) == of_reader
    read(spark, Source(path=str(table)), str(table))
    assert list(copies.iterdir()) == []


@pytest.mark.every_engine
@pytest.mark.parametrize("ddl", [None, "a BIGINT, b STRING"])
@pytest.mark.parametrize("format_", ["csv", "json"])
def test_text_of_a_partitioned_folder_has_the_columns_of_its_files(
    spark: SparkSession, tmp_path: Path, format_: str, ddl: str | None
) -> None:
    """On every engine: what else tells two rows apart would be another identity of theirs on each."""
    for day in (1, 2):
        (tmp_path / f"day=2026-03-0{day}").mkdir()
        texts(tmp_path / f"day=2026-03-0{day}" / f"p.{format_}",
              f"a,b\n{day},x\n" if format_ == "csv" else f'{{"a": {day}, "b": "x"}}\n')
    options = {"header": "true"} if format_ == "csv" else {}
    frame = read(spark, Source(path=str(tmp_path), format=format_, options=options, schema_ddl=ddl), str(tmp_path))
    assert frame.columns == ["a", "b", CORRUPT]
    assert sorted(int(row["a"]) for row in frame.collect()) == [1, 2]


def test_csv_without_a_schema_is_text(spark: SparkSession, tmp_path: Path) -> None:
    path = texts(tmp_path / "log.csv", "a;b\n1;x\n2\n")
    frame = read(spark, Source(path=path, format="csv", options={"header": "true", "sep": ";"}), path)
    assert frame.dtypes == [("a", "string"), ("b", "string"), (CORRUPT, "string")]
    assert frame.where(f"{CORRUPT} is not null").count() == 1


@pytest.mark.parametrize("ddl", [None, "a BIGINT, b STRING"])
def test_json_rows_that_do_not_parse_are_marked(spark: SparkSession, tmp_path: Path, ddl: str | None) -> None:
    path = texts(tmp_path / "log.json", '{"a": 1, "b": "x"}\n{"a": \n{"a": 3, "b": "y"}\n')
    frame = read(spark, Source(path=path, format="json", schema_ddl=ddl), path)
    assert frame.dtypes == [("a", "bigint"), ("b", "string"), (CORRUPT, "string")]
    assert {r["a"]: r[CORRUPT] for r in frame.collect()} == {1: None, None: '{"a": ', 3: None}


def test_a_csv_header_in_another_order_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    path = texts(tmp_path / "log.csv", "t,a\n2026-01-05 00:00:00,1\n")
    source = Source(path=path, format="csv", options={"header": "true"}, schema_ddl=DDL)
    with pytest.raises(SchemaError, match="CSV header does not conform"), explained("log", path):
        read(spark, source, path).collect()


def test_a_name_with_a_backtick_is_refused_with_the_cure(spark: SparkSession, tmp_path: Path) -> None:
    pq.write_table(pa.table({"a`b": [1], "c": [2]}), tmp_path / "log.parquet")
    with pytest.raises(SchemaError, match=r"the column a`b has a backtick .* rename it"):
        read(spark, Source(path=str(tmp_path / "log.parquet"), format="parquet"), str(tmp_path / "log.parquet"))


def test_derived_columns_may_use_earlier_ones(spark: SparkSession, tmp_path: Path) -> None:
    path = texts(tmp_path / "log.json", '{"a": 1}\n')
    source = Source(path=path, format="json", derive={"b": "a + 1", "c": "try_cast(concat('x', b) AS INT)"})
    assert read(spark, source, path).select("b", "c").collect() == [(2, None)]


def test_a_derived_column_over_nothing_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = texts(tmp_path / "log.json", '{"a": 1}\n')
    with pytest.raises(SchemaError, match=r"log.derive.b: unknown column `z`"):
        read(spark, Source(path=path, format="json", derive={"b": "z + 1"}), path)


def test_a_derived_column_that_is_no_sql_is_named(spark: SparkSession, tmp_path: Path) -> None:
    path = texts(tmp_path / "log.json", '{"a": 1}\n')
    with pytest.raises(ConfigError, match=r"log.derive.b '1 \+' is no SQL expression"):
        read(spark, Source(path=path, format="json", derive={"b": "1 +"}), path)


@pytest.mark.parametrize("cut", [0.5, 0.99])
def test_a_truncated_parquet_file_is_named_with_the_cure(spark: SparkSession, tmp_path: Path, cut: float) -> None:
    for name in ("a", "b"):
        pq.write_table(pa.table({"x": list(range(1000))}), tmp_path / f"{name}.parquet")
    broken = tmp_path / "b.parquet"
    broken.write_bytes(broken.read_bytes()[: int(broken.stat().st_size * cut)])
    with (
        pytest.raises(DataError, match=r"b\.parquet is damaged or cut short; copy or write"),
        explained("log", str(tmp_path)),
    ):
        read(spark, Source(path=str(tmp_path)), str(tmp_path)).selectExpr("sum(x)").collect()


def test_nothing_to_read_is_named(spark: SparkSession, tmp_path: Path) -> None:
    for path in (str(tmp_path / "nowhere"), str(tmp_path)):
        with pytest.raises(DataError, match=f"items: nothing to read at {path}"):
            read(spark, Source(path=path), path, "items")


def test_a_schema_that_is_no_ddl_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="schema_ddl 'a NOTYPE' is no Spark DDL"):
        read(spark, Source(path="x", format="csv", schema_ddl="a NOTYPE"), str(tmp_path))


@pytest.fixture
def bucket(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """What the address s3a://bucket stands for, on a server of this process."""
    (tmp_path / "bucket").mkdir()
    with object_store(tmp_path) as endpoint:
        for name, value in access(endpoint).items():
            monkeypatch.setenv(name, value)
        yield tmp_path / "bucket"


@pytest.mark.every_engine
def test_an_object_store_is_read_as_files_are(spark: SparkSession, bucket: Path) -> None:
    (bucket / "log").mkdir()
    pq.write_table(pa.table({"a": [1, 2]}), bucket / "log" / "part.parquet")
    (bucket / "texts").mkdir()
    texts(bucket / "texts" / "1.csv", "a\n3\nx\n")
    texts(bucket / "texts" / "2.csv", "a\n4\n")
    stored = read(spark, Source(path="s3a://bucket/log"), "s3a://bucket/log")
    assert sorted(row["a"] for row in stored.collect()) == [1, 2]
    csv = Source(path="s3a://bucket/texts", format="csv", options={"header": "true"}, schema_ddl="a INT")
    parsed = read(spark, csv, "s3a://bucket/texts").collect()
    assert sorted((row["a"] or 0, row[CORRUPT]) for row in parsed) == [(0, "x"), (3, None), (4, None)]
    one = read(spark, csv, "s3a://bucket/texts/2.csv").collect()
    assert [row["a"] for row in one] == [4]


@pytest.mark.every_engine
def test_an_address_without_files_is_named(spark: SparkSession, bucket: Path) -> None:
    csv = Source(path="s3a://bucket/none", format="csv", options={"header": "true"})
    with pytest.raises(DataError, match=r"log: nothing to read at s3a://bucket/none"):
        read(spark, csv, "s3a://bucket/none")


def test_an_address_that_arrow_does_not_know_is_named(spark: SparkSession) -> None:
    csv = Source(path="ftp://host/x", format="csv", options={"header": "true"})
    with pytest.raises(DataError, match=r"log: ftp://host/x cannot be read .*copy the files"):
        read(spark, csv, "ftp://host/x")
