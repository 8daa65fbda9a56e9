"""One row per event: the copy known first, ties broken by the row's hash.

A log with a key or with times says what an event is: equal rows are one event, delivered twice. A plain table does not:
its equal rows are rows of their own, told apart by a running number.
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

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


def drop_duplicates(frame: DataFrame, raw: Sequence[str], duplicates: int) -> DataFrame:
    """Keeps one row per `_row`. The choice does not depend on files, partitions or the order of rows.

    Rows without an equal, nearly all, are passed on as they come; the others are ranked. `duplicates` is how many rows
    are too many: where they are few, their ids pass through the driver, so that an engine knows them to be few.
    """
    rows = frame.groupBy(ROW).agg(F.count(F.lit(1)).alias(_RANK))
    repeated = rows.where(F.col(_RANK) > 1).select(F.col(ROW).alias(_CONTENT))
    if duplicates <= FEW:
        repeated = frame.sparkSession.createDataFrame(repeated.toArrow(), repeated.schema)
    marked = repeated.join(frame, F.col(_CONTENT) == F.col(ROW), "right")
    earliest = [KNOWN] if KNOWN in frame.columns else []
    order = Window.partitionBy(ROW).orderBy(*earliest, _CONTENT)
    copies = marked.where(F.col(_CONTENT).isNotNull()).withColumn(_CONTENT, row_hash(frame, sorted(raw)))
    first = copies.withColumn(_RANK, F.row_number().over(order)).where(F.col(_RANK) == 1).drop(_RANK)
    return marked.where(F.col(_CONTENT).isNull()).unionByName(first).drop(_CONTENT)
