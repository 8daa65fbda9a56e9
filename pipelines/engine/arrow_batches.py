"""Arrow batches as functions of Arrow take them: texts as ordinary strings, rows enough to be worth a call, columns of
small tables beside their own.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc


def plain(batch: pa.RecordBatch) -> pa.RecordBatch:
    """With texts, and lists of texts, as Arrow's ordinary strings; engines hand over views and large ones."""
    for place, kind in enumerate(batch.schema.types):
        if _plain_type(kind) != kind:
            batch = batch.set_column(place, batch.schema.names[place], batch.column(place).cast(_plain_type(kind)))
    return batch


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_string_view(kind) or pa.types.is_large_string(kind):
        return pa.string()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return pa.list_(_plain_type(kind.value_type))
    return kind


def larger(batches: Iterator[pa.RecordBatch], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of at least `rows` rows, and a last one of what is left; none without rows."""
    held: list[pa.RecordBatch] = []
    for batch in batches:
        held.append(plain(batch))
        if sum(part.num_rows for part in held) >= rows:
            yield _joined(held)
            held = []
    if any(part.num_rows for part in held):
        yield _joined(held)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]


class LookUp(NamedTuple):
    """A row per value of the column `key`, which the rows that look it up have, too."""

    key: str
    keys: pa.Array
    columns: pa.RecordBatch

    @classmethod
    def of(cls, table: pa.Table, key: str) -> LookUp:
        """Of a table with one row per key."""
        none = pa.RecordBatch.from_pylist([], schema=table.schema)
        batch = plain(next(iter(table.combine_chunks().to_batches()), none))
        others = [name for name in batch.schema.names if name != key]
        return cls(key, batch.column(key), batch.select(others))


def looked_up(batches: Iterator[pa.RecordBatch], tables: Sequence[LookUp], rows: int) -> Iterator[pa.RecordBatch]:
    """Batches of at least `rows` rows with the tables' columns; nulls where a table has no such key."""
    for batch in larger(batches, rows):
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        for table in tables:
            found = table.columns.take(pc.index_in(columns[table.key], table.keys))
            columns |= dict(zip(found.schema.names, found.columns, strict=True))
        yield pa.RecordBatch.from_pydict(columns)
