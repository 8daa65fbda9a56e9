"""Late clicks re-open the labels of the days they belong to; what else changes is what could have known of them. On
Apache Spark late clicks do what they do on the embedded engine: tests/sluice/test_engines_agree.py."""

from __future__ import annotations

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest

from contracts.artifacts import LABEL, LABEL_TIME, ROW, USER, Artifacts
from contracts.config.config import Config
from pipelines.features.raw_features import build_features
from pipelines.ingest.ingest import ingest

START = datetime(2026, 1, 5, tzinfo=UTC)
DAYS, ROWS = 6, 240
CONFIG = Config.model_validate({
    "name": "late", "features": {"publish_every": "1d"},
    "fields": [
        {"name": "item", "kind": "categorical", "side": "item", "column": "item_id", "min_count": 1},
        {"name": "recent", "kind": "sequence", "side": "user", "of": "item", "length": 3},
        {"name": "shown", "kind": "counter", "side": "item", "by": ["item_id"], "windows": ["2d"],
         "statistics": ["count"]},
    ],
    "log": {"path": "{data}/log", "user_id": "user_id", "item_id": "item_id", "event_time": "time",
            "known_time": "known", "key": ["id"]},
    "label": {"clicks": {"path": "{data}/clicks", "on": ["id"], "event_time": "time", "known_time": "known",
                         "window": "6h"}},
})


class Log:
    """Rows a tenth of which are clicked, known at once; `late` adds a click that is known only later."""

    def __init__(self, folder: Path) -> None:
        """In this folder, where the files are written unless they are there."""
        draw = np.random.default_rng(11)
        self.folder = folder
        self.times = [START + timedelta(hours=24 * DAYS * n / ROWS) for n in range(ROWS)]
        self.users, self.items = draw.integers(0, 6, ROWS), draw.integers(0, 8, ROWS)
        self.clicked = np.flatnonzero(draw.random(ROWS) < 0.1)
        if not folder.exists():
            self._write(folder)

    def _write(self, folder: Path) -> None:
        stamp = pa.timestamp("us", "UTC")
        (folder / "log").mkdir(parents=True)
        (folder / "clicks").mkdir()
        pq.write_table(pa.table({
            "id": np.arange(ROWS), "user_id": [f"u{n}" for n in self.users], "item_id": [f"i{n}" for n in self.items],
            "time": pa.array(self.times, stamp), "known": pa.array(self.times, stamp),
        }), folder / "log" / "part-0.parquet")
        self.clicks("on_time", self.clicked.tolist(), timedelta(minutes=5), timedelta(minutes=6))

    def clicks(self, name: str, rows: list[int], after: timedelta, known: timedelta) -> None:
        stamp = pa.timestamp("us", "UTC")
        times = [self.times[row] for row in rows]
        pq.write_table(pa.table({
            "id": rows, "time": pa.array([when + after for when in times], stamp),
            "known": pa.array([when + known for when in times], stamp),
        }), self.folder / "clicks" / f"{name}.parquet")

    def row_of(self, day: int) -> int:
        """One that was not clicked, some hours into the day, of a user who comes again."""
        return next(n for n in range(day * ROWS // DAYS + 5, ROWS) if n not in self.clicked)


def day(number: int) -> str:
    return (START + timedelta(days=number)).date().isoformat()


def made(spark, log: Log, out: Artifacts) -> tuple[list[str], list[str]]:
    """Days written of events, and of features."""
    return list(ingest(spark, CONFIG, log.folder, out).written), list(build_features(spark, CONFIG, out).written)


def rows(folder: Path) -> dict[str, list[dict]]:
    table = ds.dataset(folder, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    found: dict[str, list[dict]] = {}
    for row in sorted(table.to_pylist(), key=lambda one: one[ROW]):
        found.setdefault(str(row["day"]), []).append(row)
    return found


def files(folder: Path) -> dict[str, int]:
    return {path.as_posix(): path.stat().st_mtime_ns for path in folder.glob("day=*/*.parquet")}


@pytest.fixture(scope="module")
def first(spark, tmp_path_factory) -> Path:
    """Where the log and what a first run made of it lie."""
    folder = tmp_path_factory.mktemp("first")
    assert made(spark, Log(folder / "data"), Artifacts(folder / "out")) == ([day(n) for n in range(DAYS)],) * 2
    return folder


@pytest.fixture
def world(first, tmp_path) -> tuple[Log, Artifacts]:
    """A copy of it."""
    shutil.copytree(first, tmp_path, dirs_exist_ok=True)
    return Log(tmp_path / "data"), Artifacts(tmp_path / "out")


@pytest.mark.every_engine
def test_a_second_run_writes_nothing(spark, world):
    log, out = world
    before = files(out.events) | files(out.features)
    assert made(spark, log, out) == ([], [])
    assert files(out.events) | files(out.features) == before


def test_a_late_click_reopens_its_day_and_reaches_only_days_after_it_was_known(spark, world):
    log, out = world
    row = log.row_of(1)
    before, stamps = (rows(out.events), rows(out.features)), files(out.features)
    log.clicks("late", [row], timedelta(hours=1), timedelta(days=2))
    events, features = made(spark, log, out)
    assert events == [day(1)]
    changed = [one for one, other in zip(before[0][day(1)], rows(out.events)[day(1)], strict=True) if one != other]
    assert [(one[USER], one[LABEL]) for one in changed] == [(f"u{log.users[row]}", 0.0)]
    reopened = next(one for one in rows(out.events)[day(1)] if one[ROW] == changed[0][ROW])
    assert (reopened[LABEL], reopened[LABEL_TIME]) == (1.0, log.times[row] + timedelta(days=2))
    after = rows(out.features)
    assert features == [one for one in sorted(after) if after[one] != before[1][one]]
    assert day(1) in features
    assert set(features) - {day(1)}  # its user's history, once it was known
    assert min(set(features) - {day(1)}) > day(3)
    untouched = {path: stamp for path, stamp in stamps.items() if path.split("day=")[1][:10] not in features}
    assert untouched.items() <= files(out.features).items()


def test_a_click_after_the_label_window_changes_nothing(spark, world):
    log, out = world
    log.clicks("too_late", [log.row_of(2)], timedelta(hours=7), timedelta(hours=8))
    assert made(spark, log, out) == ([], [])


@pytest.mark.every_engine
def test_a_late_row_changes_its_day_and_what_counts_it(spark, world):
    log, out = world
    stamp = pa.timestamp("us", "UTC")
    when = START + timedelta(days=2, hours=3)
    pq.write_table(pa.table({"id": [ROWS], "user_id": ["u1"], "item_id": ["i1"], "time": pa.array([when], stamp),
                             "known": pa.array([when + timedelta(days=1)], stamp)}),
                   log.folder / "log" / "part-1.parquet")
    events, features = made(spark, log, out)
    assert events == [day(2)]
    assert features[0] == day(2)
    assert set(features) <= {day(2), day(4)}
