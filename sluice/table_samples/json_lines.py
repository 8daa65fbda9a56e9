"""JSON lines, an object each -> columns and Arrow's types, as the engine's reader would call them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from contracts.errors import DataError
from contracts.table_files import json_object

MOSTLY = 0.97  # of the lines


def json_columns(
    pieces: Sequence[bytes], path: Path, most_rows: int
) -> tuple[dict[str, list[Any]], dict[str, pa.DataType], int]:
    """Columns by name, their types, and the number of lines. A key of several types is text, as its JSON.

    Raises DataError where the lines are no objects, or hold fewer than two keys."""
    texts = [piece.decode("utf-8-sig", errors="replace") for piece in pieces]
    lines = [line for text in texts for line in text.split("\n") if line.strip()]
    rows = [row for line in lines if (row := json_object(line)) is not None]
    if len(rows) < MOSTLY * len(lines):
        raise DataError(f"{path} looks like JSON, and {len(lines) - len(rows)} of its first {len(lines)} lines are no "
                        "object; write one object a line (jq -c '.[]' makes them of an array)")
    shown = rows[:: max(1, len(rows) // most_rows)]
    columns = {key: [row.get(key) for row in shown] for key in dict.fromkeys(key for row in shown for key in row)}
    if len(columns) < 2:
        raise DataError(f"{path} has one key, {next(iter(columns), '')!r}; a table needs a label and at least one "
                        "field")
    arrays = {key: _array(values) for key, values in columns.items()}
    types = {key: one.type for key, one in arrays.items()}
    return {key: one.to_pylist() for key, one in arrays.items()}, types, len(lines)


def _array(values: list[Any]) -> pa.Array:
    try:
        found = pa.array(values)
    except (pa.ArrowException, OverflowError):
        found = pa.array([value if value is None or isinstance(value, str) else json.dumps(value) for value in values])
    return found.cast(pa.string()) if pa.types.is_null(found.type) else found
