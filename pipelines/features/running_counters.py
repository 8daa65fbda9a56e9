"""Windowed counts of impressions and clicks per key, as of each query: prefix sums over one sort per key.

An impression of a window W adds 1 to a measure when it enters (see pipelines/windows/publish_clock.py) and takes it
away at event_time + W; it never enters where that is not later than its entry. So, at t,

    measure(key, t) = entries of the key at or before t - exits of the key at or before t

With a publish grid an answer depends on (key, publish) alone: queries are the distinct pairs, and impressions of a key
that enter and leave at the same publishes are counted together before they are brought to their key. Event-fresh, every
impression is a row of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.windows.publish_clock import AT, CLICK, CLOSE, ENTER, SECOND, PublishClock

Event = Literal["shown", "closed", "clicked"]
ENTERS: dict[Event, str] = {"shown": ENTER, "closed": CLOSE, "clicked": CLICK}
MOMENT, QUERY, ROWS = "_moment", "_query", "_rows"


class Measure(NamedTuple):
    """How many impressions have had this event and are younger than `window` seconds (None: of any age)."""

    event: Event
    window: int | None

    @property
    def column(self) -> str:
        return f"_{self.event}_{'all' if self.window is None else self.window}"

    @property
    def exit(self) -> str:
        """The column of the moment at which the impression leaves."""
        return f"_exit_{self.window}"

    def enters(self) -> Column:
        """Whether the impression ever counts; false also where the event never happened: its time is null."""
        entry = F.col(ENTERS[self.event])
        if self.window is None:
            return entry.isNotNull()
        return F.coalesce(entry < F.col(AT) + self.window * SECOND, F.lit(False))

    def counts_at(self, moment: int) -> Column:
        """Whether the impression counts at `moment` (microseconds)."""
        inside = self.enters() & F.coalesce(F.col(ENTERS[self.event]) <= moment, F.lit(False))
        return inside if self.window is None else inside & (F.col(AT) + self.window * SECOND > moment)


@step(needs={AT: "bigint", ENTER: "bigint", CLOSE: "bigint", CLICK: "bigint"}, gives={MOMENT: "bigint"})
def running_counts(
    impressions: DataFrame, queries: DataFrame, keys: Sequence[str], measures: Sequence[Measure], clock: PublishClock
) -> DataFrame:
    """`keys`, MOMENT (the last publish before the query) and one bigint column per measure; a row per distinct pair.

    impressions  `keys` and the time columns of `with_times`
    queries      `keys` and AT (microseconds); those without a key have no row
    """
    moves = _moves(_keyed(impressions, keys), keys, measures, clock).withColumn(QUERY, F.lit(False))
    moment = clock.last_publish(F.col(AT)).alias(MOMENT)
    asked = _keyed(queries, keys).select(*keys, moment).distinct().withColumn(QUERY, F.lit(True))
    merged = moves.unionByName(asked, allowMissingColumns=True)
    columns = [*[impressions.schema[key] for key in keys], *(StructField(name, LongType()) for name in (
        MOMENT, *(measure.column for measure in measures)))]
    return per_key(merged, keys, partial(counted, keys=tuple(keys), measures=tuple(measures)), StructType(columns))


@step(needs={AT: "bigint", ENTER: "bigint", CLOSE: "bigint", CLICK: "bigint"}, gives={})
def counts_at(impressions: DataFrame, keys: Sequence[str], measures: Sequence[Measure], moment: int) -> DataFrame:
    """`keys` and one bigint column per measure, all as of one moment (microseconds); keys without impressions have no
    row."""
    counts = [F.count_if(measure.counts_at(moment)).alias(measure.column) for measure in measures]
    return _keyed(impressions, keys).groupBy(*keys).agg(*counts)


def _keyed(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    return frame.filter(reduce(Column.__and__, [F.col(key).isNotNull() for key in keys]))


def _moves(impressions: DataFrame, keys: Sequence[str], measures: Sequence[Measure], clock: PublishClock) -> DataFrame:
    """(keys, entry per event, exit per window, whether each measure is entered, number of such impressions)."""
    entries = {ENTERS[measure.event]: clock.visible(F.col(ENTERS[measure.event])) for measure in measures}
    exits = {m.exit: clock.visible(F.col(AT) + m.window * SECOND) for m in measures if m.window is not None}
    flags = {measure.column: measure.enters() for measure in measures}
    columns = [column.alias(name) for name, column in {**entries, **exits, **flags}.items()]
    moves = impressions.select(*keys, *columns)
    if clock.period == 1:
        return moves.withColumn(ROWS, F.lit(1).cast("bigint"))
    return moves.groupBy(*keys, *entries, *exits, *flags).agg(F.count(F.lit(1)).alias(ROWS))


def counted(table: pa.Table, group: np.ndarray, keys: tuple[str, ...], measures: tuple[Measure, ...]) -> pa.Table:
    """The queries among the rows with their measures; `group` numbers the rows' keys."""
    asks = table.column(QUERY).to_numpy()
    rows = table.column(ROWS).fill_null(0).to_numpy()
    asked_group, moment = group[asks], table.column(MOMENT).filter(table.column(QUERY)).to_numpy()
    columns = {name: table.column(name).filter(table.column(QUERY)) for name in (*keys, MOMENT)}
    for measure in measures:
        entered = table.column(measure.column).fill_null(False).to_numpy()
        numbers, weights = group[entered], rows[entered]
        entries = table.column(ENTERS[measure.event]).fill_null(0).to_numpy()[entered]
        total = sums_until(numbers, entries, weights, asked_group, moment)
        if measure.window is not None:
            exits = table.column(measure.exit).fill_null(0).to_numpy()[entered]
            total = total - sums_until(numbers, exits, weights, asked_group, moment)
        columns[measure.column] = pa.array(total, pa.int64())
    return pa.table(columns)


def sums_until(
    group: np.ndarray, moments: np.ndarray, weights: np.ndarray, asked_group: np.ndarray, asked: np.ndarray
) -> np.ndarray:
    """int64 [queries]: sum of the weights of the query's own group whose moment is at or before the one asked."""
    codes, first, last = group_codes(group, moments, asked_group, asked)
    order = np.argsort(codes, kind="stable")
    running = np.concatenate([[0], np.cumsum(weights[order])])
    ordered = codes[order]
    return running[np.searchsorted(ordered, last, "right")] - running[np.searchsorted(ordered, first, "left")]


def group_codes(
    group: np.ndarray, moments: np.ndarray, asked_group: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64 codes that order by (group, moment): of the rows, of the start of each query's group, of each query.

    Moments become their ranks where group x span would not fit.
    """
    if len(moments) == 0 or len(asked) == 0:
        return np.zeros(len(moments), np.int64), np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
    low, high = min(moments.min(), asked.min()), max(moments.max(), asked.max())
    groups = int(max(group.max(), asked_group.max())) + 1
    if groups * (int(high) - int(low) + 2) >= 2**62:
        known = np.unique(np.concatenate([moments, asked]))
        moments, asked = np.searchsorted(known, moments), np.searchsorted(known, asked)
        low, high = 0, len(known)
    span = int(high) - int(low) + 2
    return group * span + (moments - low), asked_group * span, asked_group * span + (asked - low)
