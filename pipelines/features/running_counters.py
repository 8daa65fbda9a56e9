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

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.features.measures import ENTERS, MOMENT, QUERY, ROWS, Measure, changes_at
from pipelines.features.prefix_sums import PrefixSums
from pipelines.features.sliced_counters import sliced_counts
from pipelines.windows.publish_clock import AT, CLICK, CLOSE, ENTER, SECOND, PublishClock


@step(needs={AT: "bigint", ENTER: "bigint", CLOSE: "bigint", CLICK: "bigint"}, gives={MOMENT: "bigint"})
def running_counts(
    impressions: DataFrame, queries: DataFrame, keys: Sequence[str], measures: Sequence[Measure], clock: PublishClock,
    most: int | None = None,
) -> DataFrame:
    """`keys`, MOMENT (the last publish before the query) and one bigint column per measure; a row per distinct pair.

    impressions  `keys` and the time columns of `with_times`
    queries      `keys` and AT (microseconds); those without a key have no row
    most         impressions of one key that a task should hold; a key of more is counted slice of time by slice
    """
    shown, asking = _keyed(impressions, keys), _keyed(queries, keys)
    heavy = None if most is None else keys_above(shown, keys, most)
    if heavy is None:
        return _whole_counts(shown, asking, keys, measures, clock)
    light = [frame.join(F.broadcast(heavy), list(keys), "left_anti") for frame in (shown, asking)]
    spread = [frame.join(F.broadcast(heavy), list(keys), "left_semi") for frame in (shown, asking)]
    sliced = sliced_counts(_moves(spread[0], keys, measures, clock), _asked(spread[1], keys, clock), keys, measures)
    return _whole_counts(light[0], light[1], keys, measures, clock).unionByName(sliced)


def _whole_counts(
    impressions: DataFrame, queries: DataFrame, keys: Sequence[str], measures: Sequence[Measure], clock: PublishClock
) -> DataFrame:
    moves = _moves(impressions, keys, measures, clock).withColumn(QUERY, F.lit(False))
    asked = _asked(queries, keys, clock).withColumn(QUERY, F.lit(True))
    merged = moves.unionByName(asked, allowMissingColumns=True)
    columns = [*[impressions.schema[key] for key in keys], *(StructField(name, LongType()) for name in (
        MOMENT, *(measure.column for measure in measures)))]
    return per_key(merged, keys, partial(counted, keys=tuple(keys), measures=tuple(measures)), StructType(columns))


def _asked(queries: DataFrame, keys: Sequence[str], clock: PublishClock) -> DataFrame:
    """Distinct keys and MOMENTs."""
    return queries.select(*keys, clock.last_publish(F.col(AT)).alias(MOMENT)).distinct()


def keys_above(impressions: DataFrame, keys: Sequence[str], most: int) -> DataFrame | None:
    """The keys of more impressions than that, which are few; None where there is none."""
    rows = impressions.groupBy(*keys).agg(F.count(F.lit(1)).alias(ROWS))
    found = rows.where(F.col(ROWS) > most).select(*keys)
    table = found.toArrow()
    return impressions.sparkSession.createDataFrame(table, found.schema) if table.num_rows else None


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
    """The queries among the rows with their measures; `group` numbers the rows' keys. One sort for each time."""
    asks = table.column(QUERY).to_numpy()
    moves = table.filter(pa.array(~asks))
    rows = moves.column(ROWS).to_numpy()
    columns = {name: table.column(name).filter(table.column(QUERY)) for name in (*keys, MOMENT)}
    asked = columns[MOMENT].to_numpy()
    weights = {m: np.where(moves.column(m.column).to_numpy(), rows, 0) for m in measures}
    totals = dict.fromkeys(measures, np.zeros(len(asked), np.int64))
    for name, signs in changes_at(measures).items():
        happens = moves.column(name).is_valid().to_numpy()
        moments = moves.column(name).drop_null().to_numpy()
        sums = PrefixSums(group[~asks][happens], moments, group[asks], asked)
        for measure, sign in signs.items():
            totals[measure] = totals[measure] + sign * sums.of(weights[measure][happens])
    return pa.table(columns | {m.column: pa.array(totals[m], pa.int64()) for m in measures})
