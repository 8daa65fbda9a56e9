"""Equal counts by slices: test_running_counters.py and, on random logs, test_history_features.py."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.features.event_clock import SECOND, Measure
from pipelines.features import sliced_counters
from pipelines.features.measures import ENTERED, MOMENT, QUERY, ROWS, changes_at
from pipelines.features.running_counters import running_counts
from pipelines.features.sliced_counters import PLACE, SLICE, within_slices
from pipelines.windows.publish_clock import ENTER, PublishClock


def test_changes_of_other_slices_are_left_to_what_is_carried() -> None:
    """Five impressions enter in another slice, two in that of the query, one of these leaves, one comes after it; of
    clicks there are none."""
    measures = (Measure("shown", 20), Measure("clicked", 20))
    entry, exit_ = (list(changes_at(measures)).index(name) for name in (ENTER, measures[0].exit))
    table = pa.table({
        "key": ["a"] * 5, SLICE: [0, 10, 10, 10, 10], MOMENT: [3, 11, 12, 12, 13],
        QUERY: [False, False, False, True, False], PLACE: pa.array([entry, entry, exit_, None, entry], pa.int32()),
        ENTERED: pa.array([1, 1, 1, None, 1], pa.int64()), ROWS: pa.array([5, 2, 1, None, 1], pa.int64()),
    })
    found = within_slices(table, np.array([0, 1, 1, 1, 1]), ("key", SLICE), measures)
    assert found.to_pylist() == [{"key": "a", SLICE: 10, MOMENT: 12, "_shown_20": 1, "_clicked_20": 0}]


def told(
    table: pa.Table, group: np.ndarray, keys: tuple[str, ...], measures: tuple[Measure, ...], folder: Path
) -> pa.Table:
    """As `within_slices`; leaves the most rows of one group as the name of a file."""
    (folder / str(np.bincount(group).max())).touch()
    return within_slices(table, group, keys, measures)


def test_no_task_holds_more_of_a_key_with_a_third_of_the_events_than_an_hour_of_them(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """900 impressions, one in six minutes; each of the heavy key's asks, enters and leaves once."""
    monkeypatch.setattr(sliced_counters, "within_slices", partial(told, folder=tmp_path))
    at = F.col("id") * 360 * SECOND
    key = F.when(F.col("id") % 3 == 0, "heavy").otherwise(F.concat(F.lit("k"), F.col("id").cast("string")))
    impressions = spark.range(900).select(key.alias("key"), at.alias("_at"), *[
        (at + 1).alias(name) for name in ("_enter", "_close", "_click")])
    clock, measures = PublishClock(1), [Measure("shown", 7_200)]
    counts = running_counts(impressions, F.lit(True), ["key"], measures, clock, most=100)
    heavy = counts.where(F.col("key") == "heavy").orderBy(MOMENT).collect()
    assert [row[measures[0].column] for row in heavy] == [min(place, 6) for place in range(300)]
    assert 0 < max(int(file.name) for file in tmp_path.iterdir()) <= 3 * 4


@pytest.mark.slow
def test_a_key_that_is_too_much_for_a_task_whole_is_not_in_slices() -> None:
    """300 thousand impressions in ten days, with 60 MiB beyond what the process needs without them."""
    script = Path(__file__).with_name("counts_in_little_memory.py")
    whole, sliced = (subprocess.run([sys.executable, script, how], capture_output=True, text=True, check=False,
                                    env=os.environ | {"PYTHONPATH": str(Path(__file__).parents[3])})
                     for how in ("whole", "sliced"))
    assert "MemoryError" in whole.stderr
    assert sliced.stdout == "300000\n", sliced.stderr
