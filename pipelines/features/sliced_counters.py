"""Running counts of keys that have more events than a task should hold: partial sums by slice of time, then carry.

A change of a measure is an entry or an exit of impressions (see pipelines/features/running_counters.py). So, at t,

    measure(key, t) = changes of the key in the slices before that of t  +  those in the slice of t, at or before t

A task holds the changes of some keys and slices; what is carried from slice to slice is one row for each. The slices of
a key stay in as many parts as the engine's setting says: put together again, they would be the key.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from contracts.features.event_clock import SECOND, Measure
from pipelines.engine.key_batches import per_key
from pipelines.features.measures import ENTERED, MOMENT, QUERY, ROWS, changes_at
from pipelines.features.prefix_sums import PrefixSums

SLICE_WIDTH = 3_600 * SECOND
SLICE, _PLACE, _CARRY = "_slice", "_place", "_carry"


def sliced_counts(moves: DataFrame, asked: DataFrame, keys: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
    """`keys`, MOMENT and one bigint column per measure; a row per row of `asked`.

    moves  as `running_counters` makes them: `keys`, entries, exits, ENTERED, ROWS
    asked  distinct `keys` and MOMENT
    """
    names = [measure.column for measure in measures]
    changes = _changes(moves, keys, measures).withColumn(QUERY, F.lit(False))
    merged = changes.unionByName(asked.withColumn(QUERY, F.lit(True)), allowMissingColumns=True)
    merged = merged.withColumn(SLICE, F.col(MOMENT) - F.pmod(F.col(MOMENT), F.lit(SLICE_WIDTH)))
    longs = [StructField(name, LongType()) for name in (SLICE, MOMENT, *names)]
    schema = StructType([*(moves.schema[key] for key in keys), *longs])
    of_slice = partial(within_slices, keys=(*keys, SLICE), names=tuple(names))
    within = per_key(merged, [*keys, SLICE], of_slice, schema, spread=True)
    carried = within.join(_carry(merged, keys, names), [*keys, SLICE])
    return carried.select(*keys, MOMENT, *[(F.col(name) + F.col(_CARRY + name)).alias(name) for name in names])


def _changes(moves: DataFrame, keys: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
    """(keys, MOMENT, by how much each measure changes then)."""
    times = list(changes_at(measures))
    moments = F.posexplode(F.array(*[F.col(name) for name in times])).alias(_PLACE, MOMENT)
    exploded = moves.select(*keys, ROWS, ENTERED, moments).where(F.col(MOMENT).isNotNull())

    def change(bit: int, measure: Measure) -> Column:
        found = F.lit(0).cast("bigint")
        for place, name in enumerate(times):
            sign = changes_at(measures)[name].get(measure, 0)
            here = (F.col(ENTERED).bitwiseAND(F.lit(1 << bit).cast("bigint")) != 0) & (F.col(_PLACE) == place)
            found = F.when(here, F.col(ROWS) * F.lit(sign).cast("bigint")).otherwise(found) if sign else found
        return found

    return exploded.select(*keys, MOMENT, *[change(bit, m).alias(m.column) for bit, m in enumerate(measures)])


def _carry(merged: DataFrame, keys: Sequence[str], names: Sequence[str]) -> DataFrame:
    """(keys, SLICE, all changes of the key before the slice)."""
    totals = merged.groupBy(*keys, SLICE).agg(*[F.sum(name).alias(name) for name in names])
    before = Window.partitionBy(*keys).orderBy(SLICE).rowsBetween(Window.unboundedPreceding, -1)
    none = F.lit(0).cast("bigint")
    sums = [F.coalesce(F.sum(name).over(before), none).alias(_CARRY + name) for name in names]
    return totals.select(*keys, SLICE, *sums)


def within_slices(table: pa.Table, group: np.ndarray, keys: tuple[str, ...], names: tuple[str, ...]) -> pa.Table:
    """The queries among the rows with the changes of their own group up to their moment."""
    asks, moments = table.column(QUERY).to_numpy(), table.column(MOMENT).to_numpy()
    sums = PrefixSums(group[~asks], moments[~asks], group[asks], moments[asks])
    columns = {name: table.column(name).filter(table.column(QUERY)) for name in (*keys, MOMENT)}
    for name in names:
        columns[name] = pa.array(sums.of(table.column(name).fill_null(0).to_numpy()[~asks]), pa.int64())
    return pa.table(columns)
