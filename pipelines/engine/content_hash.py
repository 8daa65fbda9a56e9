"""One hash of a table's rows, whatever their order and however they are spread over files."""

from __future__ import annotations

import hashlib

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, DataType, DecimalType, IntegralType, MapType, StringType, StructType

from contracts.artifacts import DAY
from pipelines.engine.embedded import is_embedded

EXACT_DIGITS = 18  # of a decimal that every engine hashes as the same number


def content_hash(frame: DataFrame) -> str:
    """SHA-256 over the schema, the number of rows and the sum of the rows' 64-bit hashes (columns sorted by name).

    A sum, not an exclusive or, so that a row that is there twice counts twice.
    """
    row = frame.select(*sums(hashed(frame))).collect()[0]
    return digest(schema_text(frame), row["rows"], row["hashes"])


def day_hashes(frame: DataFrame) -> dict[str, str]:
    """The hash of each day's rows, without the column `day` itself."""
    others = frame.drop(DAY)
    rows = frame.groupBy(DAY).agg(*sums(hashed(others))).collect()
    return {row[DAY]: digest(schema_text(others), row["rows"], row["hashes"]) for row in rows}


def hashed(frame: DataFrame) -> Column:
    """`row_hash` of all columns."""
    return row_hash(frame, sorted(frame.columns))


def sums(hashes: Column) -> list[Column]:
    """Aggregates `rows` and `hashes` of a column that is `hashed`; those of parts of a table add up to those of the
    table.
    """
    return [F.count(F.lit(1)).alias("rows"), F.sum(hashes.cast("decimal(38,0)")).alias("hashes")]


def schema_text(frame: DataFrame) -> str:
    return ",".join(f"{name} {frame.schema[name].dataType.simpleString()}" for name in sorted(frame.columns))


def digest(schema: str, rows: int, hashes: object) -> str:
    """Of `schema_text` and the sums; those of no rows are 0 and None."""
    return hashlib.sha256(f"{schema}|{rows}|{hashes}".encode()).hexdigest()


def row_hash(frame: DataFrame, names: list[str]) -> Column:
    """xxhash64 of these columns. The hash skips nulls, so that (null, 1) = (1, null): null flags are hashed too."""
    lambdas = not any(isinstance(frame.schema[name].dataType, ArrayType) for name in names) or is_embedded(
        frame.sparkSession)
    values = [value for name in names for value in _hashable(F.col(f"`{name}`"), frame.schema[name].dataType, lambdas)]
    return F.xxhash64(*values, *[F.isnull(value) for value in values])


def _hashable(column: Column, kind: DataType, lambdas: bool) -> list[Column]:
    """What stands for the column, hashed alike by every engine; a list with the null flags of its elements."""
    if isinstance(kind, ArrayType) and not isinstance(kind.elementType, ArrayType | MapType | StructType):
        flags = F.transform(column, F.isnull)
        return [column, flags if lambdas else _flags_of_most(column, kind.elementType, flags)]
    if isinstance(kind, ArrayType | MapType | StructType):
        return [F.to_json(column)]
    return [column.cast("string") if isinstance(kind, DecimalType) and kind.precision > EXACT_DIGITS else column]


def _flags_of_most(column: Column, element: DataType, flags: Column) -> Column:
    """`flags` without a lambda where no element is null: Apache Spark looks a setting up for each one of a lambda.

    A value that is not there is not there for sure (false, no null) where none of the elements is null.
    """
    if not isinstance(element, StringType | IntegralType):
        return flags
    rare = F.lit("\0") if isinstance(element, StringType) else F.lit(-1).cast(element)
    none_is_null = F.array_contains(column, rare).eqNullSafe(F.lit(False))
    return F.when(none_is_null, F.array_repeat(F.lit(False), F.size(column))).otherwise(flags)
