"""Columns of the log that describe an item, as the latest take before a moment had them.

A row that was drawn has no such columns of its own. The positive gets them the same way, as a server will: what a log
says of an item at the moment of a take would otherwise tell the positive.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import LongType, StructField, StructType

from contracts.artifacts import ITEM, ROW
from pipelines.engine.key_batches import per_key
from pipelines.engine.step import step
from pipelines.windows.publish_clock import AT, ENTER

ASKED, MOMENT = "_asked", "_moment"


@step(needs={ROW: "bigint", ITEM: "string", AT: "bigint"}, gives={ROW: "bigint"})
def latest_values(asked: DataFrame, takes: DataFrame, columns: Sequence[str]) -> DataFrame:
    """ROW of `asked` and its item's `columns`, each the latest that is there of `takes` that count (ENTER) at AT."""
    known = takes.select(ROW, ITEM, F.col(ENTER).alias(MOMENT), F.lit(False).alias(ASKED), *columns)
    queries = asked.select(ROW, ITEM, F.col(AT).alias(MOMENT), F.lit(True).alias(ASKED))
    schema = StructType([StructField(ROW, LongType()), *(takes.schema[name] for name in columns)])
    merged = known.unionByName(queries, allowMissingColumns=True)
    return per_key(merged, [ITEM], partial(as_of, columns=tuple(columns)), schema)


def as_of(table: pa.Table, group: np.ndarray, columns: tuple[str, ...]) -> pa.Table:
    """The asking rows among them; `group` numbers the items. At one moment, what is known comes before what asks."""
    asks, moments, rows = (table.column(name).to_numpy() for name in (ASKED, MOMENT, ROW))
    order = np.lexsort([rows, asks, moments, group])
    wanted = asks[order]
    found = {name: _filled(table.column(name), order, group)[wanted] for name in columns}
    taken = {name: pa.array(np.maximum(places, 0), mask=places < 0) for name, places in found.items()}
    return pa.table({ROW: pa.array(rows[order[wanted]])} | {
        name: table.column(name).take(places) for name, places in taken.items()})


def _filled(column: pa.ChunkedArray, order: np.ndarray, group: np.ndarray) -> np.ndarray:
    """Per row of the order, the place of the group's latest value; -1 where there is none yet."""
    there = column.is_valid().to_numpy()[order]
    latest = np.maximum.accumulate(np.where(there, np.arange(len(order)), -1))
    same = (latest >= 0) & (group[order[np.maximum(latest, 0)]] == group[order])
    return np.where(same, order[np.maximum(latest, 0)], -1)
