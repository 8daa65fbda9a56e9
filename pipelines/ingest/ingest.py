"""Raw log (and clicks, users, items) -> clean, deduplicated, labelled events, one folder per day.

Every row of the log is accounted for: rows_in = events + duplicates + quarantined.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, ITEM, KNOWN, LABEL, LABEL_TIME, ROW, TEST_ROW, TIME, USER, Artifacts
from contracts.config.config import Config
from contracts.config.log import Clicks, Source, Table
from contracts.errors import ConfigError, DataError, EmptyLogError, OneClassError, SchemaError
from pipelines.engine import sources
from pipelines.engine.day_partitions import publish, stage
from pipelines.engine.failures import explained
from pipelines.engine.sources import CORRUPT
from pipelines.engine.step import check_columns
from pipelines.ingest import labels, quarantine, roles
from pipelines.ingest.duplicates import add_row, drop_duplicates, number_copies
from pipelines.ingest.key_tables import write_table
from pipelines.ingest.known_by import KnownBy
from pipelines.ingest.log_columns import kept_columns
from pipelines.windows.hashed_windows import add_test_rows


@dataclass(frozen=True)
class Job:
    """One run of ingest; `day` is None for the whole log, `until` for all that is known of it by now."""

    spark: SparkSession
    config: Config
    data: Path | None
    out: Artifacts
    held: ExitStack
    day: str | None = None
    until: KnownBy | None = None

    def read(self, source: Source, what: str) -> DataFrame:
        """Kept until the run ends, where the source keeps its rows."""
        frame = sources.read(self.spark, source, self.config.path(source, self.data), what)
        self.held.callback(frame.unpersist)
        return frame

    @property
    def only(self) -> list[str] | None:
        return None if self.day is None else [self.day]

    @property
    def limit(self) -> float:
        return self.config.log.max_bad_share


def ingest(
    spark: SparkSession, config: Config, data: Path | None, out: Artifacts, day: str | None = None,
    until: str | None = None,
) -> dict[str, Any]:
    """Writes events, users, items and quarantine below `out`; answers the figures.

    With `day` ("YYYY-MM-DD") exactly that day's events are replaced; rows without a readable day are only counted.
    With `until` the log and the clicks are read as they stood when that day ended.
    Raises ConfigError and every DataError but WindowError; the events are then as they were before.
    """
    day = _checked_day(config, day)
    known_by = None if until is None else KnownBy.end_of(str(_checked_day(config, until)), config.log.history)
    with ExitStack() as held:
        return _run(Job(spark, config, data, out, held, day, known_by))


def _run(job: Job) -> dict[str, Any]:
    tables = _tables(job.config)
    frames = {name: job.read(table, name) for name, table in tables.items()}
    raw = job.read(job.config.log, "log")
    users, items = (_columns(frames[name]) if name in frames else [] for name in ("users", "items"))
    summary = _events(job, raw, kept_columns(job.config, _columns(raw), users, items))
    for name, frame in frames.items():
        key, folder = {"users": (USER, job.out.users), "items": (ITEM, job.out.items)}[name]
        summary[name] = write_table(frame, tables[name], key, folder, job.out.quarantine, job.limit)
    return summary


def _checked_day(config: Config, day: str | None) -> str | None:
    if day is None:
        return None
    if config.log.event_time is None:
        raise ConfigError(f"day {day!r} needs log.event_time, which says what day a row is of")
    try:
        return date.fromisoformat(day).isoformat()
    except ValueError:
        raise ConfigError(f"{day!r} is no day; write it as YYYY-MM-DD") from None


def _tables(config: Config) -> dict[str, Table]:
    return {name: table for name, table in (("users", config.users), ("items", config.items)) if table is not None}


def _columns(frame: DataFrame) -> list[str]:
    return [name for name in frame.columns if name != CORRUPT]


def _events(job: Job, raw: DataFrame, kept: Sequence[str]) -> dict[str, Any]:
    """Marks, counts, sets aside, deduplicates, labels, checks, and only then publishes."""
    path, columns = job.config.path(job.config.log, job.data), _columns(raw)
    marked, undated = _of_day(job, _marked(job.config, raw))
    with explained("log", path):
        counts = quarantine.count(marked)
        _check_counts(job, counts, path)
        quarantine.write(marked, columns, job.out.quarantine, "log", F.col(DAY), job.only)
        quarantine.check_share(counts.by_reason, counts.rows, job.limit, "log", job.out.quarantine)
        identified = _identified(job, quarantine.clean(marked), columns)
        unique = drop_duplicates(identified, columns)
        labelled, clicks = _labelled(job, unique)
        staging = stage(labelled.select(*_reserved(labelled), *kept, DAY), job.out.events)
        duplicates = counts.rows - counts.bad - identified.select(ROW).distinct().count()
    summary = {"rows_in": counts.rows, "duplicates": duplicates, "quarantined": counts.bad, "reasons": counts.by_reason}
    try:
        summary |= _checked(job, job.spark.read.parquet(str(staging)) if any(staging.glob("day=*")) else None, summary)
    except DataError:
        shutil.rmtree(staging)
        raise
    summary["written"] = publish(job.spark, staging, job.out.events, job.only)
    return summary | clicks | ({"undated": undated.count()} if undated is not None else {})


def _marked(config: Config, raw: DataFrame) -> DataFrame:
    frame = roles.add_roles(raw, config.log)
    if config.windows.test_where is not None:
        frame = add_test_rows(frame, config.windows.test_where)
    rules = roles.rules(frame, config.log)
    if config.label.expression is not None:
        frame = labels.add_expression(frame, config.label.expression)
        rules += labels.expression_rules()
    elif config.log.event_time is None:
        raise ConfigError("label.clicks needs log.event_time: a click counts within a window of its impression")
    else:
        frame = labels.add_join_keys(frame, config.label.clicks.on, "log")  # type: ignore[union-attr]
    return quarantine.mark(frame, rules)


def _identified(job: Job, clean: DataFrame, columns: Sequence[str]) -> DataFrame:
    """With `_row`. Equal rows of a table without key and times are rows of their own, not copies of one event."""
    log = job.config.log
    return add_row(clean, log.key, columns) if log.key or log.event_time else number_copies(clean, columns)


def _of_day(job: Job, marked: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """(rows of the day, rows without a readable day); the whole log when no day is asked for."""
    if job.until is not None:
        marked = job.until.rows(marked, TIME, KNOWN)
    if job.day is None:
        return marked, None
    return marked.where(F.col(DAY) == job.day), marked.where(F.isnull(DAY)).select(DAY, CORRUPT)


def _check_counts(job: Job, counts: quarantine.Counts, path: str) -> None:
    if counts.rows == 0:
        raise EmptyLogError(f"log: no rows{f' of {job.day}' if job.day else ''} at {path}; check the path and the day")
    for name in (job.config.log.event_time, job.config.log.known_time):
        if name and counts.by_reason.get(roles.unparsable(name)) == counts.rows:
            raise SchemaError(
                f"log: column {name!r} is text and no row holds a timestamp; derive one with try_to_timestamp"
            )


def _labelled(job: Job, events: DataFrame) -> tuple[DataFrame, dict[str, Any]]:
    """Events with `_label` and `_label_time`, and the figures of the clicks."""
    config = job.config.label.clicks
    if config is None:
        return (events.withColumn(LABEL_TIME, F.col(KNOWN)) if KNOWN in events.columns else events), {}
    path = job.config.path(config, job.data)
    raw = job.read(config, "label.clicks")
    marked = quarantine.mark(labels.add_click_roles(raw, config), labels.click_rules(config))
    if job.until is not None:
        marked = job.until.rows(marked, labels.CLICK_TIME, labels.CLICK_KNOWN)
    if job.day is not None:
        marked = _clicks_of_day(marked, job.day, config)
    with explained("label.clicks", path):
        counts = quarantine.count(marked)
        if job.day is None:
            quarantine.write(marked, _columns(raw), job.out.quarantine, "clicks")
        quarantine.check_share(counts.by_reason, counts.rows, job.limit, "clicks", job.out.quarantine)
        clicks = labels.distinct_clicks(quarantine.clean(marked), config.on)
        figures: dict[str, Any] = {"rows_in": counts.rows, "quarantined": counts.bad, "reasons": counts.by_reason}
        figures["duplicates"] = counts.rows - counts.bad - clicks.count()
        if job.day is None:
            figures["unknown_impression"] = labels.unknown_impressions(clicks, events, config.on).count()
    return labels.add_clicks(events, clicks, config.on, config.window), {"clicks": figures}


def _clicks_of_day(marked: DataFrame, day: str, config: Clicks) -> DataFrame:
    start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    end = start + timedelta(days=1, seconds=config.window)
    return marked.where((F.col(labels.CLICK_TIME) >= F.lit(start)) & (F.col(labels.CLICK_TIME) < F.lit(end)))


def _reserved(frame: DataFrame) -> list[str]:
    check_columns(frame, {ROW: "bigint", LABEL: "float", DAY: "string"}, "output of ingest")
    order = [ROW, LABEL, LABEL_TIME, TIME, KNOWN, USER, ITEM, *roles.OPTIONAL, TEST_ROW]
    return [name for name in order if name in frame.columns]


def _checked(job: Job, events: DataFrame | None, summary: dict[str, Any]) -> dict[str, Any]:
    """Figures of the events as written. Raises when rows are unaccounted for or there is nothing to learn from."""
    days = {} if events is None else _day_figures(events)
    rows, positives = (sum(day[figure] for day in days.values()) for figure in ("events", "positives"))
    if rows + summary["duplicates"] + summary["quarantined"] != summary["rows_in"]:
        raise DataError(
            f"log: {summary['rows_in']} rows came in, but {rows} events, {summary['duplicates']} duplicates and "
            f"{summary['quarantined']} quarantined rows came out; run the step again on a log that is at rest"
        )
    if rows == 0:
        raise EmptyLogError(f"log: all {summary['rows_in']} rows are malformed; see {job.out.quarantine}")
    if job.day is None and events is not None:
        _check_classes(job.config, events, rows, positives)
    return {"events": rows, "positives": positives, "days": {day: days[day] for day in sorted(days)}}


def _day_figures(events: DataFrame) -> dict[str, dict[str, int]]:
    figures = F.count(F.lit(1)).alias("events"), F.sum(LABEL).cast("long").alias("positives")
    rows = events.groupBy(DAY).agg(*figures).collect()
    return {row[DAY]: {"events": row["events"], "positives": row["positives"]} for row in rows}


def _check_classes(config: Config, events: DataFrame, rows: int, positives: int) -> None:
    if positives in (0, rows):
        raise OneClassError(
            f"log: all {rows} events have label {int(positives > 0)}; check the label's expression, clicks and window"
        )
    if config.log.user_id is not None:
        least, most = events.select(F.min(USER), F.max(USER)).collect()[0]
        if least == most:
            raise OneClassError(
                f"log: all {rows} events are of the single user {least!r}; check log.user_id or leave it out"
            )
