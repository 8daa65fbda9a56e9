"""Windowed counts of impressions and clicks per key, as of each query: prefix sums over one sort per key.

An impression of a window W adds 1 to a measure when it enters (see pipelines/windows/publish_clock.py) and takes it
away at event_time + W; it never enters where that is not later than its entry. So, at t,

    measure(key, t) = entries of the key at or before t - exits of the key at or before t

With a publish grid an answer depends on (key, publish) alone: queries are the distinct pairs, and impressions of a key
that enter, leave and ask at the same publishes are counted together before they are brought to their key. Event-fresh,
every impression is a row of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from contracts.features.event_clock import Measure
from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.features.measures import (
    ENTERED,
    ENTERS,
    MOMENT,
    ROWS,
    changes_at,
    counts_by,
    entered_measures,
    has_entered,
)
from pipelines.features.prefix_sums import PrefixSums
from pipelines.features.sliced_counters import sliced_counts
from pipelines.windows.publish_clock import AT, CLICK, CLOSE, ENTER, PublishClock


@step(needs={AT: "bigint", ENTER: "bigint", CLOSE: "bigint", CLICK: "bigint"}, gives={MOMENT: "bigint"})
def running_counts(
    impressions: DataFrame, queries: DataFrame | Column, keys: Sequence[str], measures: Sequence[Measure],
    clock: PublishClock, most: int | None = None,
) -> DataFrame:
    """`keys`, MOMENT (the last publish before the query) and one bigint column per measure; a row per distinct pair.

    impressions  `keys` and the time columns of `with_times`
    queries      `keys` and AT (microseconds), those without a key have no row; or which impressions are queries, too:
                 these are read once
    most         impressions of one key that a task should hold, those counted together as one; a key of more is
                 counted slice of time by slice
    """
    shown = _keyed(impressions, keys)
    heavy = None if most is None else keys_above(shown, keys, most)
    if heavy is not None and most is not None and clock.period > 1:
        theirs = shown.join(F.broadcast(heavy), list(keys), "left_semi")
        asks = queries if isinstance(queries, Column) else None
        heavy = keys_above(_moves(theirs, keys, measures, clock, asks), keys, most)
    return counts_of(moves_of(impressions, queries, keys, measures, clock), keys, measures, heavy)


def moves_of(
    impressions: DataFrame, queries: DataFrame | Column, keys: Sequence[str], measures: Sequence[Measure],
    clock: PublishClock,
) -> DataFrame:
    """What counts are made of: `keys`, entries, exits, ENTERED, how many impressions have them, and MOMENT, of some
    rows: the distinct pairs that ask are among theirs. Moves of other impressions and queries may be added.
    """
    shown = _keyed(impressions, keys)
    if isinstance(queries, Column):
        return _moves(shown, keys, measures, clock, queries)
    asked = _asked(_keyed(queries, keys), keys, clock)
    return _moves(shown, keys, measures, clock).unionByName(asked, allowMissingColumns=True)


def counts_of(
    moves: DataFrame, keys: Sequence[str], measures: Sequence[Measure], heavy: DataFrame | None
) -> DataFrame:
    """As `running_counts`; `heavy` are the keys of too many moves for a task."""
    if heavy is None:
        return _whole_counts(moves, keys, measures)
    light, spread = (moves.join(F.broadcast(heavy), list(keys), kind) for kind in ("left_anti", "left_semi"))
    asked = spread.where(F.col(MOMENT).isNotNull()).select(*keys, MOMENT).distinct()
    return _whole_counts(light, keys, measures).unionByName(sliced_counts(spread, asked, keys, measures))


def _whole_counts(moves: DataFrame, keys: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
    columns = [*[moves.schema[key] for key in keys], *(StructField(name, LongType()) for name in (
        MOMENT, *(measure.column for measure in measures)))]
    return per_key(moves, keys, partial(counted, keys=tuple(keys), measures=tuple(measures)), StructType(columns))


def _asked(queries: DataFrame, keys: Sequence[str], clock: PublishClock) -> DataFrame:
    """Distinct keys and MOMENTs."""
    return queries.select(*keys, clock.last_publish(F.col(AT)).alias(MOMENT)).distinct()


def keys_above(frame: DataFrame, keys: Sequence[str], most: int) -> DataFrame | None:
    """The keys of more rows than that, which are few; None where there is none."""
    rows = frame.groupBy(*keys).agg(F.count(F.lit(1)).alias(ROWS))
    found = rows.where(F.col(ROWS) > most).select(*keys)
    table = found.toArrow()
    return frame.sparkSession.createDataFrame(table, found.schema) if table.num_rows else None


@step(needs={AT: "bigint", ENTER: "bigint", CLOSE: "bigint", CLICK: "bigint"}, gives={})
def counts_at(impressions: DataFrame, keys: Sequence[str], measures: Sequence[Measure], moment: int) -> DataFrame:
    """`keys` and one bigint column per measure, all as of one moment (microseconds); keys without impressions have no
    row."""
    counts = [count_at(measure, moment).alias(measure.column) for measure in measures]
    return _keyed(impressions, keys).groupBy(*keys).agg(*counts)


def count_at(measure: Measure, moment: int) -> Column:
    """The aggregate of it."""
    return F.count_if(counts_by(measure, moment))


def _keyed(frame: DataFrame, keys: Sequence[str]) -> DataFrame:
    return frame.filter(reduce(Column.__and__, [F.col(key).isNotNull() for key in keys]))


def _moves(
    impressions: DataFrame, keys: Sequence[str], measures: Sequence[Measure], clock: PublishClock,
    asks: Column | None = None,
) -> DataFrame:
    """(keys, entry per event, exit per window, ENTERED, number of such impressions); with `asks`, MOMENT, which is null
    where it does not hold.
    """
    times = {ENTERS[measure.event]: clock.visible(F.col(ENTERS[measure.event])) for measure in measures}
    times |= {m.exit: clock.visible(m.leaves(F.col(AT))) for m in measures if m.window is not None}
    if asks is not None:
        times[MOMENT] = F.when(asks, clock.last_publish(F.col(AT)))
    columns = [column.alias(name) for name, column in {**times, ENTERED: entered_measures(measures)}.items()]
    moves = impressions.select(*keys, *columns)
    if clock.period == 1:
        return moves.withColumn(ROWS, F.lit(1).cast("bigint"))
    return moves.groupBy(*keys, *times, ENTERED).agg(F.count(F.lit(1)).alias(ROWS))


def counted(table: pa.Table, group: np.ndarray, keys: tuple[str, ...], measures: tuple[Measure, ...]) -> pa.Table:
    """The distinct (key, MOMENT) of the rows with their measures; `group` numbers the rows' keys. One sort for each
    time."""
    asking = first_of_pairs(group, table.column(MOMENT))
    columns = {name: table.column(name).take(pa.array(asking)) for name in (*keys, MOMENT)}
    asked = columns[MOMENT].to_numpy()
    rows, entered = (table.column(name).fill_null(0).to_numpy() for name in (ROWS, ENTERED))
    weights = {m: np.where(has_entered(entered, place), rows, 0) for place, m in enumerate(measures)}
    totals = dict.fromkeys(measures, np.zeros(len(asked), np.int64))
    for name, signs in changes_at(measures).items():
        happens = table.column(name).is_valid().to_numpy()
        sums = PrefixSums(group[happens], table.column(name).drop_null().to_numpy(), group[asking], asked)
        for measure, sign in signs.items():
            totals[measure] = totals[measure] + sign * sums.of(weights[measure][happens])
    return pa.table(columns | {m.column: pa.array(totals[m], pa.int64()) for m in measures})


def first_of_pairs(group: np.ndarray, moments: pa.ChunkedArray) -> np.ndarray:
    """Places of the first row of each distinct (group, moment); rows without a moment have none."""
    places = np.flatnonzero(moments.is_valid().to_numpy())
    times = moments.drop_null().to_numpy()
    order = np.lexsort((times, group[places]))
    places, times = places[order], times[order]
    groups = group[places]
    new = np.ones(len(places), dtype=bool)
    new[1:] = (times[1:] != times[:-1]) | (groups[1:] != groups[:-1])
    return places[new]
