"""One column of several Parquet files as parts in ascending order.

Files that are ranges of one sort, as those of a cluster, are read one after another; those whose values overlap are in
memory together, as an engine in one process has them anyway. The order within a file does not matter.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq


def in_order(files: Sequence[Path], column: str) -> Iterator[pa.Array]:
    """Ascending within and over the parts; texts in the byte order of UTF-8."""
    bounds: dict[Path, Any] = {file: _least(file, column) for file in files}
    ordered = [file for file in files if bounds[file] is None]
    ordered += sorted((file for file in files if bounds[file] is not None), key=bounds.__getitem__)
    held: list[pa.Array] = []
    for file, following in zip_longest(ordered, ordered[1:]):
        values = pa.concat_arrays([*held, _column(file, column)])
        values = values.take(pc.array_sort_indices(values))
        count = len(values) if following is None else _below(values, bounds[following])
        yield values.slice(0, count)
        held = [values.slice(count)]


def _below(values: pa.Array, bound: Any) -> int:
    """How many values are below the bound, of which None says that any may be."""
    return 0 if bound is None else pc.sum(pc.less(values, bound)).as_py() or 0


def _column(file: Path, column: str) -> pa.Array:
    found = pq.read_table(file, columns=[column], partitioning=None).column(0)
    wide = found.cast(pa.large_string()) if pa.types.is_string(found.type) else found
    return pa.concat_arrays(wide.chunks) if wide.num_chunks else pa.array([], wide.type)


def _least(file: Path, column: str) -> str | int | None:
    """What no value of the file is below, by its footer; None where that does not tell."""
    footer = pq.read_metadata(file)
    place = footer.schema.names.index(column)
    groups = [footer.row_group(group).column(place).statistics for group in range(footer.num_row_groups)]
    if not groups or any(found is None or not found.has_min_max for found in groups):
        return None
    try:
        least: str | int = min(found.min for found in groups)
    except UnicodeDecodeError:  # of a text cut short within a character
        return None
    return least
