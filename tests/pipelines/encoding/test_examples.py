from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import functions as F

from contracts.artifacts import LABEL, ROW, TIME, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.features.feature_spec import FeatureField, FeatureSpec
from contracts.features.vocabulary import Vocabulary
from pipelines.encoding import examples
from pipelines.encoding.example_figures import describe
from pipelines.engine.worker_files import workers_write
from pipelines.windows.windows import WINDOW

SPEC = FeatureSpec(fields=(FeatureField(name="city", kind="categorical", side="user", vocabulary="city", size=4),))
STORED = {"city": Vocabulary.of(["a", "b"], "string")}
DAYS = {
    "train": ["2026-01-05", "2026-01-06"], "validation": ["2026-01-06"], "test": ["2026-01-07"], None: ["2026-01-05"],
}
CONFIG = Config.model_validate({
    "name": "t", "log": {"path": "x"}, "label": {"expression": "y"}, "features": {"negative_rate": 0.5},
    "fields": [{"name": "city", "kind": "categorical", "side": "user"}],
})


def windowed(spark, partitions=2, city="a"):
    """60 rows per window and day, every third positive."""
    spans = [(window, day) for window, days in DAYS.items() for day in days for _ in range(60)]
    count = len(spans)
    table = pa.table({
        ROW: pa.array(range(count), pa.int64()),
        LABEL: pa.array([float(i % 3 == 0) for i in range(count)], pa.float32()),
        WINDOW: pa.array([window for window, _ in spans]), "day": [day for _, day in spans], "city": [city] * count,
        TIME: pa.array([f"{day}T12:00:00Z" for _, day in spans]).cast(pa.timestamp("us", "UTC")),
    })
    return spark.createDataFrame(table).repartition(partitions)


def files(out):
    found = sorted(path for window in WINDOWS for path in out.examples(window).glob("day=*/*.parquet"))
    return {path: pq.ParquetFile(path).read().to_pydict() for path in found}


def rows(out, window):
    tables = [table for path, table in files(out).items() if out.examples(window) in path.parents]
    return sorted(row for table in tables for row in table[ROW])


@pytest.fixture
def out(tmp_path):
    return Artifacts(tmp_path)


def test_every_window_has_its_days_and_training_alone_is_thinned(spark, out):
    assert examples.write([windowed(spark)], SPEC, STORED, CONFIG, out) == {name: DAYS[name] for name in WINDOWS}
    assert len(rows(out, "validation")) == len(rows(out, "test")) == 60
    train = rows(out, "train")
    assert {row for row in range(120) if row % 3 == 0} <= set(train)
    assert 60 < len(train) < 100
    assert not list(out.examples("train").parent.glob(".*"))


def test_rows_are_sorted_in_a_few_files_whatever_the_partitioning(spark, out, tmp_path):
    examples.write([windowed(spark)], SPEC, STORED, CONFIG, out)
    found = files(out)
    assert all(table[ROW] == sorted(table[ROW]) for table in found.values())
    assert all(len(list(path.parent.glob("*.parquet"))) == 1 for path in found)
    other = Artifacts(tmp_path / "other")
    examples.write([windowed(spark, partitions=5)], SPEC, STORED, CONFIG, other)
    assert [rows(other, window) for window in WINDOWS] == [rows(out, window) for window in WINDOWS]


def test_a_large_day_has_more_files(tmp_path, monkeypatch):
    monkeypatch.setattr(examples, "FILE_BYTES", 100)
    for day, size in (("2026-01-05", 399), ("2026-01-06", 1001)):
        (tmp_path / f"day={day}").mkdir()
        (tmp_path / f"day={day}" / "part.parquet").write_bytes(b"-" * size)
    assert examples.files_of(tmp_path) == examples.files_of(tmp_path, "2026-01-06") == 11
    assert (examples.files_of(tmp_path, "2026-01-05"), examples.files_of(tmp_path / "none")) == (4, 1)


@pytest.mark.every_engine
@pytest.mark.parametrize("by_workers", [True, False])
def test_row_groups_are_small_so_that_training_mixes_days(spark, out, by_workers, monkeypatch):
    monkeypatch.setattr(examples, "GROUP_ROWS", 25)
    monkeypatch.setattr(examples, "workers_write", lambda rows: by_workers and workers_write(rows))
    examples.write([windowed(spark)], SPEC, STORED, CONFIG, out)
    for path in out.examples("test").glob("day=*/*.parquet"):
        meta = pq.read_metadata(path)
        assert [meta.row_group(number).num_rows for number in range(meta.num_row_groups)] == [25, 25, 10]


def test_a_large_day_is_written_as_so_many_files_of_the_same_rows(spark, out, tmp_path, monkeypatch):
    other = Artifacts(tmp_path / "other")
    examples.write([windowed(spark)], SPEC, STORED, CONFIG, other)
    monkeypatch.setattr(examples, "files_of", lambda *_: 3)
    written = examples.write([windowed(spark, partitions=5)], SPEC, STORED, CONFIG, out)
    assert written == {name: DAYS[name] for name in WINDOWS}
    for path, table in files(out).items():
        number = int(path.name.split("-", 1)[0])
        assert table[ROW] == sorted(table[ROW])
        assert {row % 3 for row in table[ROW]} == {number}
        assert examples.FILE not in table
        assert len(list(path.parent.iterdir())) == 3
    assert [rows(out, window) for window in WINDOWS] == [rows(other, window) for window in WINDOWS]
    one, same = (describe(spark, {window: made.examples(window) for window in WINDOWS}) for made in (out, other))
    assert [rows.content_hash for rows in one.values()] == [rows.content_hash for rows in same.values()]
    before = set(files(out))
    again = examples.write([windowed(spark)], SPEC, STORED, CONFIG, out)
    assert again == {name: [] for name in WINDOWS}
    assert set(files(out)) == before


def test_days_that_come_one_after_another_have_their_files(spark, out, monkeypatch):
    monkeypatch.setattr(examples, "files_of", lambda *_: 2)
    killed = out.examples("train").with_name(".staging") / "window=train" / "day=2026-01-05" / f"{examples.FILE}=0"
    killed.mkdir(parents=True)
    (killed / "part-0.parquet").write_bytes(b"-")
    days = sorted({day for found in DAYS.values() for day in found})
    parts = [windowed(spark).where(F.col("day") == day) for day in days]
    assert examples.write(parts, SPEC, STORED, CONFIG, out) == {name: DAYS[name] for name in WINDOWS}
    assert all(len(list(path.parent.glob("*.parquet"))) == 2 for path in files(out))
    assert not list(out.examples("train").parent.glob(".*"))


def test_a_day_replaces_its_own_rows_in_every_window_and_no_others(spark, out):
    examples.write([windowed(spark)], SPEC, STORED, CONFIG, out)
    before = {window: rows(out, window) for window in WINDOWS}
    written = examples.write([windowed(spark, city="b")], SPEC, STORED, CONFIG, out, day="2026-01-06")
    assert written == {"train": ["2026-01-06"], "validation": ["2026-01-06"], "test": []}
    assert {window: rows(out, window) for window in WINDOWS} == before
    ids = {path: set(table["city"]) for path, table in files(out).items()}
    assert all(found == ({3} if path.parent.name == "day=2026-01-06" else {2}) for path, found in ids.items())
