"""Malformed rows: marked with a reason, written aside as JSON text, counted, and refused when they are too many.

ingest/quarantine/table=T/day=D/      columns reason, row; D is "unknown" where the event time cannot be read
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql import types as T

from contracts.artifacts import DAY
from contracts.errors import QuarantineError
from pipelines.engine.day_partitions import drop_days, write_days
from pipelines.reading.text_files import CORRUPT

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
    """Replaces the table's quarantine (of the days `only`).

    The row is its own text, or its `raw` columns as JSON: whole numbers and times as a cast writes them.
    """
    place = folder / f"{TABLE}={table}"
    if not counts.bad:
        drop_days(place, only)
        return
    day = F.lit(NO_DAY) if day is None else day
    bad = marked.where(F.col(MARK).isNotNull())
    members = [_json(bad, name).alias(f"_{place}") for place, name in enumerate(raw)]
    kept = {REASON: F.col(MARK), ROW_TEXT: F.col(CORRUPT), DAY: F.coalesce(day, F.lit(UNKNOWN_DAY))}
    rows = bad.select(*[column.alias(name) for name, column in kept.items()], *members)
    write_days(rows.mapInArrow(_recorded(raw), ", ".join(f"{name} string" for name in kept)), place, only)


def _recorded(names: Sequence[str]) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """Rows of reason, text and day: the record's own text, or its members as a JSON object, nulls named.

    Floating point is written by Python, since each engine has its own way.
    """
    keys = [json.dumps(name) for name in names]

    def run(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            reason, text, day, *members = (column.to_pylist() for column in batch.columns)
            texts = [
                f"{{{','.join(f'{key}:{_member(value)}' for key, value in zip(keys, values, strict=True))}}}"
                for values in (zip(*members, strict=True) if members else [()] * len(reason))
            ]
            rows = [known if known is not None else made for known, made in zip(text, texts, strict=True)]
            columns = [pa.array(values, pa.string()) for values in (reason, rows, day)]
            yield pa.RecordBatch.from_arrays(columns, names=[REASON, ROW_TEXT, DAY])

    return run


def _member(value: str | float | None) -> str:
    return "null" if value is None else value if isinstance(value, str) else repr(value)


def _json(frame: DataFrame, name: str) -> Column:
    """As text, floating point as it is; null where the value is."""
    value, kind = F.col(f"`{name}`"), frame.schema[name].dataType
    if isinstance(kind, T.FloatType | T.DoubleType):
        return value.cast("double")
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
