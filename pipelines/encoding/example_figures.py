"""What the examples of the windows are: rows, positives, days, and one hash of them all.

Sums over rows are sums over days, so that each day is read once and its sums are kept, in `_figures.json` beside the
days, with the names and sizes of the files they are of: what a run has not touched is not read again. All days of all
windows that are to be read are one query.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import reduce
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, LABEL
from contracts.atomic_write import write_json
from contracts.summaries.features import ExampleRows
from contracts.summaries.summary import Record
from pipelines.engine.content_hash import digest, hashed, schema_text, sums
from pipelines.engine.day_partitions import days_in, read_days
from pipelines.windows.windows import WINDOW

FIGURES, _HASH = "_figures.json", "_hash"


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


class _Window(NamedTuple):
    """What is known of the days of a window; `unread` holds those of which nothing is, None where there is none."""

    folder: Path
    known: WindowSums
    unread: DataFrame | None


def describe(
    spark: SparkSession, folders: Mapping[str, Path], written: Mapping[str, Sequence[str]] | None = None
) -> dict[str, ExampleRows]:
    """The examples of each window as they are on disk; `written` are the days of them that have changed."""
    windows = {window: _read(spark, folder) for window, folder in folders.items()}
    counted = _counted({window: found.unread for window, found in windows.items() if found.unread is not None})
    known = {window: _kept(found, counted[window]) if window in counted else found.known
             for window, found in windows.items()}
    return {window: _figures(found, (written or {}).get(window, ())) for window, found in known.items()}


def _figures(found: WindowSums, written: Sequence[str]) -> ExampleRows:
    days = found.days.values()
    rows, hashes = sum(day.rows for day in days), sum(day.hashes for day in days) if days else None
    return ExampleRows(
        rows=rows, positives=sum(day.positives for day in days), days=len(days),
        content_hash=digest(found.columns, rows, hashes), written=tuple(written),
    )


def _read(spark: SparkSession, folder: Path) -> _Window:
    stored = _stored(folder)
    files = {day: found for day in days_in(folder) if (found := _files(folder, day))}
    kept = {day: stored.days[day] for day in files if day in stored.days and stored.days[day].files == files[day]}
    if len(kept) == len(files):
        return _Window(folder, WindowSums(columns=stored.columns, days=kept), None)
    unread = read_days(spark, folder, [day for day in files if day not in kept])
    columns = schema_text(unread)
    if kept and columns != stored.columns:
        unread, kept = read_days(spark, folder, list(files)), {}
        columns = schema_text(unread)
    return _Window(folder, WindowSums(columns=columns, days=kept), unread)


def _counted(unread: Mapping[str, DataFrame]) -> dict[str, dict[str, DaySums]]:
    """Sums by window and day, without files."""
    if not unread:
        return {}
    parts = [frame.select(F.lit(window).alias(WINDOW), DAY, LABEL, hashed(frame).alias(_HASH))
             for window, frame in unread.items()]
    positives = F.sum(LABEL).cast("bigint").alias("positives")
    days = reduce(DataFrame.unionByName, parts).groupBy(WINDOW, DAY).agg(*sums(F.col(_HASH)), positives)
    found: dict[str, dict[str, DaySums]] = {window: {} for window in unread}
    for row in days.collect():
        found[row[WINDOW]][row[DAY]] = DaySums(
            files={}, rows=row["rows"], positives=row["positives"], hashes=int(row["hashes"]))
    return found


def _kept(window: _Window, counted: Mapping[str, DaySums]) -> WindowSums:
    """Of all days; written beside them."""
    made = {day: found.model_copy(update={"files": _files(window.folder, day)}) for day, found in counted.items()}
    known = window.known.model_copy(update={"days": dict(sorted({**window.known.days, **made}.items()))})
    write_json(window.folder / FIGURES, known.model_dump(mode="json"), indent=None)
    return known


def _files(folder: Path, day: str) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in sorted((folder / f"{DAY}={day}").glob("*.parquet"))}


def _stored(folder: Path) -> WindowSums:
    """Without days where nothing is known."""
    try:
        return WindowSums.model_validate(json.loads((folder / FIGURES).read_text(encoding="utf-8")))
    except (FileNotFoundError, ValueError, ValidationError):
        return WindowSums(columns="", days={})
