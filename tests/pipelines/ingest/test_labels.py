from __future__ import annotations

import random
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.errors import SchemaError
from pipelines.engine.day_partitions import days_in, stage
from pipelines.ingest.labels import add_clicks, distinct_clicks, take_strays

START = datetime(2026, 1, 5, tzinfo=UTC)
WINDOW, ARRIVAL = 5, 50
Impression = tuple[int, str, int, int]  # row, key, event second, delay of knowledge
Click = tuple[str, int, int]  # key, event second, delay of knowledge

times = st.integers(0, 12)
keys = st.sampled_from(["a", "b", "c"])
impressions_of = st.lists(st.tuples(keys, times, st.integers(0, 9)), min_size=1, max_size=12)
clicks_of = st.lists(st.tuples(keys, times, st.integers(0, 9)), max_size=12)


def at(second: int) -> datetime:
    return START + timedelta(seconds=second)


def reference(impressions: list[Impression], clicks: list[Click]) -> dict[int, tuple[float, int]]:
    """(label, second at which it is known) by looking at every pair."""
    found = {}
    for row, key, time, delay in impressions:
        known = [t + d for k, t, d in clicks if k == key and time <= t <= time + WINDOW]
        found[row] = (1.0, max(min(known), time + delay)) if known else (0.0, max(time + WINDOW, time + delay))
    return found


@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(shown=impressions_of, clicks=clicks_of)
def test_labels_agree_with_looking_at_every_pair(
    spark: SparkSession, shown: list[tuple[str, int, int]], clicks: list[Click]
) -> None:
    impressions = [(row, *rest) for row, rest in enumerate(shown)]
    events = spark.createDataFrame(
        [(row, key, at(t), at(t + d)) for row, key, t, d in impressions],
        "_row bigint, _on_key string, _time timestamp, _known timestamp",
    )
    clicked = spark.createDataFrame(
        [(k, at(t), at(t + d)) for k, t, d in clicks], "_on_key string, _click_time timestamp, _click_known timestamp"
    )
    one = distinct_clicks(clicked, ["key"])
    labelled = (
        add_clicks(events, one, ["key"], WINDOW)
        .selectExpr("_row", "_label", "unix_seconds(_label_time) as known")
        .collect()
    )
    begin = int(START.timestamp())
    assert {r["_row"]: (r["_label"], r["known"] - begin) for r in labelled} == reference(impressions, clicks)
    assert len(labelled) == len(impressions)
    assert one.count() == len({(k, t) for k, t, _ in clicks})
    shown_keys = {key for _, key, _, _ in impressions}
    with tempfile.TemporaryDirectory() as folder:
        both = add_clicks(events.withColumn("day", F.lit("2026-01-05")), one, ["key"], WINDOW, strays=True)
        staging = stage(both, Path(folder) / "events")
        assert take_strays(staging) == len({(k, t) for k, t, _ in clicks if k not in shown_keys})
        assert days_in(staging) == ["2026-01-05"]
        assert spark.read.parquet(str(staging)).count() == len(impressions)


def random_log(log: int) -> tuple[list[Impression], list[Click], list[Click]]:
    """Impressions, clicks, and clicks known only after all of those, on keys of this log's own."""
    random_ = random.Random(log)

    def key() -> str:
        return f"{log}/{random_.choice('abc')}"

    shown = [(log * 100 + row, key(), random_.randint(0, 30), random_.randint(0, 9)) for row in range(20)]
    clicks = [(key(), random_.randint(0, 35), random_.randint(0, 9)) for _ in range(4)]
    late = [(key(), time, ARRIVAL - time + random_.randint(0, 9)) for time in random_.sample(range(36), 3)]
    return shown, clicks, late


def test_late_clicks_reopen_labels_only_inside_their_window_and_from_their_arrival_on(spark: SparkSession) -> None:
    """Many random logs in one run; what a label was known to be before the arrival stays so as of that time."""
    logs = [random_log(log) for log in range(30)]
    shown = [impression for log in logs for impression in log[0]]
    clicks, late = [click for log in logs for click in log[1]], [click for log in logs for click in log[2]]
    events = spark.createDataFrame(
        [(row, key, at(t), at(t + d)) for row, key, t, d in shown],
        "_row bigint, _on_key string, _time timestamp, _known timestamp",
    )

    def labels(known: list[Click]) -> dict[int, tuple[float, int]]:
        frame = spark.createDataFrame(
            [(k, at(t), at(t + d)) for k, t, d in known],
            "_on_key string, _click_time timestamp, _click_known timestamp",
        )
        labelled = add_clicks(events, distinct_clicks(frame, ["key"]), ["key"], WINDOW)
        rows = labelled.selectExpr("_row", "_label", "unix_seconds(_label_time) AS known").collect()
        return {row["_row"]: (row["_label"], row["known"] - int(START.timestamp())) for row in rows}

    before, after = labels(clicks), labels(clicks + late)
    reopened = {row for row in before if before[row] != after[row]}
    assert len(reopened) > len(logs)
    for row, key, time, _ in shown:
        inside = [t + delay for k, t, delay in late if k == key and time <= t <= time + WINDOW]
        if row in reopened:
            assert before[row][0] == 0
            assert after[row] == (1, min(inside))
        else:
            assert before[row][0] == 1 or not inside


def test_the_step_checks_its_input(spark: SparkSession) -> None:
    with pytest.raises(SchemaError, match="input of step add_clicks: column '_row' is missing"):
        add_clicks(spark.range(1), spark.range(1), ["key"], WINDOW)
