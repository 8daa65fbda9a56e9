"""Event-fresh counts of which one key has 30%, on an engine whose Python workers may have little memory.

    python -m tests.pipelines.heavy_counts MASTER

prints {way: [content hash or null, the sentence of what fails or null]} for each of WAYS: the key as a whole, the other
keys alone in parts of a shuffle that are put together up to 64 MB (the default), and the key in slices beside the
others in parts of 2 MB.
"""

from __future__ import annotations

import json
import sys

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.config.log import SparkSettings
from contracts.features.event_clock import SECOND, Measure
from pipelines.engine.content_hash import content_hash
from pipelines.engine.embedded import stop
from pipelines.engine.failures import out_of_memory
from pipelines.engine.session import open_session
from pipelines.features.running_counters import running_counts
from pipelines.windows.publish_clock import AT, CLICK, CLOSE, ENTER, PublishClock
from tests.pipelines.heavy_key import bounded

ROWS, ITEMS, DAYS, SKEW = 120_000, 2_000, 10, 30  # %
MOST = 330  # MB
HOUR, HEAVY = 3_600, 0
MEASURES = [Measure(event, hours * HOUR) for hours in range(6, 192, 6) for event in ("closed", "clicked")]
PUT_TOGETHER = "spark.sql.adaptive.advisoryPartitionSizeInBytes"
WHOLE, TOGETHER, SLICED = WAYS = ("key whole", "others together", "in slices")


def impressions(spark: SparkSession) -> DataFrame:
    """In ten days; every tenth is clicked, within an hour."""
    def drawn(number: int, below: int) -> Column:
        return F.pmod(F.xxhash64("id", F.lit(number)), F.lit(below))

    item = F.when(drawn(0, 100) < SKEW, F.lit(HEAVY).cast("bigint")).otherwise(1 + drawn(1, ITEMS))
    at, later = drawn(2, DAYS * 24 * HOUR * SECOND), drawn(3, HOUR * SECOND)
    shown = spark.range(ROWS).select(item.alias("item"), at.alias(AT), F.when(drawn(4, 10) == 0, later).alias("later"))
    after = {ENTER: F.lit(1), CLOSE: F.lit(HOUR * SECOND), CLICK: F.col("later")}
    return shown.select("item", AT, *[(F.col(AT) + wait).alias(name) for name, wait in after.items()])


def counts(spark: SparkSession, way: str) -> DataFrame:
    spark.conf.set(PUT_TOGETHER, "64m" if way == TOGETHER else "2m")
    shown = impressions(spark)
    if way == TOGETHER:
        shown = shown.where(F.col("item") != HEAVY)
    most = ROWS // 100 if way == SLICED else None
    return running_counts(shown, F.lit(True), ["item"], MEASURES, PublishClock(1), most=most)


def answered(spark: SparkSession, way: str) -> tuple[str | None, str | None]:
    try:
        return content_hash(counts(spark, way)), None
    except (PySparkException, Py4JJavaError) as error:
        known = out_of_memory(error)
        if known is None:
            raise
        return None, str(known)


if __name__ == "__main__":
    opened = open_session(SparkSettings(master=sys.argv[1], settings=bounded(MOST)), "heavy-counts")
    print(json.dumps({way: answered(opened, way) for way in WAYS}))
    stop(opened)
