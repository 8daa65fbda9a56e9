"""Raw feature columns of an Arrow table as the encoder takes them."""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa

from contracts.errors import SchemaError
from contracts.features.encoding import Column
from contracts.features.feature_spec import FeatureField


def raw_columns(table: pa.Table, fields: Iterable[FeatureField], origin: object) -> dict[str, Column]:
    """Column per field: numbers as numpy where nothing is missing or NaN says so, all else as lists.

    Raises SchemaError when `table`, read from `origin`, lacks a column.
    """
    columns: dict[str, Column] = {}
    for field in fields:
        values = column(table, field.name, origin)
        numeric = pa.types.is_floating(values.type) or pa.types.is_integer(values.type)
        columns[field.name] = values.to_numpy() if field.dense and numeric else values.to_pylist()
    return columns


def column(table: pa.Table, name: str, origin: object) -> pa.ChunkedArray:
    """Raises SchemaError when there is none of that name."""
    if name not in table.column_names:
        found = ", ".join(table.column_names)
        raise SchemaError(f"{origin} has no column {name!r}, it has {found}; run `sluice features` again")
    return table.column(name)
