"""One hash of a table's rows, whatever their order and however they are spread over files."""

from __future__ import annotations

import hashlib

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, MapType, StructType


def content_hash(frame: DataFrame) -> str:
    """SHA-256 over the schema, the number of rows and the sum of the rows' 64-bit hashes (columns sorted by name).

    A sum, not an exclusive or, so that a row that is there twice counts twice.
    """
    names = sorted(frame.columns)
    total = F.sum(row_hash(frame, names).cast("decimal(38,0)"))
    row = frame.select(F.count(F.lit(1)), total).collect()[0]
    schema = ",".join(f"{name} {frame.schema[name].dataType.simpleString()}" for name in names)
    return hashlib.sha256(f"{schema}|{row[0]}|{row[1]}".encode()).hexdigest()


def row_hash(frame: DataFrame, names: list[str]) -> Column:
    """xxhash64 of these columns. Spark's hash skips nulls, so that (null, 1) = (1, null): null flags are hashed too."""
    values = [_hashable(F.col(f"`{name}`"), frame.schema[name].dataType) for name in names]
    return F.xxhash64(*values, *[F.isnull(value) for value in values])


def _hashable(column: Column, kind: DataType) -> Column:
    if isinstance(kind, ArrayType | MapType | StructType):
        return F.to_json(column, {"ignoreNullFields": "false"})
    return column
