"""Reads a configured table with any Spark reader; rows that do not fit the schema are marked, not dropped."""

from __future__ import annotations

from pyspark.sql import DataFrame, DataFrameReader, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import StringType, StructType

from contracts.config.log import Source
from contracts.errors import ConfigError
from pipelines.engine.failures import explained

CORRUPT = "_corrupt"  # the text of a row that does not fit the schema, else null
_TEXT_FORMATS = ("csv", "json")
_TEXT_OPTIONS = {"mode": "PERMISSIVE", "columnNameOfCorruptRecord": CORRUPT, "enforceSchema": "false"}


def read(spark: SparkSession, source: Source, path: str, what: str = "log") -> DataFrame:
    """Raw columns, derived columns, and `_corrupt`.

    Text is parsed once and kept (the caller unpersists it): Spark converts only the columns that a query reads, so that
    whether a row fits would otherwise differ from query to query.

    Raises DataError when there is nothing to read or a file is damaged, SchemaError when a derived column's expression
    names an unknown column, ConfigError when schema_ddl is no DDL.
    """
    with explained(what, path):
        frame = _load(spark, source, path)
        corrupt = F.col(CORRUPT) if CORRUPT in frame.columns else F.lit(None).cast("string")
        frame = frame.select(*[F.col(f"`{c}`") for c in frame.columns if c != CORRUPT], corrupt.alias(CORRUPT))
    for name, expression in source.derive.items():
        with explained(f"{what}.derive.{name}", path):
            frame = frame.withColumn(name, F.expr(expression))
    return frame.persist() if _is_text(source) else frame


def _is_text(source: Source) -> bool:
    return source.format.lower() in _TEXT_FORMATS


def _load(spark: SparkSession, source: Source, path: str) -> DataFrame:
    text = _is_text(source)
    options = {**(_TEXT_OPTIONS if text else {}), **source.options}

    def reader() -> DataFrameReader:
        return spark.read.format(source.format).options(**options)

    schema = _declared(source)
    if text and schema is None:
        schema = reader().load(path).schema
    if schema is None:
        return reader().load(path)
    if text and CORRUPT not in schema.names:
        schema = schema.add(CORRUPT, StringType())
    return reader().schema(schema).load(path)


def _declared(source: Source) -> StructType | None:
    if source.schema_ddl is None:
        return None
    try:
        parsed = StructType.fromDDL(source.schema_ddl)
    except Exception as error:
        raise ConfigError(f"schema_ddl {source.schema_ddl!r} is no Spark DDL: {str(error).splitlines()[0]}") from None
    if not isinstance(parsed, StructType):
        raise ConfigError(f"schema_ddl {source.schema_ddl!r} is one type; write columns, such as 'a INT, b STRING'")
    return parsed
