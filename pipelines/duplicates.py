"""One row per event: the copy known first, ties broken by the row's hash."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F

from contracts.artifacts import DAY, KNOWN, ROW
from pipelines.content_hash import row_hash

_RANK, _CONTENT = "_rank", "_content"


def identity(key: Sequence[str], raw: Sequence[str]) -> list[str]:
    """What identifies an event: its key, or its whole row, and its day, so that a day can be written alone."""
    return [*(key or raw), DAY]


def add_row(frame: DataFrame, key: Sequence[str], raw: Sequence[str]) -> DataFrame:
    """Adds `_row`, an int64 hash of what identifies the event."""
    return frame.withColumn(ROW, row_hash(frame, identity(key, raw)))


def drop_duplicates(frame: DataFrame, raw: Sequence[str]) -> DataFrame:
    """Keeps one row per `_row`. The choice does not depend on files, partitions or the order of rows."""
    earliest = [KNOWN] if KNOWN in frame.columns else []
    order = Window.partitionBy(ROW).orderBy(*earliest, _CONTENT)
    ranked = frame.withColumn(_CONTENT, row_hash(frame, sorted(raw))).withColumn(_RANK, F.row_number().over(order))
    return ranked.where(F.col(_RANK) == 1).drop(_RANK, _CONTENT)
