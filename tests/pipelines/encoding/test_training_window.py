from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from pyspark.sql import functions as F

from contracts.artifacts import KNOWN, LABEL, LABEL_TIME, ROW, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.windows import TimedWindows
from pipelines.encoding.training_window import as_known, windowed, windowed_parts
from pipelines.windows.windows import WINDOW
from tests.pipelines.ingested_log import START, event, write_ingested

END = datetime(2026, 1, 5, 12, tzinfo=UTC)
BEFORE, AFTER = END - timedelta(microseconds=1), END + timedelta(microseconds=1)
SCHEMA = f"name string, {WINDOW} string, {KNOWN} timestamp, {LABEL_TIME} timestamp, {LABEL} float"


def labels(spark, rows):
    return {row["name"]: row[LABEL] for row in as_known(spark.createDataFrame(rows, SCHEMA), "train", END).collect()}


def test_training_has_only_what_was_known_at_its_end(spark):
    assert labels(spark, [
        ("click in time", "train", BEFORE, BEFORE, 1.0), ("click at the end", "train", BEFORE, END, 1.0),
        ("click too late", "train", BEFORE, AFTER, 1.0), ("no click", "train", BEFORE, BEFORE, 0.0),
        ("row too late", "train", AFTER, AFTER, 1.0),
    ]) == {"click in time": 1.0, "click at the end": 1.0, "click too late": 0.0, "no click": 0.0}


def test_later_windows_keep_their_final_labels(spark):
    rows = [(str(window), window, AFTER, AFTER, 1.0) for window in ("test", "validation", None)]
    assert labels(spark, rows) == {"test": 1.0, "validation": 1.0, "None": 1.0}


@pytest.mark.parametrize(("most", "parts"), [(1, 4), (9, 2), (1000, 1)])
def test_a_long_log_comes_some_days_at_a_time_and_every_row_of_a_window_once(spark, tmp_path, most, parts):
    """Six days of four rows: one of statistics, two of training, one of each other window, one after them."""
    out = write_ingested(Artifacts(tmp_path), [event(row, 6 * row) for row in range(24)])
    out.events.rename(out.features)
    spans = {"statistics": (0, 1), "train": (1, 3), "validation": (3, 4), "test": (4, 5)}
    TimedWindows(spans={name: tuple(START + timedelta(days=n) for n in days) for name, days in spans.items()}).write(
        out.windows)
    config = Config.model_validate({
        "name": "t", "log": {"path": "p", "event_time": "time"}, "label": {"expression": "y"},
        "fields": [{"name": "city", "kind": "categorical", "side": "user"}],
    })
    found = [{(row[ROW], row[WINDOW]) for row in part.where(F.col(WINDOW).isin(*WINDOWS)).collect()}
             for part in windowed_parts(spark, config, out, most)]
    whole = windowed(spark, config, out).where(F.col(WINDOW).isin(*WINDOWS)).collect()
    assert len(found) == parts
    assert sorted(pair for part in found for pair in part) == sorted((row[ROW], row[WINDOW]) for row in whole)
    assert len(whole) == 16
