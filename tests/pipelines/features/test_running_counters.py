"""Known answers; the comparison with the definition on random logs is in test_history_features.py."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.errors import SchemaError
from contracts.features.event_clock import SECOND, Measure
from pipelines.features import running_counters, sliced_counters
from pipelines.features.measures import MOMENT
from pipelines.features.running_counters import counts_at, first_of_pairs, running_counts
from pipelines.features.sliced_counters import sliced_counts
from pipelines.windows.publish_clock import AT, PublishClock

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
        [("a", t * SECOND) for t in seconds], f"key string, {AT} bigint"
    )
    counts = running_counts(impressions, queries, ["key"], measures, clock).collect()
    by_moment = {row[MOMENT]: tuple(row)[2:] for row in counts}
    return [by_moment[t * SECOND // clock.period * clock.period] for t in seconds]


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
        [("b", SECOND), (None, SECOND), ("b", SECOND)], f"key string, {AT} bigint"
    )
    assert running_counts(impressions, queries, ["key"], [SHOWN], FRESH).collect() == [("b", SECOND, 0)]


@pytest.mark.parametrize("moment", [0, 20, 31, 40, 50, 70])
def test_counts_of_one_moment_are_the_running_counts_at_it(impressions: DataFrame, moment: int) -> None:
    measures = (SHOWN, CLOSED, CLICKED, Measure("clicked", None))
    running = ask(impressions, FRESH, moment, measures=measures)
    at_once = counts_at(impressions, ["key"], measures, moment * SECOND).collect()
    assert [tuple(row)[1:] for row in at_once] == running


@pytest.mark.parametrize("clock", [FRESH, EVERY_TEN])
@pytest.mark.parametrize("most", [None, 1])
def test_impressions_that_ask_are_answered_as_queries_of_their_own(
    impressions: DataFrame, clock: PublishClock, most: int | None
) -> None:
    """A second impression at one time asks the same; one that does not ask still counts."""
    measures = [SHOWN, CLOSED, CLICKED, Measure("clicked", None)]
    both = impressions.unionByName(impressions)
    late = F.col(AT) > 12 * SECOND
    of_rows, of_frame = (
        sorted(tuple(row) for row in running_counts(both, queries, ["key"], measures, clock, most).collect())
        for queries in (late, both.where(late))
    )
    assert of_rows == of_frame
    moment = 35 * SECOND // clock.period * clock.period
    assert [row[:3] for row in of_rows] == [("a", moment, 4 if clock is FRESH else 2)]


@pytest.mark.parametrize("clock", [FRESH, EVERY_TEN])
@pytest.mark.parametrize("most", [0, 1, 2])
def test_slices_of_time_and_what_is_carried_make_the_same_counts(
    impressions: DataFrame, clock: PublishClock, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Key a has two impressions, key b one."""
    monkeypatch.setattr(sliced_counters, "SLICE_WIDTH", 7 * SECOND)
    measures = [SHOWN, CLOSED, CLICKED, Measure("clicked", None), Measure("shown", 3)]
    both = impressions.unionByName(impressions.where("_at = 12000000").withColumn("key", F.lit("b")))
    asked = [(key, t * SECOND) for key in ("a", "b", "c", None) for t in (-1, 0, 11, 12, 17, 31, 40, 42, 65, 99)]
    queries = impressions.sparkSession.createDataFrame(asked, f"key string, {AT} bigint")
    whole, sliced = (
        sorted(tuple(row) for row in running_counts(both, queries, ["key"], measures, clock, limit).collect())
        for limit in (None, most)
    )
    assert sliced == whole
    assert {row[0] for row in whole} == {"a", "b", "c"}
    assert any(any(row[2:]) for row in whole)


def test_impressions_of_one_publish_that_ask_at_several_are_not_one(
    impressions: DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of the two that enter at 20 s the first asks at 10 s: two rows that a task would hold."""
    sliced: list[DataFrame] = []

    def slices(moves: DataFrame, asked: DataFrame, keys: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
        sliced.append(moves)
        return sliced_counts(moves, asked, keys, measures)

    monkeypatch.setattr(running_counters, "sliced_counts", slices)
    both = impressions.sparkSession.createDataFrame(
        [("a", t * SECOND, 15 * SECOND, 15 * SECOND, None) for t in (12, 20)], impressions.schema)
    closed = [Measure("closed", None)]
    found = running_counts(both, F.lit(True), ["key"], closed, EVERY_TEN, most=1).collect()
    assert sorted(tuple(row) for row in found) == [("a", 10 * SECOND, 0), ("a", 20 * SECOND, 2)]
    assert sliced
    asks = both.where(F.lit(False))
    running_counts(both, asks, ["key"], closed, EVERY_TEN, most=1)
    assert len(sliced) == 1


def test_a_pair_is_asked_once_wherever_it_stands() -> None:
    moments = pa.chunked_array([[5, None, 5], [4, 5, None, 5]], pa.int64())
    places = first_of_pairs(np.array([1, 0, 0, 1, 1, 0, 0]), moments)
    assert sorted(places.tolist()) == [0, 2, 3]
    assert first_of_pairs(np.zeros(2, np.int64), pa.chunked_array([[None, None]], pa.int64())).tolist() == []


def test_impressions_without_times_are_refused(impressions: DataFrame) -> None:
    with pytest.raises(SchemaError, match="_enter"):
        running_counts(impressions.drop("_enter"), impressions, ["key"], [SHOWN], FRESH)
