"""Running counts of keys that have more events than a task should hold: partial sums by slice of time, then carry.

A change of a measure is an entry or an exit of impressions (see pipelines/features/running_counters.py). So, at t,

    measure(key, t) = changes of the key in the slices before that of t  +  those in the slice of t, at or before t

A change is told by when it is, which of the moves' times that is and how many impressions it is of, so that it is as
narrow for sixty measures as for one. A task holds the changes of some keys and slices; what is carried from slice to
slice is one row for each. The slices of a key stay in as many parts as the engine's setting says: put together again,
they would be the key.
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
from pipelines.features.measures import ENTERED, MOMENT, QUERY, ROWS, changes_at, has_entered
from pipelines.features.prefix_sums import PrefixSums

SLICE_WIDTH = 3_600 * SECOND
SLICE, PLACE, _CARRY = "_slice", "_place", "_carry"


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
    of_slice = partial(within_slices, keys=(*keys, SLICE), measures=tuple(measures))
    within = per_key(merged, [*keys, SLICE], of_slice, schema, spread=True)
    carried = within.join(_carry(merged, keys, measures), [*keys, SLICE])
    return carried.select(*keys, MOMENT, *[(F.col(name) + F.col(_CARRY + name)).alias(name) for name in names])


def _changes(moves: DataFrame, keys: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
    """(keys, MOMENT, PLACE of the time among those of `changes_at`, ENTERED, ROWS)."""
    moments = F.posexplode(F.array(*[F.col(name) for name in changes_at(measures)])).alias(PLACE, MOMENT)
    return moves.select(*keys, ROWS, ENTERED, moments).where(F.col(MOMENT).isNotNull())


def _carry(merged: DataFrame, keys: Sequence[str], measures: Sequence[Measure]) -> DataFrame:
    """(keys, SLICE, all changes of the key before the slice); what changes alike is added up before it is told apart by
    measure.
    """
    alike = merged.groupBy(*keys, SLICE, PLACE, ENTERED).agg(F.sum(ROWS).alias(ROWS))
    totals = alike.groupBy(*keys, SLICE).agg(*[
        F.sum(_change(bit, measure, measures)).alias(measure.column) for bit, measure in enumerate(measures)])
    before = Window.partitionBy(*keys).orderBy(SLICE).rowsBetween(Window.unboundedPreceding, -1)
    none = F.lit(0).cast("bigint")
    sums = [F.coalesce(F.sum(m.column).over(before), none).alias(_CARRY + m.column) for m in measures]
    return totals.select(*keys, SLICE, *sums)


def _change(bit: int, measure: Measure, measures: Sequence[Measure]) -> Column:
    """By how much the measure, number `bit`, changes in a row; 0 in a query."""
    entered = F.col(ENTERED).bitwiseAND(F.lit(1 << bit).cast("bigint")) != 0
    found = F.lit(0).cast("bigint")
    for place, sign in enumerate(_signs(measure, measures)):
        change = F.col(ROWS) * F.lit(sign).cast("bigint")
        found = F.when(entered & (F.col(PLACE) == place), change).otherwise(found) if sign else found
    return found


def _signs(measure: Measure, measures: Sequence[Measure]) -> list[int]:
    """1, -1 or 0 for each PLACE: whether the measure grows or shrinks then."""
    return [signs.get(measure, 0) for signs in changes_at(measures).values()]


def within_slices(
    table: pa.Table, group: np.ndarray, keys: tuple[str, ...], measures: tuple[Measure, ...]
) -> pa.Table:
    """The queries among the rows with the changes of their own group up to their moment."""
    asks, moments = table.column(QUERY).to_numpy(), table.column(MOMENT).to_numpy()
    sums = PrefixSums(group[~asks], moments[~asks], group[asks], moments[asks])
    rows, entered, places = (table.column(name).fill_null(0).to_numpy()[~asks] for name in (ROWS, ENTERED, PLACE))
    columns = {name: table.column(name).filter(table.column(QUERY)) for name in (*keys, MOMENT)}
    for bit, measure in enumerate(measures):
        changes = np.where(has_entered(entered, bit), rows, 0) * np.array(_signs(measure, measures))[places]
        columns[measure.column] = pa.array(sums.of(changes), pa.int64())
    return pa.table(columns)
