"""One row per event: the copy known first, ties broken by the row's hash.

A log with a key or with times says what an event is: equal rows are one event, delivered twice. A plain table does not:
its equal rows are rows of their own, told apart by a running number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import pyarrow.compute as pc
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from contracts.artifacts import DAY, KNOWN, ROW
from pipelines.engine.content_hash import row_hash

_RANK, _CONTENT = "_rank", "_content"
FEW = 1_000_000


def identity(key: Sequence[str], raw: Sequence[str]) -> list[str]:
    """What identifies an event: its key, or its whole row, and its day, so that a day can be written alone."""
    return [*(key or raw), DAY]


def add_row(frame: DataFrame, key: Sequence[str], raw: Sequence[str]) -> DataFrame:
    """Adds `_row`, an int64 hash of what identifies the event."""
    return frame.withColumn(ROW, row_hash(frame, identity(key, raw)))


def number_copies(frame: DataFrame, raw: Sequence[str]) -> DataFrame:
    """Adds `_row`, an int64 that equal rows do not share: the hash of the row, and of its number among its equals.

    Which of the equal rows gets which number does not matter, since they are equal in every column.
    """
    content = row_hash(frame, identity((), raw))
    number = F.row_number().over(Window.partitionBy(ROW).orderBy(ROW))
    numbered = frame.withColumn(ROW, content).withColumn(_RANK, number)
    copy = F.when(F.col(_RANK) > 1, F.xxhash64(F.col(ROW), F.col(_RANK))).otherwise(F.col(ROW))
    return numbered.withColumn(ROW, copy).drop(_RANK)


class Repeats(NamedTuple):
    """How many rows are too many, and the `_row` of the events that have them, as `_content`; None without any."""

    rows: int
    events: DataFrame | None


def find_repeats(frame: DataFrame, few: int = FEW) -> Repeats:
    """Of a frame with `_row`, in one pass. Up to `few` events pass through the driver, so that an engine knows them to
    be few."""
    counted = frame.groupBy(ROW).agg(F.count(F.lit(1)).alias(_RANK)).where(F.col(_RANK) > 1)
    found = counted.limit(few + 1).toArrow()
    if found.num_rows > few:
        more = counted.agg(F.sum(F.col(_RANK) - 1).alias(_RANK)).collect()[0]
        return Repeats(int(more[_RANK]), counted.select(F.col(ROW).alias(_CONTENT)))
    if not found.num_rows:
        return Repeats(0, None)
    events = found.select([ROW]).rename_columns([_CONTENT])
    schema = StructType([StructField(_CONTENT, LongType())])
    rows = pc.sum(found.column(_RANK)).as_py() - found.num_rows
    return Repeats(rows, frame.sparkSession.createDataFrame(events, schema))


def drop_duplicates(frame: DataFrame, raw: Sequence[str], repeats: Repeats) -> DataFrame:
    """Keeps one row per `_row`. The choice does not depend on files, partitions or the order of rows.

    Rows without an equal, nearly all, are passed on as they come; the others are ranked.
    """
    if repeats.events is None:
        return frame
    marked = repeats.events.join(frame, F.col(_CONTENT) == F.col(ROW), "right")
    earliest = [KNOWN] if KNOWN in frame.columns else []
    order = Window.partitionBy(ROW).orderBy(*earliest, _CONTENT)
    copies = marked.where(F.col(_CONTENT).isNotNull()).withColumn(_CONTENT, row_hash(frame, sorted(raw)))
    first = copies.withColumn(_RANK, F.row_number().over(order)).where(F.col(_RANK) == 1).drop(_RANK)
    return marked.where(F.col(_CONTENT).isNull()).unionByName(first).drop(_CONTENT)
