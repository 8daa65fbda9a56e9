"""What Apache Spark does with the pipelines' plans: jobs of a run, tasks of a heavy key, clicks in their order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest import mock
from uuid import uuid4

import numpy as np
import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import Artifacts
from contracts.features.event_clock import SECOND, Measure
from pipelines.engine.key_batches import SHUFFLE_PARTITIONS
from pipelines.features import sliced_counters
from pipelines.features.running_counters import running_counts
from pipelines.jobs.feature_job import make_features
from pipelines.windows.publish_clock import PublishClock
from tests.pipelines.features.ordered_clicks import ordered_lists
from tests.pipelines.jobs.small_log import bad_row, config, wider, write_log

RECORD, HEAVY, ORDER = "spark_jobs.json", "tasks of a heavy key", "order of clicks"
PARTS = 8  # of a shuffle


def record(spark: SparkSession, folder: Path) -> None:
    """FOLDER/spark_jobs.json: {what: how many, or the lists that ought to be one}."""
    data = write_log(folder / "jobs" / "data")
    (folder / "jobs" / "bad-data").mkdir()
    runs = {"usual": (config(also_fresh=False), data),
            "wider": (wider(also_fresh=False), bad_row(data, folder / "jobs" / "bad-data"))}
    found: dict[str, Any] = {}
    for name, (configured, log) in runs.items():
        with jobs_of(spark) as jobs:
            make_features(configured, log, Artifacts(folder / "jobs" / name))
        found[name] = jobs[0]
    found[HEAVY] = _tasks_of_a_heavy_key(spark, folder / "jobs" / "tasks")
    found[ORDER] = ordered_lists(spark)
    (folder / RECORD).write_text(json.dumps(found), encoding="utf-8")


@contextmanager
def jobs_of(spark: SparkSession) -> Iterator[list[int]]:
    """How many jobs the session has started, at the end of the block; they are numbered."""
    before, found = _last_job(spark), [0]
    yield found
    found[0] = _last_job(spark) - before


def _last_job(spark: SparkSession) -> int:
    return max(spark.sparkContext.statusTracker().getJobIdsForGroup(None), default=-1)


def _tasks_of_a_heavy_key(spark: SparkSession, folder: Path) -> int:
    """Of PARTS those that counted slices of the one key of a log that Apache Spark would put into one task."""
    folder.mkdir()
    within = sliced_counters.within_slices

    def told(table: pa.Table, group: np.ndarray, **names: Any) -> pa.Table:
        (folder / uuid4().hex).touch()
        return within(table, group, **names)

    before = spark.conf.get(SHUFFLE_PARTITIONS)
    spark.conf.set(SHUFFLE_PARTITIONS, str(PARTS))
    at = F.col("id") * 360 * SECOND
    impressions = spark.range(900).select(F.lit("heavy").alias("key"), at.alias("_at"), *[
        (at + 1).alias(name) for name in ("_enter", "_close", "_click")])
    with mock.patch.object(sliced_counters, "within_slices", told):
        counts = running_counts(impressions, F.lit(True), ["key"], [Measure("shown", 7_200)], PublishClock(1), most=100)
        assert counts.count() == 900
    spark.conf.set(SHUFFLE_PARTITIONS, before or "2")
    return len(list(folder.iterdir()))
