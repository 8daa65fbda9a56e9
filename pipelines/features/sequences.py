"""The last K values a user clicked, as of each query, newest first.

A click enters when it is learned (see pipelines/windows/publish_clock.py). Clicks are ordered by the time they became
visible, then event time, then row id, so that two runs agree on ties. Clicks whose value is missing do not count. The
history after each click is a contiguous frame of K rows; a query takes that of the last click visible to it.
"""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from contracts.artifacts import ROW, USER
from pipelines.engine.step import step
from pipelines.features.running_counters import ASKER, MOMENT, QUERY
from pipelines.windows.publish_clock import AT, LEARNED, PublishClock

VALUE, HISTORY = "_value", "_history"


@step(needs={USER: "string", ROW: "bigint", AT: "bigint", LEARNED: "bigint"}, gives={HISTORY: "any"})
def last_clicked(
    impressions: DataFrame, queries: DataFrame, value: Column, length: int, clock: PublishClock, identity: str
) -> DataFrame:
    """One row per query of a known user: `identity` and HISTORY, an array, null before the first click.

    impressions  USER, ROW, the columns of `value` and the time columns of `with_times`
    queries      `identity` (unique), USER, AT (microseconds; the clock moves it to its publish)
    """
    known = queries.filter(F.col(USER).isNotNull())
    moments = known.select(
        F.col(identity).alias(ASKER), USER, clock.last_publish(F.col(AT)).alias(MOMENT), F.lit(1).alias(QUERY)
    )
    histories = _histories(impressions, value, length, clock)
    order = Window.partitionBy(USER).orderBy(MOMENT, QUERY, AT, ROW)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    merged = histories.withColumn(QUERY, F.lit(0)).unionByName(moments, allowMissingColumns=True)
    latest = F.last(HISTORY, ignorenulls=True).over(so_far).alias(HISTORY)
    return merged.select(F.col(ASKER).alias(identity), QUERY, latest).filter(F.col(QUERY) == 1).drop(QUERY)


def _histories(impressions: DataFrame, value: Column, length: int, clock: PublishClock) -> DataFrame:
    """(USER, MOMENT, AT, ROW, HISTORY) of each click: the values of the last `length` clicks up to it, newest first."""
    clicks = impressions.select(USER, clock.visible(F.col(LEARNED)).alias(MOMENT), AT, ROW, value.alias(VALUE))
    known = clicks.filter(F.col(USER).isNotNull() & F.col(MOMENT).isNotNull() & F.col(VALUE).isNotNull())
    order = Window.partitionBy(USER).orderBy(MOMENT, AT, ROW)
    frame = F.collect_list(VALUE).over(order.rowsBetween(-(length - 1), Window.currentRow))
    return known.select(USER, MOMENT, AT, ROW, F.reverse(frame).alias(HISTORY))
