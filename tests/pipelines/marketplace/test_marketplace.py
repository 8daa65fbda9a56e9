"""Laws of the simulated log: seeded, heavy-tailed, delayed, with exactly the dirt that is planted."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from contracts.config.config import Config, load
from contracts.config.simulation import Simulation
from contracts.errors import ConfigError
from contracts.summaries.marketplace import SimulatedLog
from pipelines.marketplace.marketplace import simulate
from tests.heard_progress import counts, heard

SMALL = Simulation(events=60_000, users=2_000, items=500, days=4, click_rate=0.05)
EXAMPLE = Path(__file__).parents[3] / "examples" / "marketplace.toml"


@dataclass(frozen=True)
class Log:
    raw: Path
    truth: Path
    summary: SimulatedLog
    impressions: pa.Table
    clicks: pa.Table
    users: pa.Table
    items: pa.Table


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Log:
    folder = tmp_path_factory.mktemp("marketplace")
    raw, truth = folder / "raw", folder / "truth"
    summary = simulate(SMALL, 7, raw, truth)
    tables = [pq.read_table(raw / name) for name in ("impressions", "clicks", "users", "items")]
    return Log(raw, truth, summary, *tables)


@pytest.fixture(scope="module")
def example() -> Config:
    return load(EXAMPLE)


def digests(folder: Path) -> dict[str, str]:
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def column(table: pa.Table, name: str) -> np.ndarray:
    values = table[name]
    if pa.types.is_timestamp(values.type):
        values = values.cast(pa.int64())
    return values.to_numpy(zero_copy_only=False)


def keys(table: pa.Table) -> list[tuple[str, str]]:
    return list(zip(table["request_id"].to_pylist(), table["item_id"].to_pylist(), strict=True))


@pytest.mark.slow
def test_one_seed_gives_the_same_bytes_and_another_seed_others(tmp_path: Path) -> None:
    tiny = Simulation(events=4_000, users=300, items=150, days=2)
    for name, seed in (("a", 3), ("b", 3), ("c", 4)):
        simulate(tiny, seed, tmp_path / name / "raw", tmp_path / name / "truth")
    first, second, other = (digests(tmp_path / name) for name in ("a", "b", "c"))
    assert first == second
    assert first.keys() == other.keys()
    assert first["raw/clicks/part-000.parquet"] != other["raw/clicks/part-000.parquet"]


def test_summary_counts_what_was_written(log: Log) -> None:
    rows = log.summary.rows
    assert rows == {"users": 2_000, "items": 500, "impressions": len(log.impressions), "clicks": len(log.clicks)}
    assert len(log.impressions) == SMALL.events + log.summary.duplicate_rows
    assert log.summary.events_per_minute > 0


def test_click_rate_is_the_configured_one(log: Log) -> None:
    """Within five standard errors of the count, plus 3% for the sample the intercept was solved on."""
    rate = len(log.clicks) / SMALL.events
    slack = 5 * np.sqrt(SMALL.click_rate / SMALL.events) + 0.03 * SMALL.click_rate
    assert rate == pytest.approx(SMALL.click_rate, abs=slack)


def test_keys_are_unique_but_for_the_planted_duplicates(log: Log) -> None:
    seen = keys(log.impressions)
    extra = len(seen) - len(set(seen))
    assert 0 < extra == log.summary.duplicate_rows < 0.003 * len(seen)
    assert len(keys(log.clicks)) == len(set(keys(log.clicks)))


def test_a_duplicate_differs_only_in_when_it_was_known(log: Log) -> None:
    table = log.impressions.group_by([n for n in log.impressions.column_names if n != "known_time"]).aggregate(
        [("known_time", "count"), ("known_time", "min"), ("known_time", "max")]
    )
    twice = table.filter(pc.greater(table["known_time_count"], 1))
    assert len(twice) == log.summary.duplicate_rows
    assert pc.all(pc.greater(twice["known_time_max"], twice["known_time_min"])).as_py()


def test_a_request_shows_positions_from_one_on_to_one_user_at_one_time(log: Log) -> None:
    unique = log.impressions.group_by(["request_id", "item_id", "position", "user_id", "event_time"]).aggregate([])
    requests = unique.group_by("request_id").aggregate(
        [("position", "min"), ("position", "max"), ("position", "count_distinct"), ("position", "count"),
         ("user_id", "count_distinct"), ("event_time", "count_distinct"), ("item_id", "count_distinct")]
    )  # fmt: skip
    assert set(column(requests, "position_min")) == {1}
    assert (column(requests, "position_max") == column(requests, "position_count")).all()
    assert (column(requests, "position_count_distinct") == column(requests, "position_count")).all()
    assert (column(requests, "item_id_count_distinct") == column(requests, "position_count")).all()
    assert set(column(requests, "user_id_count_distinct")) == set(column(requests, "event_time_count_distinct")) == {1}


def test_every_click_answers_an_impression_seconds_to_hours_later(log: Log) -> None:
    key = ["request_id", "item_id"]
    joined = log.clicks.join(log.impressions.select([*key, "event_time"]), key, right_suffix="_shown")
    assert joined["event_time_shown"].null_count == 0
    delay = (column(joined, "event_time") - column(joined, "event_time_shown")) / 1e6
    assert delay.min() > 0
    assert delay.max() <= 12 * 3600
    assert np.quantile(delay, 0.99) > 600


def test_knowledge_of_clicks_is_late_with_a_heavy_tail_that_crosses_the_label_window(log: Log) -> None:
    delay = (column(log.clicks, "known_time") - column(log.clicks, "event_time")) / 1e6
    assert delay.min() >= 0
    assert 0.005 < (delay > 86_400).mean() < 0.1
    assert delay.mean() > 5 * np.median(delay)


def test_impressions_are_known_within_minutes(log: Log) -> None:
    delay = (column(log.impressions, "known_time") - column(log.impressions, "event_time")) / 1e6
    assert delay.min() >= 0
    assert delay.max() < 3600


def test_users_and_items_have_heavy_tails(log: Log) -> None:
    for name, population in (("user_id", SMALL.users), ("item_id", SMALL.items)):
        counts = np.sort(np.unique(column(log.impressions, name), return_counts=True)[1])[::-1]
        assert counts[: population // 10].sum() > 0.25 * counts.sum(), name


def test_most_city_brand_pairs_of_a_later_day_were_rarely_or_never_seen(log: Log) -> None:
    joined = log.impressions.join(log.users.select(["user_id", "city"]), "user_id").join(
        log.items.select(["item_id", "brand"]), "item_id"
    )
    pairs = np.char.add(column(joined, "city").astype(str), column(joined, "brand").astype(str))
    times = column(joined, "event_time")
    early = times < np.median(times)
    unseen = ~np.isin(pairs[~early], pairs[early])
    assert 0.01 < unseen.mean() < 0.99


def test_the_planted_leak_leaks(log: Log) -> None:
    clicked = np.isin(["/".join(k) for k in keys(log.impressions)], ["/".join(k) for k in keys(log.clicks)])
    present = log.impressions["dwell_seconds"].is_valid().to_numpy()
    assert present[clicked].all()
    assert 0 < present[~clicked].mean() < 0.03


def test_truth_is_apart_from_the_raw_log_and_nothing_is_pickled(log: Log) -> None:
    assert {path.name for path in log.raw.iterdir()} == {"impressions", "clicks", "users", "items"}
    assert {path.suffix for path in log.raw.rglob("*") if path.is_file()} == {".parquet"}
    assert {path.suffix for path in log.truth.iterdir()} == {".npz", ".json"}
    for name in {n for table in (log.impressions, log.clicks, log.users, log.items) for n in table.column_names}:
        assert not any(word in name for word in ("prob", "logit", "truth", "taste", "quality")), name


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"events": 20}, "events"),
        ({"users": 10}, "users"),
        ({"items": 10}, "items"),
        ({"shares": {"fields": 1.0}}, "crosses_order_2"),
    ],
)
def test_worlds_that_cannot_be_are_refused(tmp_path: Path, changes: dict[str, Any], named: str) -> None:
    with pytest.raises(ConfigError, match=named):
        simulate(SMALL.model_copy(update=changes), 1, tmp_path / "raw", tmp_path / "truth")


def test_the_example_loads_and_every_plain_field_has_its_column(example: Config, log: Log) -> None:
    assert example.version == "2"
    assert example.simulation is not None
    sides = {
        "user": log.users.column_names,
        "item": log.items.column_names,
        "context": [*log.impressions.column_names, *example.log.derive],
    }
    for field in example.fields:
        if field.kind in ("categorical", "numeric", "multi_valued"):
            assert field.source_column in sides[field.side], field.name


def test_the_example_leaves_the_leak_out(example: Config) -> None:
    assert "dwell_seconds" not in {field.source_column for field in example.fields}


def test_the_example_windows_fit_the_simulated_days(example: Config) -> None:
    """They reach a label window beyond the last simulated day, and each is longer than its embargo."""
    assert example.simulation is not None
    start, end = example.windows.statistics[0], example.windows.test[1]  # type: ignore[index]
    assert start == example.simulation.start
    assert (end - start).total_seconds() - example.embargo == example.simulation.days * 86_400
    for name, span in example.windows.named().items():
        assert (span[1] - span[0]).total_seconds() > example.embargo, name  # type: ignore[index]


def test_the_costly_duplicate_says_what_category_says(example: Config, log: Log) -> None:
    crosses = [field for field in example.fields if field.kind == "cross"]
    assert len(crosses) == 1
    constant, copied = crosses[0].parts
    assert set(log.users[constant].to_pylist()) == {"home"}
    assert copied == "category"
    assert crosses[0].cost > 5 * max(field.cost for field in example.fields if field.name == copied)


def test_events_are_counted_day_by_day(tmp_path: Path) -> None:
    with heard() as said:
        made = simulate(SMALL, 7, tmp_path / "raw", tmp_path / "truth")
    told = counts(said, "events")
    assert len(told) == SMALL.days + 1
    assert told == sorted(set(told))
    assert told[-1] == (made.events, made.events)
