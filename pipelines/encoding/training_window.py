"""What a training run at the end of the training window could have known.

The embargo leaves out impressions whose label window was still open. On top of that, knowledge can be late: a row that
had not arrived by the end of the window is dropped, and a positive whose click was known only later is a negative, as
it was at the time. Validation and test keep their final labels: they measure against the truth.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, KNOWN, LABEL, LABEL_TIME, WINDOWS, Artifacts
from contracts.config.config import Config
from contracts.windows import read_timed
from pipelines.engine.day_partitions import days_in, groups_of, in_turn, read_days, read_table, rows_in
from pipelines.engine.embedded import is_embedded
from pipelines.features.prior_rate import statistics_window
from pipelines.windows import windows
from pipelines.windows.hashed_windows import HashedWindows
from pipelines.windows.windows import WINDOW


def windowed(spark: SparkSession, config: Config, out: Artifacts, days: Sequence[str] = ()) -> DataFrame:
    """Features of these days (without any, of all) with their `_window`, embargo left out; `_label` of training as
    known at its end.

    A table without times has windows by hash, and every label is known from the start.
    """
    features = read_days(spark, out.features, days) if days else read_table(spark, out.features)
    if config.log.event_time is None:
        return HashedWindows.read(out.windows).assign(features)
    resolved = read_timed(out.windows)
    return as_known(windows.assign(features, resolved, config.embargo), "train", resolved["train"][1])


def windowed_parts(spark: SparkSession, config: Config, out: Artifacts, most: int) -> Iterator[DataFrame]:
    """As `windowed`, of the examples' windows; the embedded engine takes some days of a long log at a time, of no more
    than `most` rows together.
    """
    if config.log.event_time is None or not is_embedded(spark):
        yield windowed(spark, config, out)
        return
    days = sorted({day for window in WINDOWS for day in days_of(out, window)})
    rows = {day: rows_in(out.features / f"{DAY}={day}") for day in days}
    for group in in_turn("examples", groups_of(rows, most), rows):
        yield windowed(spark, config, out, group)


def window_rows(spark: SparkSession, config: Config, out: Artifacts, window: str) -> DataFrame:
    """Features of one window, read from its own days."""
    days = () if config.log.event_time is None else days_of(out, window)
    return windowed(spark, config, out, days).where(F.col(WINDOW) == window)


def days_of(out: Artifacts, window: str) -> list[str]:
    """The days with features that a window of a log with times touches."""
    start, end = read_timed(out.windows)[window]
    first, last = (moment.astimezone(UTC).date().isoformat() for moment in (start, end - timedelta(microseconds=1)))
    return [day for day in days_in(out.features) if first <= day <= last]


def training_rows(spark: SparkSession, config: Config, out: Artifacts) -> DataFrame:
    return window_rows(spark, config, out, "train")


def statistics_rows(spark: SparkSession, config: Config, out: Artifacts) -> DataFrame:
    """Features of the statistics window alone, labels as known at its end."""
    end = statistics_window(out, "pair statistics")[1]
    return as_known(window_rows(spark, config, out, "statistics"), "statistics", end)


def as_known(df: DataFrame, window: str, end: datetime) -> DataFrame:
    """Drops rows of the window that arrived after `end` and relabels its positives that became known after it."""
    late = F.lit(end)
    inside = F.col(WINDOW).eqNullSafe(window)
    if KNOWN in df.columns:
        df = df.where(~(inside & (F.col(KNOWN) > late)))
    if LABEL_TIME in df.columns:
        unknown = inside & (F.col(LABEL_TIME) > late)
        df = df.withColumn(LABEL, F.when(unknown, F.lit(0.0)).otherwise(F.col(LABEL)).cast("float"))
    return df
