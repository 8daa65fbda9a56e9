"""A log of purchases through `sluice features`: days, late rows, seeds, features of the drawn rows, and errors."""

from __future__ import annotations

import hashlib
import shutil
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from contracts.artifacts import DRAWS, ITEM, LABEL, ROW, TIME, USER, Artifacts
from contracts.config.config import Config
from contracts.errors import DataError, EmptyLogError
from contracts.summaries.features import FeaturesSummary
from pipelines.features.kept_counts import KeptCounts
from pipelines.features.raw_features import build_features
from pipelines.jobs.feature_job import make_features
from pipelines.negatives.drawn_rows import draw_rows

START, DAYS, ROWS = datetime(2026, 1, 5, tzinfo=UTC), 8, 700
COUNT = 3
FIELDS: list[dict[str, Any]] = [
    {"name": "user", "kind": "categorical", "side": "user", "column": "user_id"},
    {"name": "item", "kind": "categorical", "side": "item", "column": "item_id"},
    {"name": "price", "kind": "numeric", "side": "item"},
    {"name": "shop", "kind": "categorical", "side": "context"},
    {"name": "recent", "kind": "sequence", "side": "user", "of": "item", "length": 5},
    {"name": "taken", "kind": "counter", "side": "item", "by": ["item_id"], "windows": ["3d"], "statistics": ["count"]},
]


def config(seed: int = 5, **label: Any) -> Config:
    return Config.model_validate({
        "name": "purchases", "fields": FIELDS, "seed": seed, "serve": {"parity_rows": 20},
        "log": {"path": "{data}/log.parquet", "user_id": "user_id", "item_id": "item_id", "event_time": "time",
                "known_time": "known", "key": ["id"]},
        "label": {"positives_only": True, "repeat": True, "negatives": {"per_positive": COUNT}} | label,
    })


def takes(late: int = 0) -> dict[str, list[Any]]:
    """Prices rise every day; `late` further takes of the third day are known on the seventh."""
    random = np.random.default_rng(4)
    hours = np.sort(random.uniform(0, 24 * DAYS, ROWS)).tolist()
    item = np.minimum(random.geometric(0.08, ROWS) - 1, 39).tolist()
    times = [START + timedelta(hours=hour) for hour in hours]
    made: dict[str, list[Any]] = {
        "id": list(range(ROWS)), "user_id": [f"u{n}" for n in random.integers(0, 15, ROWS)],
            "item_id": [f"i{n}" for n in item], "time": times, "known": times,
            "shop": random.choice(["web", "street"], ROWS).tolist(),
            "price": [float(n + time.day) for n, time in zip(item, times, strict=True)]}
    more: dict[str, list[Any]] = {
        "id": [ROWS + n for n in range(late)], "user_id": [f"u{n % 15}" for n in range(late)],
            "item_id": [f"new{n % 3}" for n in range(late)], "time": [START + timedelta(days=2, hours=5)] * late,
            "known": [START + timedelta(days=6, hours=1)] * late, "shop": ["web"] * late, "price": [1.0] * late}
    return {name: [*made[name], *more[name]] for name in made}


def write(folder: Path, log: dict[str, list[Any]]) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    instant = pa.timestamp("us", "UTC")
    columns = {name: pa.array(values, instant) if name in ("time", "known") else values for name, values in log.items()}
    pq.write_table(pa.table(columns), folder / "log.parquet")
    return folder


def rows(folder: Path) -> list[dict[str, Any]]:
    table = ds.dataset(folder, format="parquet", partitioning="hive", exclude_invalid_files=True).to_table()
    return sorted(table.to_pylist(), key=lambda row: row[ROW])


def digests(folder: Path) -> dict[str, str]:
    """By day, of its rows."""
    found: defaultdict[str, str] = defaultdict(str)
    for row in rows(folder):
        found[str(row["day"])] += str(row)
    return {day: hashlib.sha256(text.encode()).hexdigest() for day, text in found.items()}


@contextmanager
def unreadable(folder: Path, after: str) -> Iterator[None]:
    """No file of a later day is Parquet inside."""
    later = {file: file.read_bytes() for file in folder.glob("day=*/*.parquet") if file.parent.name > f"day={after}"}
    assert later
    for file, content in later.items():
        file.write_bytes(b"-" * len(content))
    yield
    for file, content in later.items():
        file.write_bytes(content)


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("purchases"), takes())


@pytest.fixture(scope="module")
def made(
    spark: SparkSession, data: Path, tmp_path_factory: pytest.TempPathFactory
) -> tuple[Artifacts, FeaturesSummary]:
    out = Artifacts(tmp_path_factory.mktemp("out"))
    return out, make_features(config(), data, out)


def test_every_take_is_accounted_for(made: tuple[Artifacts, FeaturesSummary]) -> None:
    out, figures = made
    drawn = figures.drawn
    assert drawn is not None
    assert drawn.positives + drawn.newcomers + drawn.repeats + drawn.exhausted == figures.ingest.events == ROWS
    assert drawn.negatives == COUNT * drawn.positives
    assert drawn.newcomers >= drawn.items
    found = rows(out.drawn)
    assert len(found) == figures.features.rows == drawn.positives + drawn.negatives
    assert len({row[ROW] for row in found}) == len(found)
    assert sum(row[LABEL] for row in found) == drawn.positives


def test_drawn_rows_have_the_moment_and_context_of_their_positive(made: tuple[Artifacts, FeaturesSummary]) -> None:
    positives = {(row[USER], row[TIME]): row for row in rows(made[0].drawn) if row[LABEL]}
    for row in rows(made[0].drawn):
        own = positives[row[USER], row[TIME]]
        assert (row["shop"], row["_known"]) == (own["shop"], own["_known"])
        assert row[DRAWS] > 0


def test_features_are_those_of_the_moment_and_count_takes_alone(made: tuple[Artifacts, FeaturesSummary]) -> None:
    """Counters and sequences by hand, as of the last midnight; prices as the last take before had them."""
    log = takes()
    events = list(zip(log["user_id"], log["item_id"], log["time"], log["price"], strict=True))
    for row in rows(made[0].features):
        midnight = row[TIME].replace(hour=0, minute=0, second=0, microsecond=0)
        since = midnight - timedelta(days=3)
        assert row["taken_count_3d"] == sum(item == row[ITEM] and since < at < midnight for _, item, at, _ in events)
        mine = [item for user, item, at, _ in events if user == row[USER] and at < midnight]
        assert row["recent"] == mine[::-1][:5]
        assert row["price"] == [price for _, item, at, price in events if item == row[ITEM] and at < row[TIME]][-1]


@pytest.mark.slow
def test_a_second_run_touches_nothing_and_a_day_comes_out_as_in_the_whole(
    spark: SparkSession, data: Path, made: tuple[Artifacts, FeaturesSummary],
) -> None:
    out, first = made
    before = digests(out.features)
    day = "2026-01-10"
    (next((out.drawn / f"day={day}").glob("*.parquet"))).unlink()
    again = make_features(config(), data, out, day=day)
    assert again.drawn is not None
    assert again.drawn.written == (day,)
    assert again.features.written == ()
    whole = make_features(config(), data, out)
    assert whole.drawn is not None
    assert whole.drawn.written == whole.features.written == ()
    assert digests(out.features) == before
    assert {name: window.content_hash for name, window in whole.examples.items()} == {
        name: window.content_hash for name, window in first.examples.items()}


def test_a_day_opens_no_later_day(spark: SparkSession, made: tuple[Artifacts, FeaturesSummary]) -> None:
    out = made[0]
    with unreadable(out.events, after="2026-01-09"):
        drawn = draw_rows(spark, config(), out, ["2026-01-09"])
    assert drawn.negatives == COUNT * drawn.positives > 0
    assert drawn.written == ()


def test_features_in_passes_are_those_in_one(
    spark: SparkSession, made: tuple[Artifacts, FeaturesSummary], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All rows ask, 800 at once: takes and rows drawn for them."""
    out, asked = Artifacts(tmp_path / "out"), []
    shutil.copytree(made[0].events.parents[1], tmp_path / "out")

    def write(kept: KeptCounts, *args: Any) -> None:
        asked.append(args[3])
        whole(kept, args[0], args[1], args[2], args[3], 800)

    whole = KeptCounts.write
    monkeypatch.setattr(KeptCounts, "write", write)
    found = build_features(spark, config(), out, rows_at_once=800)
    assert asked == [found.rows]
    assert found.rows > 3 * ROWS
    assert found.written == ()
    assert digests(out.features) == digests(made[0].features)


@pytest.mark.parametrize("days", [["2026-01-01"], ["2026-01-01", "2026-01-09"]])
def test_a_day_without_takes_is_refused(
    spark: SparkSession, made: tuple[Artifacts, FeaturesSummary], days: list[str]
) -> None:
    with pytest.raises(EmptyLogError, match="no takes on 2026-01-01"):
        draw_rows(spark, config(), made[0], days)


def test_late_rows_change_their_day_and_what_could_know_of_them(
    spark: SparkSession, made: tuple[Artifacts, FeaturesSummary], tmp_path: Path
) -> None:
    """Late takes are of new items: from the moment they are known on, those can be drawn, and not before."""
    late = make_features(config(), write(tmp_path, takes(late=30)), Artifacts(tmp_path / "out"))
    assert late.drawn is not None
    before, after = digests(made[0].drawn), digests(tmp_path / "out" / "drawn")
    changed = {day for day in before if before[day] != after.get(day)}
    assert changed <= {"2026-01-07", "2026-01-11", "2026-01-12"}
    assert "2026-01-12" in changed
    for row in rows(tmp_path / "out" / "drawn"):
        assert not row[ITEM].startswith("new") or row[TIME] > START + timedelta(days=6, hours=1)


def test_another_seed_draws_others(
    spark: SparkSession, data: Path, made: tuple[Artifacts, FeaturesSummary], tmp_path: Path
) -> None:
    other = make_features(config(seed=6, negatives={"per_positive": COUNT, "popularity": 1.0}), data,
                          Artifacts(tmp_path))
    assert made[1].drawn is not None
    assert other.drawn is not None
    assert other.drawn.positives == made[1].drawn.positives
    found, expected = digests(tmp_path / "drawn"), digests(made[0].drawn)
    assert all(found[day] != expected[day] for day in expected)


def neighbourly() -> dict[str, list[Any]]:
    """Each user keeps to a fifth of the items."""
    log = takes()
    steps = np.random.default_rng(8).geometric(0.12, ROWS).clip(1, 20).tolist()
    return log | {"item_id": [f"i{(7 * int(user[1:]) + step) % 100}"
                              for user, step in zip(log["user_id"], steps, strict=True)]}


@pytest.fixture(scope="module")
def retrieved(
    spark: SparkSession, tmp_path_factory: pytest.TempPathFactory
) -> dict[float, tuple[Path, Artifacts, FeaturesSummary]]:
    """By share of candidates."""
    data = write(tmp_path_factory.mktemp("neighbourly"), neighbourly())
    made = {}
    for share in (0.0, 0.8):
        out = Artifacts(tmp_path_factory.mktemp("out"))
        made[share] = data, out, make_features(of_candidates(share), data, out)
    return made


def of_candidates(share: float) -> Config:
    return config(negatives={"per_positive": COUNT, "candidates": share}, repeat=False)


def test_candidates_are_nearer_than_what_is_drawn_every_item_alike(
    retrieved: dict[float, tuple[Path, Artifacts, FeaturesSummary]]
) -> None:
    near = {}
    for share, (_, out, figures) in retrieved.items():
        negatives = [row for row in rows(out.drawn) if not row[LABEL]]
        near[share] = np.mean([(int(row[ITEM][1:]) - 7 * int(row[USER][1:])) % 100 <= 20 for row in negatives])
        assert figures.drawn is not None
        assert figures.drawn.negatives == len(negatives)
        assert (figures.drawn.retrieved > 0.5 * len(negatives)) == (share > 0)
    assert near[0.8] > 1.5 * near[0.0]


def test_candidates_were_there_and_not_taken_and_every_row_has_a_rate(
    retrieved: dict[float, tuple[Path, Artifacts, FeaturesSummary]]
) -> None:
    log = neighbourly()
    events = list(zip(log["user_id"], log["item_id"], log["time"], strict=True))
    for row in rows(retrieved[0.8][1].drawn):
        assert 0 < row[DRAWS] <= COUNT
        assert any(item == row[ITEM] and at < row[TIME] for _, item, at in events)
        if not row[LABEL]:
            assert not any((user, item) == (row[USER], row[ITEM]) and at <= row[TIME] for user, item, at in events)


def test_candidates_of_a_second_run_and_of_a_day_alone_are_the_same(
    spark: SparkSession, retrieved: dict[float, tuple[Path, Artifacts, FeaturesSummary]]
) -> None:
    _, out, _ = retrieved[0.8]
    before = digests(out.drawn)
    assert draw_rows(spark, of_candidates(0.8), out).written == ()
    with unreadable(out.events, after="2026-01-09"):
        assert draw_rows(spark, of_candidates(0.8), out, ["2026-01-09"]).written == ()
    assert digests(out.drawn) == before


@pytest.mark.parametrize(("change", "repeat", "sentence"), [
    ({"item_id": ["only"] * ROWS}, True, "the log has 1 item"),
    ({"user_id": [f"u{n % 2}" for n in range(ROWS)], "item_id": [f"i{n % 2}" for n in range(ROWS)]}, False,
     "set label.repeat = true where"),
])
def test_where_nothing_can_be_drawn_the_sentence_says_why(
    spark: SparkSession, tmp_path: Path, change: dict[str, list[Any]], repeat: bool, sentence: str
) -> None:
    folder = write(tmp_path, takes() | change)
    with pytest.raises(DataError, match=sentence):
        make_features(config(repeat=repeat), folder, Artifacts(tmp_path / "out"))
