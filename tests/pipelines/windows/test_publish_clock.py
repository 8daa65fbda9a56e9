from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.config.windows import Features
from pipelines.windows.publish_clock import (
    CLICK,
    CLOSE,
    ENTER,
    LEARNED,
    PublishClock,
    clocks,
    from_micros,
    to_micros,
    with_times,
)


def test_snapping_moves_entries_up_and_queries_down_and_changes_no_answer(spark: SparkSession) -> None:
    clock = PublishClock(7)
    pairs = (
        spark.range(-20, 20)
        .select(F.col("id").alias("x"))
        .crossJoin(spark.range(-20, 20).select(F.col("id").alias("t")))
    )
    moved = pairs.withColumns({"up": clock.visible(F.col("x")), "down": clock.last_publish(F.col("t"))})
    law = (F.col("x") <= F.col("down")) == (F.col("up") <= F.col("down"))
    near = F.col("up").between(F.col("x"), F.col("x") + 6) & F.col("down").between(F.col("t") - 6, F.col("t"))
    grid = (F.pmod("up", F.lit(7)) == 0) & (F.pmod("down", F.lit(7)) == 0)
    assert moved.filter(~(law & near & grid)).isEmpty()


def test_fresh_twins_only_where_they_are_asked_for() -> None:
    assert clocks(Features()) == [PublishClock(86_400_000_000)]
    assert clocks(Features(also_fresh=True)) == [PublishClock(86_400_000_000), PublishClock(1, "@fresh")]
    assert clocks(Features(publish_every=0)) == [PublishClock(1)]


@pytest.mark.parametrize(
    ("known", "label", "label_time", "expected"),
    [
        pytest.param(0, 0.0, 20, (1, 10, None, None), id="no click"),
        pytest.param(0, 1.0, 5, (1, 10, 5, 10), id="a click inside the label window counts when that closes"),
        pytest.param(0, 1.0, 20, (1, 10, 20, 20), id="a click learned late counts when it is learned"),
        pytest.param(30, 1.0, 5, (30, 30, 30, 30), id="nothing counts before the impression is known"),
    ],
)
def test_times(
    spark: SparkSession, known: int, label: float, label_time: int, expected: tuple[int | None, ...]
) -> None:
    """Seconds after the event; `enter` of an impression known at once is a microsecond later, here rounded up."""
    start = datetime(2026, 1, 5, tzinfo=UTC)
    times = [start + timedelta(seconds=s) for s in (0, known, label_time)]
    frame = spark.createDataFrame(
        [(*times, label)], "_time timestamp, _known timestamp, _label_time timestamp, _label double"
    )
    row = with_times(frame, label_window=10).select(ENTER, CLOSE, LEARNED, CLICK).first()
    assert row is not None
    assert tuple(v if v is None else -(-(v - to_micros(start)) // 1_000_000) for v in row) == expected


def test_a_log_without_times_is_one_instant(spark: SparkSession) -> None:
    row = with_times(spark.createDataFrame([(1.0,)], "_label double"), 0).select(ENTER, CLOSE, LEARNED, CLICK).first()
    assert row == (1, 1, 1, 1)


def test_micros_round_trip_and_read_naive_times_as_utc() -> None:
    moment = datetime(2026, 3, 4, 5, 6, 7, 89, tzinfo=UTC)
    assert from_micros(to_micros(moment)) == moment
    assert to_micros(moment.replace(tzinfo=None)) == to_micros(moment)
    assert to_micros(moment.astimezone(timezone(timedelta(hours=2)))) == to_micros(moment)
