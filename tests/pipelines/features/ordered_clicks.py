"""Clicks of a user, of which each pair is decided by another part of the order of a sequence."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from pipelines.features.sequences import HISTORY, last_clicked
from pipelines.windows.publish_clock import PublishClock

NEWEST_FIRST = {  # impression shown at, clicked at, learned at, row
    "the latest row of equals": (3, 20, 31, 9), "an earlier row": (3, 20, 31, -4), "shown before": (2, 20, 31, 10),
    "learned before": (4, 20, 30, 11), "clicked before": (5, 19, 39, 12), "clicked first, learned last": (6, 7, 40, 13),
}


def ordered_lists(spark: SparkSession) -> list[list[str]]:
    """What a query after all of them lists: event-fresh and published, of a user of few clicks and of one of many."""
    rows = [(row, "u", at, clicked, learned, what) for what, (at, clicked, learned, row) in NEWEST_FIRST.items()]
    schema = "_row bigint, _user string, _at bigint, _clicked_at bigint, _learned bigint, value string"
    clicks = spark.createDataFrame(sorted(rows, key=lambda row: row[5]), schema)
    asked = spark.createDataFrame([("u", 150)], "_user string, _at bigint")
    found = [last_clicked(clicks, asked, F.col("value"), len(rows), PublishClock(period), most).collect()
             for period in (1, 100) for most in (None, 1)]
    return [list(row[HISTORY]) for answers in found for row in answers]
