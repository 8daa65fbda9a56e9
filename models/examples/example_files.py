"""Encoded examples as files, without torch: what they hold, and one column of them at a time.

`FOLDER/day=D/*.parquet` as the pipelines write it: one int32 column (or list of fixed length) per id slot, one double
column of raw values per dense slot, `_label`, `_row`, and `_user`, `_position` where the log has them,
`_draws` where it holds positives alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from contracts.errors import DataError, SchemaError


class RowGroup(NamedTuple):
    """A row group of a Parquet file: its number in the file and how many rows it holds."""

    path: Path
    number: int
    rows: int


class ExampleFiles:
    """The examples below one folder. Raises DataError when it holds no row."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.groups = [group for path in sorted(folder.glob("day=*/*.parquet")) for group in _row_groups(path)]
        self.rows = sum(group.rows for group in self.groups)
        if self.rows == 0:
            raise DataError(f"{folder} holds no examples (day=*/*.parquet); run `sluice features`, or widen the window")

    def column(self, name: str) -> np.ndarray:
        """One column of all rows in file order; a list column becomes [N, length]."""
        return np.concatenate([values for (values,) in self.parts(name)])

    def parts(self, *names: str) -> Iterator[tuple[np.ndarray, ...]]:
        """Columns as `column` has them, a file at a time: what only counts over a long window holds no more."""
        for path in dict.fromkeys(group.path for group in self.groups):
            file = pq.ParquetFile(path)
            missing = [name for name in names if name not in file.schema_arrow.names]
            if missing:
                raise SchemaError(f"{self.folder} has no column {missing[0]!r}")
            table = file.read(columns=list(dict.fromkeys(names)))
            yield tuple(plain(table.column(name), name) for name in names)


def _row_groups(path: Path) -> list[RowGroup]:
    meta = pq.read_metadata(path)
    groups = [RowGroup(path, index, meta.row_group(index).num_rows) for index in range(meta.num_row_groups)]
    return [group for group in groups if group.rows]


def plain(column: pa.ChunkedArray, name: str) -> np.ndarray:
    """numpy values; missing numbers are NaN; lists of one length become [N, length]."""
    if not pa.types.is_nested(column.type):
        return column.to_numpy()
    lengths = pc.min_max(pc.fill_null(pc.list_value_length(column), -1)).as_py()
    if lengths["min"] != lengths["max"]:
        raise SchemaError(f"column {name!r} has lists of {lengths['min']} to {lengths['max']} values (-1: null); all "
                          "must have one length")
    flat = pc.list_flatten(column).to_numpy()
    return flat.reshape(len(column), -1)
