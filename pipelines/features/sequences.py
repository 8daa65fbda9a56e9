"""The last K values a user clicked, as of each query, newest first.

A click is known to a query from the publish at which it became visible (see pipelines/windows/publish_clock.py). What
is known is ordered by the time of the click itself, then by when it was learned, then by the time of its impression and
the row's hash, so that two runs agree on ties. Clicks whose value is missing do not count. A log whose label is an
expression tells no time of a click: it is that of the impression.

Of the clicks of a user that became visible at one publish, a list can hold the K newest alone. A user with more clicks
than a task should hold is brought together with no others than these: K for each publish.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, LongType, StructField, StructType

from contracts.artifacts import ROW, USER
from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.features.measures import MOMENT, QUERY
from pipelines.features.prefix_sums import group_codes
from pipelines.features.running_counters import keys_above
from pipelines.windows.publish_clock import AT, CLICKED_AT, LEARNED, PublishClock

VALUE, HISTORY, VISIBLE, _PLACE = "_value", "_history", "_visible", "_place"
ORDER = (CLICKED_AT, LEARNED, AT, ROW)


@step(needs={USER: "string", **dict.fromkeys(ORDER, "bigint")}, gives={HISTORY: "any", MOMENT: "bigint"})
def last_clicked(
    impressions: DataFrame, queries: DataFrame, value: Column, length: int, clock: PublishClock,
    most: int | None = None, beside: Mapping[str, Column] | None = None,
) -> DataFrame:
    """USER, MOMENT (the last publish before the query), HISTORY, a list, and one as long for each of `beside`, nulls
    included; a row per distinct pair.

    impressions  USER, ROW, the columns of `value` and the time columns of `with_times`
    queries      USER and AT (microseconds); those without a user have no row
    most         clicks of one user that a task should hold
    """
    further = {name: column.alias(name) for name, column in (beside or {}).items()}
    clicks = impressions.select(USER, *ORDER, clock.visible(F.col(LEARNED)).alias(VISIBLE), value.alias(VALUE),
                                *further.values())
    known = clicks.filter(F.col(USER).isNotNull() & F.col(LEARNED).isNotNull() & F.col(VALUE).isNotNull())
    known = known if most is None else _thinned(known, length, most)
    moment = clock.last_publish(F.col(AT)).alias(MOMENT)
    asked = queries.filter(F.col(USER).isNotNull()).select(USER, moment).distinct().withColumn(QUERY, F.lit(True))
    merged = known.withColumn(QUERY, F.lit(False)).unionByName(asked, allowMissingColumns=True)
    schema = StructType([
        impressions.schema[USER], StructField(MOMENT, LongType()),
        StructField(HISTORY, ArrayType(clicks.schema[VALUE].dataType)),
        *(StructField(name, ArrayType(clicks.schema[name].dataType)) for name in further),
    ])
    return per_key(merged, [USER], partial(histories, length=length, beside=tuple(further)), schema)


def clickers(impressions: DataFrame, moment: int) -> DataFrame:
    """Queries at one moment (microseconds) of all who have a click that is known; the lists of others are empty."""
    known = impressions.filter(F.col(USER).isNotNull() & (F.col(LEARNED) <= moment))
    return known.select(USER, F.lit(moment).cast("bigint").alias(AT))


def _thinned(known: DataFrame, length: int, most: int) -> DataFrame:
    """Without the clicks of users of more than `most` that no list can hold."""
    heavy = keys_above(known, [USER], most)
    if heavy is None:
        return known
    newest = Window.partitionBy(USER, VISIBLE).orderBy(*[F.col(name).desc() for name in ORDER])
    placed = known.join(F.broadcast(heavy), [USER], "left_semi").withColumn(_PLACE, F.row_number().over(newest))
    kept = placed.where(F.col(_PLACE) <= length).drop(_PLACE)
    return known.join(F.broadcast(heavy), [USER], "left_anti").unionByName(kept)


def histories(table: pa.Table, group: np.ndarray, length: int, beside: Sequence[str] = ()) -> pa.Table:
    """The queries among the rows with their lists; `group` numbers the rows' users, `beside` are further columns."""
    asks = table.column(QUERY).to_numpy()
    clicks = np.flatnonzero(~asks)
    times = {name: table.column(name).fill_null(0).to_numpy() for name in (*ORDER, VISIBLE)}
    order = clicks[np.lexsort([*(times[name][clicks] for name in reversed(ORDER)), group[clicks]])]
    users, visible = group[order], times[VISIBLE][order]
    asked_users, moments = group[asks], table.column(MOMENT).filter(table.column(QUERY)).to_numpy()
    places, counts = _newest(users, visible, asked_users, moments, length)
    offsets, taken = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32)), pa.array(order[places])
    lists = {name: pa.ListArray.from_arrays(offsets, table.column(column).combine_chunks().take(taken))
             for name, column in ((HISTORY, VALUE), *zip(beside, beside, strict=True))}
    queries = {name: table.column(name).filter(table.column(QUERY)) for name in (USER, MOMENT)}
    return pa.table({**queries, **lists})


def _newest(
    users: np.ndarray, visible: np.ndarray, asked_users: np.ndarray, moments: np.ndarray, length: int
) -> tuple[np.ndarray, np.ndarray]:
    """(places in the ordered clicks, newest first, query after query; how many each query has).

    Where clicks became visible in their order, those known to a query are a run of them that ends where the next is not
    visible yet. A user of whom that does not hold is looked at click by click.
    """
    early = np.zeros(len(users), dtype=bool)
    early[1:] = (visible[1:] < visible[:-1]) & (users[1:] == users[:-1])
    disordered = np.isin(asked_users, users[early])
    grown = _running_maximum(users, visible)
    codes, first, last = group_codes(users, grown, asked_users, moments)
    start, end = np.searchsorted(codes, first, "left"), np.searchsorted(codes, last, "right")
    counts = np.where(disordered, 0, np.minimum(end - start, length))
    chosen = {
        query: _visible_places(users, visible, asked_users[query], moments[query], length)
        for query in np.flatnonzero(disordered).tolist()
    }
    for query, found in chosen.items():
        counts[query] = len(found)
    begins = np.cumsum(counts) - counts
    places = np.repeat(end - 1, counts) - (np.arange(counts.sum()) - np.repeat(begins, counts))
    for query, found in chosen.items():
        places[begins[query] : begins[query] + len(found)] = found
    return places, counts


def _running_maximum(users: np.ndarray, visible: np.ndarray) -> np.ndarray:
    """Per user, the largest so far: sorted, as a search needs it."""
    grown = visible.copy()
    late = np.flatnonzero((visible[1:] < visible[:-1]) & (users[1:] == users[:-1])) + 1
    for user in np.unique(users[late]):
        begin, end = np.searchsorted(users, [user, user + 1])
        grown[begin:end] = np.maximum.accumulate(visible[begin:end])
    return grown


def _visible_places(users: np.ndarray, visible: np.ndarray, user: int, moment: int, length: int) -> np.ndarray:
    begin, end = np.searchsorted(users, [user, user + 1])
    return (begin + np.flatnonzero(visible[begin:end] <= moment))[-length:][::-1]
