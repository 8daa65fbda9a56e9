"""What the examples of a window are: rows, positives, days, and one hash of them all.

Sums over rows are sums over days, so that each day is read once and its sums are kept, in `_figures.json` beside the
days, with the names and sizes of the files they are of: what a run has not touched is not read again.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, LABEL
from contracts.atomic_write import write_json
from contracts.summaries.features import ExampleRows
from contracts.summaries.summary import Record
from pipelines.engine.content_hash import digest, schema_text, sums
from pipelines.engine.day_partitions import days_in, read_days

FIGURES = "_figures.json"


class DaySums(Record):
    """`files`: bytes by name; `hashes`: the sum of the rows' hashes."""

    files: dict[str, int]
    rows: int
    positives: int
    hashes: int


class WindowSums(Record):
    """`columns`: names and types, of which the hash is, too."""

    columns: str
    days: dict[str, DaySums]


def describe(spark: SparkSession, folder: Path, written: Sequence[str] = ()) -> ExampleRows:
    """The examples of a window as they are on disk; `written` are the days of them that have changed."""
    found = _sums_of(spark, folder)
    days = found.days.values()
    rows, hashes = sum(day.rows for day in days), sum(day.hashes for day in days) if days else None
    return ExampleRows(
        rows=rows, positives=sum(day.positives for day in days), days=len(days),
        content_hash=digest(found.columns, rows, hashes), written=tuple(written),
    )


def _sums_of(spark: SparkSession, folder: Path) -> WindowSums:
    stored = _stored(folder)
    files = {day: _files(folder, day) for day in days_in(folder)}
    kept = {day: stored.days[day] for day in files if day in stored.days and stored.days[day].files == files[day]}
    if kept and len(kept) == len(files):
        return WindowSums(columns=stored.columns, days=kept)
    frame = _read(spark, folder, sorted(set(files) - set(kept)) if kept else ())
    columns = schema_text(frame)
    if kept and columns != stored.columns:
        frame, kept = _read(spark, folder, ()), {}
    made = WindowSums(columns=columns, days=dict(sorted({**kept, **_counted(frame, files)}.items())))
    write_json(folder / FIGURES, made.model_dump(mode="json"), indent=None)
    return made


def _counted(frame: DataFrame, files: dict[str, dict[str, int]]) -> dict[str, DaySums]:
    rows = frame.groupBy(DAY).agg(*sums(frame), F.sum(LABEL).cast("bigint").alias("positives")).collect()
    return {
        row[DAY]: DaySums(files=files[row[DAY]], rows=row["rows"], positives=row["positives"],
                          hashes=int(row["hashes"]))
        for row in rows
    }


def _read(spark: SparkSession, folder: Path, days: Sequence[str]) -> DataFrame:
    if days:
        return read_days(spark, folder, days)
    return spark.read.option("pathGlobFilter", "*.parquet").parquet(str(folder))


def _files(folder: Path, day: str) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted((folder / f"{DAY}={day}").glob("*.parquet"))}


def _stored(folder: Path) -> WindowSums:
    """Without days where nothing is known."""
    try:
        return WindowSums.model_validate(json.loads((folder / FIGURES).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, ValidationError):
        return WindowSums(columns="", days={})
