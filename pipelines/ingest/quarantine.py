"""Malformed rows: marked with a reason, written aside as JSON text, counted, and refused when they are too many.

ingest/quarantine/table=T/day=D/      columns reason, row; D is "unknown" where the event time cannot be read
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from contracts.artifacts import DAY
from contracts.errors import QuarantineError
from pipelines.engine.day_partitions import drop_days, write_days
from pipelines.engine.text_files import CORRUPT

REASON, ROW_TEXT, TABLE = "reason", "row", "table"
MARK = "_reason"
UNKNOWN_DAY, NO_DAY = "unknown", "all"
MALFORMED = "the record does not fit the schema"

Rule = tuple[str, Column]


@dataclass(frozen=True)
class Counts:
    """Rows in all, and the malformed ones by their reason; `distinct` of the clean ones, where that was asked for."""

    rows: int
    by_reason: dict[str, int]
    distinct: int | None = None

    @property
    def bad(self) -> int:
        return sum(self.by_reason.values())


def mark(frame: DataFrame, rules: Sequence[Rule]) -> DataFrame:
    """Adds `_reason`: the first rule that applies, null for a clean row. A condition that is null does not apply."""
    every = [(MALFORMED, F.col(CORRUPT).isNotNull()), *rules]
    return frame.withColumn(MARK, F.coalesce(*[F.when(condition, F.lit(reason)) for reason, condition in every]))


def clean(marked: DataFrame) -> DataFrame:
    """The rows without a reason."""
    return marked.where(F.col(MARK).isNull()).drop(MARK, CORRUPT)


def write(
    marked: DataFrame,
    counts: Counts,
    raw: Sequence[str],
    folder: Path,
    table: str,
    day: Column | None = None,
    only: Sequence[str] | None = None,
) -> None:
    """Replaces the table's quarantine (of the days `only`); the row is its own text, or its `raw` columns as JSON."""
    place = folder / f"{TABLE}={table}"
    if not counts.bad:
        drop_days(place, only)
        return
    day = F.lit(NO_DAY) if day is None else day
    text = record_text(marked, raw)
    rows = marked.where(F.col(MARK).isNotNull()).select(
        F.col(MARK).alias(REASON),
        F.coalesce(F.col(CORRUPT), text).alias(ROW_TEXT),
        F.coalesce(day, F.lit(UNKNOWN_DAY)).alias(DAY),
    )
    write_days(rows, place, only)


def record_text(frame: DataFrame, names: Sequence[str]) -> Column:
    """The columns as a JSON object, alike on every engine: nulls named, numbers and times as a cast writes them."""
    members = [F.concat(F.lit(json.dumps(name) + ":"), F.coalesce(_json(frame, name), F.lit("null"))) for name in names]
    return F.concat(F.lit("{"), F.concat_ws(",", *members), F.lit("}"))


def _json(frame: DataFrame, name: str) -> Column:
    """Null where the value is."""
    value, kind = F.col(f"`{name}`"), frame.schema[name].dataType
    if isinstance(kind, T.NumericType):
        return value.cast("string")
    if isinstance(kind, T.DateType | T.TimestampType | T.TimestampNTZType):
        return F.concat(F.lit('"'), value.cast("string"), F.lit('"'))
    whole = F.to_json(F.struct(value.alias("v")))
    return F.when(value.isNotNull(), F.substring(whole, len('{"v":') + 1, F.length(whole) - len('{"v":}')))


def read(spark: SparkSession, folder: Path) -> DataFrame:
    """Columns reason, row, table, day; no rows where nothing was quarantined."""
    folder.mkdir(parents=True, exist_ok=True)
    return spark.read.schema(f"{REASON} string, {ROW_TEXT} string, {TABLE} string, {DAY} string").parquet(str(folder))


def check_share(counts: Mapping[str, int], rows: int, limit: float, table: str, folder: Path) -> None:
    """`counts` per reason. Raises QuarantineError when their share of `rows` exceeds `limit`."""
    bad = sum(counts.values())
    if rows and bad > limit * rows:
        top = max(counts, key=lambda reason: counts[reason])
        raise QuarantineError(
            f"{table}: {bad} of {rows} rows ({bad / rows:.2%}) are malformed, log.max_bad_share allows {limit:.2%}; "
            f"most often: {top} ({counts[top]}). See {folder / f'{TABLE}={table}'}, mend the data or raise the limit"
        )


def count(marked: DataFrame, identity: str | None = None) -> Counts:
    """One pass over the marked rows; `identity` is the column that tells clean rows apart."""
    distinct = [F.count_distinct(identity).alias("distinct")] if identity else []
    rows = {row[MARK]: row for row in marked.groupBy(MARK).agg(F.count(F.lit(1)).alias("rows"), *distinct).collect()}
    by_reason = {reason: rows[reason]["rows"] for reason in sorted(reason for reason in rows if reason is not None)}
    clean_rows = rows.get(None)
    known = (clean_rows["distinct"] if clean_rows else 0) if identity else None
    return Counts(sum(row["rows"] for row in rows.values()), by_reason, known)
