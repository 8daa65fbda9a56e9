"""Counts made once for all passes are those that each pass would make; see also test_raw_features.py."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import Artifacts
from contracts.config.config import Config
from contracts.features.event_clock import SECOND
from pipelines.engine.day_partitions import read_places, rows_in
from pipelines.features import kept_counts
from pipelines.features.history_features import HistoryFeatures
from pipelines.features.ingested_tables import Impressions, read_tables
from pipelines.features.kept_counts import KeptCounts, first_publish
from pipelines.features.measures import MOMENT
from pipelines.features.running_counters import running_counts
from pipelines.windows.publish_clock import AT, PublishClock, clocks
from tests.pipelines.ingested_log import event, write_ingested

DAYS = ["2026-01-05", "2026-01-06", "2026-01-07"]
LOG = [event(row, 3.1 * row, f"u{row % 2}", None if row < 9 else "i", clicked=3.1 * row + 1) for row in range(21)]

ROWS_OF_DAY = {"2026-01-05": 8, "2026-01-06": 8, "2026-01-07": 5}


def config(publish_every: str) -> Config:
    counter: dict[str, Any] = {"kind": "counter", "windows": ["1d", "30h"]}
    return Config.model_validate({
        "name": "t", "log": {"path": "log", "user_id": "uid", "item_id": "iid", "event_time": "time"},
        "label": {"clicks": {"path": "clicks", "on": ["uid"], "window": "2h"}},
        "features": {"publish_every": publish_every, "also_fresh": True},
        "fields": [{"name": "of_user", "side": "user", "by": ["uid"], **counter},
                   {"name": "of_item", "side": "item", "by": ["iid"], **counter}],
    })


@pytest.mark.parametrize(("publish_every", "drawn"), [("6h", False), ("2d", True)])
def test_a_day_reads_the_counts_of_its_own_publishes(
    spark: SparkSession, tmp_path: Path, publish_every: str, drawn: bool
) -> None:
    """Of impressions that ask, and of rows of their own. None of the first day has an item: nothing is to be read."""
    chosen, out = config(publish_every), write_ingested(Artifacts(tmp_path), LOG, [], [])
    tables = read_tables(spark, chosen, out)
    history = HistoryFeatures(chosen, tables.columns(chosen), 0.1, events=len(LOG))
    impressions = Impressions(tables, tables.impressions([], chosen.label_window))
    kept = KeptCounts(tmp_path / "counts", history)
    kept.write(impressions, impressions.frame if drawn else F.lit(True), ROWS_OF_DAY, rows_at_once=8)
    for clock in clocks(chosen.features):
        for group in history.groups():
            whole = running_counts(impressions.frame, F.lit(True), group.keys, group.measures, clock)
            rows = whole.collect()
            for day in DAYS:
                of_day = impressions.frame.where(F.col("day") == day)
                asked = {row[0] for row in of_day.select(clock.last_publish(F.col(AT))).distinct().collect()}
                found = kept.read(of_day, group, clock, [day]).collect()
                assert sorted(r for r in found if r[MOMENT] in asked) == sorted(r for r in rows if r[MOMENT] in asked)
    assert kept.folder.exists()
    kept.remove()
    assert not kept.folder.exists()


def test_rows_that_ask_and_are_no_impressions_count_as_held(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """40 takes of as many users and items, each of which asks 4 times more: 40 rows at once are some of five parts."""
    log = [event(row, 0.1 * row, f"u{row}", f"i{row}") for row in range(40)]
    chosen, out = config("6h"), write_ingested(Artifacts(tmp_path), log)
    tables = read_tables(spark, chosen, out)
    impressions = Impressions(tables, tables.impressions([], chosen.label_window))
    later = F.explode(F.array(*[F.col(AT) + n * SECOND for n in range(1, 5)]))
    history = HistoryFeatures(chosen, tables.columns(chosen), 0.1, events=len(log))
    held = []

    def read(session: SparkSession, places: list[Path]) -> DataFrame:
        held.append(sum(map(rows_in, places)))
        return read_places(session, places)

    monkeypatch.setattr(kept_counts, "read_places", read)
    kept = KeptCounts(tmp_path / "counts", history)
    kept.write(impressions, impressions.frame.withColumn(AT, later), {"2026-01-05": 40}, asked=160, rows_at_once=40)
    assert sum(held) > 400
    assert max(held) < 80


def test_a_day_asks_for_publishes_of_the_days_before_it() -> None:
    day = 86_400 * SECOND
    assert first_publish("2026-01-07", PublishClock(day)) == "2026-01-07"
    assert first_publish("2026-01-07", PublishClock(7 * day)) == "2026-01-01"
    assert first_publish("2026-01-07", PublishClock(1)) == "2026-01-07"
