"""Texts of a CSV file -> the types of a schema, by the rules of Apache Spark's CSV reader; what does not fit is marked.

    whole numbers      an optional sign and digits, nothing else
    float, double      as Java reads them; NaN, Inf, Infinity
    boolean            true or false in any case
    date, timestamp    as a cast reads them, decimals too
    string             as it is
"""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from contracts.errors import SchemaError
from pipelines.engine.by_pairs import by_pairs
from pipelines.reading.text_files import CORRUPT

_WHOLE = r"^[+-]?[0-9]+$"
_REAL = r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?[dDfF]?$"
_INFINITE = r"^[+-]?(Inf|Infinity)$"


def typed(frame: DataFrame, schema: T.StructType, options: Mapping[str, str], what: str) -> DataFrame:
    """The columns of `schema` and CORRUPT, from a frame of texts of the same names."""
    texts = {field.name: _text(field.name, options) for field in schema}
    values = {field.name: _value(texts[field.name], field, what) for field in schema}
    misfits = [text.isNotNull() & values[name].isNull() for name, text in texts.items()
               if not isinstance(schema[name].dataType, T.StringType)]
    bad = by_pairs(Column.__or__, [F.lit(False), *misfits])
    separator = options.get("sep", options.get("delimiter", ",")).replace("\\t", "\t")
    record = F.concat_ws(separator, *[F.coalesce(F.col(_quoted(name)), F.lit("")) for name in texts])
    corrupt = F.coalesce(F.col(CORRUPT), F.when(bad, record))
    return frame.select(*[value.alias(name) for name, value in values.items()], corrupt.alias(CORRUPT))


def with_times(frame: DataFrame, schema: T.StructType) -> DataFrame:
    """As `typed`, where only dates and timestamps are texts yet."""
    times = {field.name: field.dataType for field in schema
             if isinstance(field.dataType, T.DateType | T.TimestampType | T.TimestampNTZType)}
    values = {name: F.col(_quoted(name)).try_cast(kind) for name, kind in times.items()}
    misfits = [F.col(_quoted(name)).isNotNull() & value.isNull() for name, value in values.items()]
    bad = by_pairs(Column.__or__, [F.lit(False), *misfits])
    record = F.to_json(F.struct(*[F.col(_quoted(field.name)) for field in schema]))
    columns = [values.get(field.name, F.col(_quoted(field.name))).alias(field.name) for field in schema]
    return frame.select(*columns, F.coalesce(F.col(CORRUPT), F.when(bad, record)).alias(CORRUPT))


def _quoted(name: str) -> str:
    return f"`{name}`"


def _text(name: str, options: Mapping[str, str]) -> Column:
    """Null where the field is empty, or says that it is null."""
    text = F.col(_quoted(name))
    if options.get("ignoreleadingwhitespace", "").lower() == "true":
        text = F.ltrim(text)
    if options.get("ignoretrailingwhitespace", "").lower() == "true":
        text = F.rtrim(text)
    null = options.get("nullvalue", "")
    return F.when((text != "") & (text != null), text) if null else F.when(text != "", text)


def _value(text: Column, field: T.StructField, what: str) -> Column:
    kind = field.dataType
    if isinstance(kind, T.StringType):
        return text
    if isinstance(kind, T.IntegralType):
        return F.when(text.rlike(_WHOLE), text).try_cast(kind)
    if isinstance(kind, T.FloatType | T.DoubleType):
        return _real(text).cast(kind)
    if isinstance(kind, T.BooleanType):
        return F.when(F.lower(text).isin("true", "false"), F.lower(text) == "true")
    if isinstance(kind, T.DateType | T.TimestampType | T.TimestampNTZType | T.DecimalType):
        return text.try_cast(kind)
    raise SchemaError(f"{what}: column {field.name!r} is {kind.simpleString()}, which no CSV file can hold; read it as "
                      "STRING and derive it")


def _real(text: Column) -> Column:
    infinite = F.when(text.startswith("-"), float("-inf")).otherwise(float("inf"))
    number = F.when(text.rlike(_REAL), F.regexp_replace(text, "[dDfF]$", "").try_cast("double"))
    return F.when(text == "NaN", float("nan")).when(text.rlike(_INFINITE), infinite).otherwise(number)
