"""What one day's features look like, in few numbers: rows, label rate, and per column nulls and the distribution.

A numeric column keeps 201 quantiles, a column of keys the counts of its 1,000 most frequent keys and of all others;
multi-valued columns and sequences count each of their keys. One pass for the numbers, one for the keys of all columns.
"""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as F
from pyspark.sql.types import ArrayType, NumericType

from contracts.artifacts import LABEL
from contracts.features.drift import QUANTILES, ColumnProfile

TOP_KEYS, DIGITS = 1000, 12


class DayProfile(BaseModel):
    """`day` YYYY-MM-DD; `label_rate` is the mean label."""
    model_config = ConfigDict(frozen=True, extra="forbid")

    day: str
    rows: int
    label_rate: float
    columns: dict[str, ColumnProfile]


def profile(frame: DataFrame, day: str, columns: list[str], numeric: set[str]) -> DayProfile:
    """`frame` holds the day's features, one row per event; `numeric` of its `columns` are numbers, the rest keys."""
    nulls = [F.sum(_missing(frame, name).cast("long")).alias(f"null:{name}") for name in columns]
    steps = [n / (QUANTILES - 1) for n in range(QUANTILES)]
    spread = [F.percentile(F.when(_finite(name), _number(name)), steps).alias(f"spread:{name}")
              for name in columns if name in numeric]
    totals = frame.agg(F.count(F.lit(1)).alias("rows"), F.avg(LABEL).alias("rate"), *nulls, *spread).collect()[0]
    rows, keys = totals["rows"], _keys(frame, [name for name in columns if name not in numeric])
    found = {}
    for name in columns:
        top, other = keys.get(name, ({}, 0))
        found[name] = ColumnProfile(
            null_rate=(totals[f"null:{name}"] or 0) / max(rows, 1),
            quantiles=_quantiles(totals[f"spread:{name}"]) if name in numeric else (), keys=top, other=other,
        )
    return DayProfile(day=day, rows=rows, label_rate=float(totals["rate"] or 0.0), columns=found)


def _quantiles(found: list[float] | None) -> tuple[float, ...]:
    """To DIGITS: engines interpolate between two values in different ways."""
    return tuple(float(f"{value:.{DIGITS}g}") for value in found or ())


def _missing(frame: DataFrame, name: str) -> F.Column:
    """Null, no finite number, or an empty list."""
    column, kind = F.col(f"`{name}`"), frame.schema[name].dataType
    missing = F.isnull(column)
    if isinstance(kind, ArrayType):
        return missing | (F.size(column) == 0)
    return missing | ~_finite(name) if isinstance(kind, NumericType) else missing


def _number(name: str) -> F.Column:
    return F.col(f"`{name}`").cast("double")


def _finite(name: str) -> F.Column:
    """Null of null; NaN is more than infinity."""
    return F.abs(_number(name)) < F.lit("Infinity").cast("double")


def _keys(frame: DataFrame, columns: list[str]) -> dict[str, tuple[dict[str, int], int]]:
    """{column: (count of each of the most frequent keys, count of all others)}."""
    if not columns:
        return {}
    pairs = [_pairs(frame, name) for name in columns]
    long = frame.select(F.explode(F.concat(*pairs)).alias("pair")).select("pair.name", "pair.key")
    counts = long.where(F.isnotnull("key")).groupBy("name", "key").count()
    order = Window.partitionBy("name").orderBy(F.desc("count"), "key")
    place = F.when(F.row_number().over(order) <= TOP_KEYS, F.col("key"))
    kept = counts.select("name", "count", place.alias("key")).groupBy("name", "key").agg(F.sum("count").alias("count"))
    rows = sorted(kept.collect(), key=lambda row: (-row["count"], row["key"] or ""))
    top: dict[str, dict[str, int]] = {name: {} for name in columns}
    for row in rows:
        if row["key"] is not None:
            top[row["name"]][row["key"]] = int(row["count"])
    other = {row["name"]: int(row["count"]) for row in rows if row["key"] is None}
    return {name: (top[name], other.get(name, 0)) for name in columns}


def _pairs(frame: DataFrame, name: str) -> F.Column:
    """An array of (name, key), one for each key of the row."""
    def pair(key: F.Column) -> F.Column:
        return F.struct(F.lit(name).alias("name"), key.alias("key"))

    return F.transform(_listed(frame, name), pair)


def _listed(frame: DataFrame, name: str) -> F.Column:
    """The column as a list of text, null as an empty one."""
    column = F.col(f"`{name}`")
    several = isinstance(frame.schema[name].dataType, ArrayType)
    listed = column.cast("array<string>") if several else F.array(column.cast("string"))
    return F.coalesce(listed, F.array().cast("array<string>"))
