"""Known answers; the comparison with the definition on random logs is in test_history_features.py."""

from __future__ import annotations

import pytest
from pyspark.sql import DataFrame, SparkSession

from contracts.errors import SchemaError
from pipelines.features.running_counters import Measure, running_counts
from pipelines.windows.publish_clock import AT, SECOND, PublishClock

FRESH, EVERY_TEN = PublishClock(1), PublishClock(10 * SECOND)
SHOWN, CLOSED, CLICKED = Measure("shown", 30), Measure("closed", 30), Measure("clicked", 30)


@pytest.fixture
def impressions(spark: SparkSession) -> DataFrame:
    """Two impressions of key a, shown at 12 s and 35 s; labels close 5 s later; the first is clicked, known at 31 s."""
    rows = [("a", 12, 12, 17, 31), ("a", 35, 35, 40, None), (None, 1, 1, 1, 1)]
    micros = [(key, *(t if t is None else t * SECOND for t in times)) for key, *times in rows]
    return spark.createDataFrame(micros, "key string, _at bigint, _enter bigint, _close bigint, _click bigint")


def ask(
    impressions: DataFrame, clock: PublishClock, *seconds: int, measures: tuple[Measure, ...]
) -> list[tuple[int, ...]]:
    spark = impressions.sparkSession
    queries = spark.createDataFrame(
        [(i, "a", t * SECOND) for i, t in enumerate(seconds)], f"id bigint, key string, {AT} bigint"
    )
    counts = running_counts(impressions, queries, ["key"], measures, clock, "id").orderBy("id").collect()
    return [tuple(row)[1:] for row in counts]


def test_event_fresh_counts(impressions: DataFrame) -> None:
    found = ask(impressions, FRESH, 11, 12, 17, 31, 40, 42, 65, measures=(SHOWN, CLOSED, CLICKED))
    assert found == [(0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (2, 2, 1), (1, 1, 0), (0, 0, 0)]


def test_published_counts_are_those_of_the_last_publish(impressions: DataFrame) -> None:
    found = ask(impressions, EVERY_TEN, 19, 20, 39, 40, 49, 50, 70, measures=(SHOWN, CLOSED, CLICKED))
    assert found == [(0, 0, 0), (1, 1, 0), (1, 1, 0), (2, 2, 1), (2, 2, 1), (1, 1, 0), (0, 0, 0)]


def test_without_a_window_nothing_leaves(impressions: DataFrame) -> None:
    measures = (Measure("closed", None), Measure("clicked", None))
    assert ask(impressions, FRESH, 0, 1_000_000, measures=measures) == [(0, 0), (2, 1)]


def test_an_impression_known_after_its_window_never_enters(impressions: DataFrame) -> None:
    assert ask(impressions, FRESH, 17, 30, 33, measures=(Measure("clicked", 19),)) == [(0,), (0,), (0,)]


def test_queries_of_unknown_keys_count_nothing_and_queries_without_key_have_no_row(impressions: DataFrame) -> None:
    queries = impressions.sparkSession.createDataFrame(
        [(1, "b", SECOND), (2, None, SECOND)], f"id bigint, key string, {AT} bigint"
    )
    assert running_counts(impressions, queries, ["key"], [SHOWN], FRESH, "id").collect() == [(1, 0)]


def test_impressions_without_times_are_refused(impressions: DataFrame) -> None:
    with pytest.raises(SchemaError, match="_enter"):
        running_counts(impressions.drop("_enter"), impressions, ["key"], [SHOWN], FRESH, "key")
