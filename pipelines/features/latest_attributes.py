"""One row per user or item that a table or the log knows, with the attributes of its side.

Attributes come from the side's table, or, where only the log has them, from the latest event (by event time, then row
id) in which they are present.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import ITEM, ROW, USER
from pipelines.features.source_columns import Located
from pipelines.windows.publish_clock import AT


def latest_attributes(
    known: DataFrame, table: DataFrame | None, key: str, located: Sequence[Located], also: Sequence[str] = (),
    counts: Sequence[Column] = (),
) -> DataFrame:
    """`key` and a column per located column, named as in the joined events; `also` are further columns of the log.

    known   impressions that count at the publish, with the columns of the log that are asked for
    counts  aggregates over those of a key; null of a key that the table alone knows
    """
    of_log = dict.fromkeys([*(c.name for c in located if c.origin == "log" and c.name not in (USER, ITEM)), *also])
    latest = [F.max_by(name, F.when(F.col(name).isNotNull(), _order())).alias(name) for name in of_log]
    keyed = known.filter(F.col(key).isNotNull())
    seen = keyed.groupBy(key).agg(*latest, *counts) if latest or counts else keyed.select(key).distinct()
    if table is None:
        return seen
    columns = {c.name: F.col(c.column).alias(c.name) for c in located if c.origin != "log"}
    return table.select(key, *columns.values()).join(seen, key, "full")


def _order() -> Column:
    """By time, then row id, in one number: AT 2^64 + ROW. A struct of both is held by the embedded engine as a slice of
    its batch, of which every key counts the whole, so that 30 thousand keys were told to need 14 GB."""
    at, row = F.col(AT).cast("decimal(18,0)"), F.col(ROW).cast("decimal(20,0)")
    return at * F.lit(Decimal(2**64)) + row
