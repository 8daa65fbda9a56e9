from __future__ import annotations

from datetime import UTC, datetime, timedelta

from contracts.artifacts import KNOWN, LABEL, LABEL_TIME
from pipelines.encoding.training_window import as_known
from pipelines.windows.windows import WINDOW

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
