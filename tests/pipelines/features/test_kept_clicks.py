"""A pass lists from kept clicks what it lists from all events; see also test_raw_features.py."""

from __future__ import annotations

from pathlib import Path

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, ROW, USER, Artifacts
from contracts.config.config import Config
from pipelines.features.history_features import HistoryFeatures
from pipelines.features.ingested_tables import Impressions, read_tables
from pipelines.features.kept_clicks import KeptClicks
from pipelines.windows.publish_clock import clocks
from tests.pipelines.ingested_log import event, write_ingested

LOG = [event(row, 3.1 * row, f"u{row % 2}", "i", clicked=3.1 * row + 1 if 8 <= row < 18 else None) for row in range(21)]
TARGET = {"name": "brand", "kind": "categorical", "side": "item"}
SEQUENCE = {"name": "recent", "kind": "sequence", "side": "user", "of": "brand", "length": 4}


def config(*fields: dict[str, object]) -> Config:
    return Config.model_validate({
        "name": "t", "log": {"path": "log", "user_id": "uid", "item_id": "iid", "event_time": "time"},
        "items": {"path": "items", "key": "iid"}, "features": {"publish_every": "6h", "also_fresh": True},
        "label": {"clicks": {"path": "clicks", "on": ["uid"], "window": "2h"}}, "fields": [TARGET, *fields],
    })


@pytest.fixture
def out(tmp_path: Path) -> Artifacts:
    return write_ingested(Artifacts(tmp_path), LOG, [], [{"_item": "i", "brand": "b"}])


def test_lists_of_a_day_are_those_from_all_events(spark: SparkSession, out: Artifacts) -> None:
    """No impression of the first day is clicked. The listed column is one of the items' table."""
    chosen = config(SEQUENCE)
    tables = read_tables(spark, chosen, out)
    history = HistoryFeatures(chosen, tables.columns(chosen), 0.1, events=len(LOG))
    impressions = Impressions(tables, tables.impressions([], chosen.label_window))
    kept = KeptClicks(out.features.with_name("clicks"), history)
    kept.write(impressions)
    assert sum(1 for _ in kept.folder.glob(f"{DAY}=*")) == 2
    for day in ("2026-01-05", "2026-01-06", "2026-01-07"):
        rows = impressions.frame.where(F.col(DAY) == day)
        of_day = Impressions(tables, rows)
        for clock in clocks(chosen.features):
            name = f"recent{clock.suffix}"
            lists = [
                {row[ROW]: row[name] for row in history.add(rows, clicks, clock).select(ROW, name).collect()}
                for clicks in (impressions, kept.read(spark, of_day, [day]))
            ]
            assert lists[0] == lists[1]
    assert any(lists[0].values())
    kept.remove()
    assert not kept.folder.exists()


def test_a_pass_holds_no_click_of_a_user_who_stays_away(spark: SparkSession, out: Artifacts) -> None:
    chosen = config(SEQUENCE)
    tables = read_tables(spark, chosen, out)
    impressions = Impressions(tables, tables.impressions([], chosen.label_window))
    kept = KeptClicks(out.features.with_name("clicks"), HistoryFeatures(chosen, tables.columns(chosen)))
    kept.write(impressions)
    of_one = impressions.where((F.col(DAY) == "2026-01-07") & (F.col(USER) == "u0"))
    found = kept.read(spark, of_one, ["2026-01-07"]).frame.groupBy(USER).count().collect()
    assert [tuple(row) for row in found] == [("u0", 5)]


def test_without_a_sequence_nothing_is_kept(spark: SparkSession, out: Artifacts) -> None:
    tables = read_tables(spark, config(), out)
    history = HistoryFeatures(config(), tables.columns(config()))
    impressions = Impressions(tables, tables.impressions([], 0))
    kept = KeptClicks(out.features.with_name("clicks"), history)
    kept.write(impressions)
    assert not kept.folder.exists()
    assert kept.read(spark, impressions, ["2026-01-07"]) is impressions
