from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pyspark.sql import DataFrame, SparkSession

from contracts.config.config import Config
from contracts.errors import EmptyLogError, WindowError
from pipelines.windows.windows import WINDOW, assign, order_statistics, resolve

START = datetime(2026, 1, 5, tzinfo=UTC)
HOUR = timedelta(hours=1)
MICRO = timedelta(microseconds=1)


def config(windows: dict[str, Any], click_window: str | None = None) -> Config:
    clicks = {"clicks": {"path": "c", "on": ["x"], "window": click_window}}
    return Config.model_validate(
        {
            "name": "test",
            "log": {"path": "log", "event_time": "t"},
            "label": clicks if click_window else {"expression": "y"},
            "fields": [{"name": "x", "kind": "categorical", "side": "context"}],
            "windows": windows,
        }
    )


def events(spark: SparkSession, times: list[datetime]) -> DataFrame:
    return spark.createDataFrame([(t,) for t in times], "_time timestamp")


def assigned(frame: DataFrame) -> dict[datetime, str | None]:
    rows = frame.selectExpr("unix_micros(_time) as at", WINDOW).collect()
    return {datetime(1970, 1, 1, tzinfo=UTC) + r["at"] * MICRO: r[WINDOW] for r in rows}


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(offsets=st.lists(st.integers(-(10**13), 10**13), min_size=1, max_size=30), data=st.data())
def test_order_statistics_agree_with_sorting(spark: SparkSession, offsets: list[int], data: st.DataObject) -> None:
    times = [datetime(1970, 1, 2, tzinfo=UTC) + n * MICRO for n in offsets]
    ranks = data.draw(st.lists(st.integers(0, len(times) - 1), min_size=1, max_size=3))
    assert order_statistics(events(spark, times), ranks) == [sorted(times)[rank] for rank in ranks]


def test_shares_cut_rows_in_time_order(spark: SparkSession) -> None:
    frame = events(spark, [START + n * n * HOUR for n in range(20)])
    found = resolve(frame, config({"statistics": 0.2, "train": 0.5, "validation": 0.2, "test": 0.1}))
    counts = {r[WINDOW]: r["count"] for r in assign(frame, found, 0).groupBy(WINDOW).count().collect()}
    assert counts == {"statistics": 4, "train": 10, "validation": 4, "test": 2}
    assert list(found) == ["statistics", "train", "validation", "test"]
    assert found["statistics"][0] == START
    assert found["test"][1] == START + 361 * HOUR + MICRO


def test_a_share_of_zero_gives_no_window(spark: SparkSession) -> None:
    frame = events(spark, [START + n * HOUR for n in range(10)])
    found = resolve(frame, config({"statistics": 0, "train": 0.6, "validation": 0.2, "test": 0.2}))
    assert list(found) == ["train", "validation", "test"]


DATES = {
    "statistics": ["2026-01-05", "2026-01-06"],
    "train": ["2026-01-06", "2026-01-08"],
    "validation": ["2026-01-08", "2026-01-09"],
    "test": ["2026-01-09", "2026-01-10"],
}


def test_edges_belong_to_the_later_window_and_the_embargo_to_none(spark: SparkSession) -> None:
    day = timedelta(days=1)
    expected = {
        START - MICRO: None,
        START: "statistics",
        START + day - HOUR - MICRO: "statistics",
        START + day - HOUR: None,
        START + day - MICRO: None,
        START + day: "train",
        START + 3 * day: "validation",
        START + 4 * day: "test",
        START + 5 * day - MICRO: "test",
        START + 5 * day: None,
        START + 6 * day: None,
    }
    frame = events(spark, list(expected))
    found = resolve(frame, config(DATES, "1h"))
    assert found["test"] == (START + 4 * day, START + 5 * day)
    assert assigned(assign(frame, found, 3600)) == expected


def test_the_last_window_ends_where_labels_are_closed(spark: SparkSession) -> None:
    frame = events(spark, [START + n * HOUR for n in range(5 * 24 - 6)])
    found = resolve(frame, config(DATES, "2h"))
    assert found["test"][1] == START + (5 * 24 - 7 - 2) * HOUR + MICRO
    last = max(t for t, window in assigned(assign(frame, found, 7200)).items() if window == "test")
    assert last == START + (5 * 24 - 7 - 2) * HOUR


def test_an_empty_window_is_named_with_both_spans(spark: SparkSession) -> None:
    frame = events(spark, [START + n * HOUR for n in range(24 * 3)])
    with pytest.raises(
        WindowError,
        match=r"'validation' \(2026-01-08 00:00:00 to 2026-01-09.*log spans 2026-01-05 00:00:00 to 2026-01-07 23",
    ):
        resolve(frame, config(DATES))


def test_an_embargo_longer_than_a_window_is_refused(spark: SparkSession) -> None:
    frame = events(spark, [START + n * HOUR for n in range(24 * 5)])
    with pytest.raises(WindowError, match=r"'statistics'.*embargo of 86400 s"):
        resolve(frame, config(DATES, "1d"))


def test_a_last_window_whose_labels_are_all_open_is_refused(spark: SparkSession) -> None:
    frame = events(spark, [START + n * HOUR for n in range(4 * 24 + 2)])
    with pytest.raises(WindowError, match=r"'test' .* has no rows outside its embargo of 7200 s"):
        resolve(frame, config(DATES, "2h"))


def test_windows_need_rows(spark: SparkSession) -> None:
    with pytest.raises(EmptyLogError, match="no events"):
        resolve(events(spark, []), config({}))
