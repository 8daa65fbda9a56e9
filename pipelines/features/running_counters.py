"""Windowed counts of impressions and clicks per key, as of each query: running sums over one sort per key.

An impression of a window W adds 1 to a measure when it enters (see pipelines/windows/publish_clock.py) and takes it
away at event_time + W; it never enters where that is not later than its entry. All windows and measures of a key share
one pass: entries and exits become rows of deltas, summed per (key, visible time) where the publish grid is coarse, then

    key, time, kind        kind 0 = deltas, 1 = query, so that what happens at t is applied before a query at t

is sorted once per key and the deltas are summed from its start.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Literal, NamedTuple

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F

from pipelines.engine.step import step
from pipelines.windows.publish_clock import AT, CLICK, CLOSE, ENTER, SECOND, PublishClock

Event = Literal["shown", "closed", "clicked"]
ENTERS: dict[Event, str] = {"shown": ENTER, "closed": CLOSE, "clicked": CLICK}
MOMENT, QUERY, ASKER, CAUSE = "_moment", "_query", "_asker", "_cause"


class Measure(NamedTuple):
    """How many impressions have had this event and are younger than `window` seconds (None: of any age)."""

    event: Event
    window: int | None

    @property
    def column(self) -> str:
        return f"_{self.event}_{'all' if self.window is None else self.window}"


@step(needs={AT: "bigint", ENTER: "bigint", CLOSE: "bigint", CLICK: "bigint"}, gives={})
def running_counts(
    impressions: DataFrame,
    queries: DataFrame,
    keys: Sequence[str],
    measures: Sequence[Measure],
    clock: PublishClock,
    identity: str,
) -> DataFrame:
    """One row per query whose keys are all present: `identity` and one bigint column per measure.

    impressions  `keys` and the time columns of `with_times`
    queries      `identity` (unique), `keys`, AT (microseconds; the clock moves it to its publish)
    """
    deltas = _deltas(_keyed(impressions, keys), keys, measures, clock)
    moments = _keyed(queries, keys).select(
        F.col(identity).alias(ASKER), *keys, clock.last_publish(F.col(AT)).alias(MOMENT), F.lit(1).alias(QUERY)
    )
    order = Window.partitionBy(*keys).orderBy(MOMENT, QUERY)
    so_far = order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
    totals = [F.coalesce(F.sum(m.column).over(so_far), F.lit(0)).alias(m.column) for m in measures]
    merged = deltas.withColumn(QUERY, F.lit(0)).unionByName(moments, allowMissingColumns=True)
    return merged.select(F.col(ASKER).alias(identity), QUERY, *totals).filter(F.col(QUERY) == 1).drop(QUERY)


def _keyed(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    return frame.filter(reduce(Column.__and__, [F.col(key).isNotNull() for key in keys]))


def _deltas(impressions: DataFrame, keys: Sequence[str], measures: Sequence[Measure], clock: PublishClock) -> DataFrame:
    """(keys, MOMENT, one delta per measure). Coarse grids are summed before the sort, fine ones would not shrink."""
    entries = [_move(clock, F.col(ENTERS[event]), event) for event in dict.fromkeys(m.event for m in measures)]
    windows = dict.fromkeys(m.window for m in measures if m.window is not None)
    exits = [_move(clock, F.col(AT) + window * SECOND, window) for window in windows]
    enters = [_enters(m).alias(m.column) for m in measures]
    moves = impressions.select(*keys, *enters, F.inline(F.array(*entries, *exits))).filter(F.col(MOMENT).isNotNull())
    deltas = moves.select(*keys, MOMENT, *[_delta(m).alias(m.column) for m in measures])
    if clock.period == 1:
        return deltas
    return deltas.groupBy(*keys, MOMENT).agg(*[F.sum(m.column).alias(m.column) for m in measures])


def _move(clock: PublishClock, moment: Column, cause: Event | int) -> Column:
    """An entry, caused by an event, or the exit from a window of so many seconds."""
    return F.struct(clock.visible(moment).alias(MOMENT), F.lit(str(cause)).alias(CAUSE))


def _delta(measure: Measure) -> Column:
    entered = F.when(F.col(CAUSE) == measure.event, 1).when(F.col(CAUSE) == str(measure.window), -1)
    return F.when(F.col(measure.column), entered.otherwise(0)).otherwise(0).cast("bigint")


def _enters(measure: Measure) -> Column:
    """False also where the event never happened: its time is null."""
    entry = F.col(ENTERS[measure.event])
    if measure.window is None:
        return entry.isNotNull()
    return F.coalesce(entry < F.col(AT) + measure.window * SECOND, F.lit(False))
