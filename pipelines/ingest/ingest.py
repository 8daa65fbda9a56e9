"""Raw log (and clicks, users, items) -> clean, deduplicated, labelled events, one folder per day.

Every row of the log is accounted for: rows_in = events + duplicates + quarantined.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import CLICK_TIME, DAY, ITEM, KNOWN, LABEL, LABEL_TIME, ROW, TEST_ROW, TIME, USER, Artifacts
from contracts.config.config import Config
from contracts.config.log import Clicks, Source, Table
from contracts.errors import ConfigError
from contracts.progress import counted, report
from contracts.summaries.features import ClickRows, DayEvents, Ingested
from pipelines.engine.day_partitions import publish, read_table, stage, staging_of
from pipelines.engine.failures import explained
from pipelines.engine.session import BESIDE_ROWS, beside, is_local
from pipelines.engine.step import check_columns
from pipelines.ingest import labels, quarantine, roles
from pipelines.ingest.duplicates import Repeats, add_row, drop_duplicates, find_repeats, number_copies
from pipelines.ingest.event_checks import check_accounted, check_classes, check_readable, figures_of_days
from pipelines.ingest.key_tables import StagedTable, stage_table
from pipelines.ingest.known_by import KnownBy
from pipelines.ingest.log_columns import kept_columns
from pipelines.reading import sources
from pipelines.reading.text_files import CORRUPT
from pipelines.windows.hashed_windows import add_test_rows


@dataclass(frozen=True)
class IngestRun:
    """One run of ingest; `day` is None for the whole log, `until` for all that is known of it by now."""

    spark: SparkSession
    config: Config
    data: str | Path | None
    out: Artifacts
    held: ExitStack
    day: str | None = None
    until: KnownBy | None = None

    def read(self, source: Source, what: str) -> DataFrame:
        """Kept until the run ends, where the source keeps its rows."""
        return sources.read(self.spark, source, self.config.path(source, self.data), self.held, what)

    @property
    def only(self) -> list[str] | None:
        return None if self.day is None else [self.day]

    @property
    def limit(self) -> float:
        return self.config.log.max_bad_share


def ingest(
    spark: SparkSession, config: Config, data: str | Path | None, out: Artifacts, day: str | None = None,
    until: str | None = None,
) -> Ingested:
    """Writes events, users, items and quarantine below `out`; returns the figures.

    With `day` exactly that day's events are replaced; rows without a readable day are only counted.
    With `until` the log and the clicks are read as they stood when that day ended.
    Raises ConfigError and every DataError but WindowError; the events are then as they were before.
    """
    day = checked_day(config, day)
    known_by = None if until is None else KnownBy.end_of(str(checked_day(config, until)), config.log.history)
    with ExitStack() as held:
        return _ingested(IngestRun(spark=spark, config=config, data=data, out=out, held=held, day=day, until=known_by))


def _ingested(run: IngestRun) -> Ingested:
    """Apache Spark's local mode, whose first queries leave the machine idle, makes the tables beside the events."""
    tables, spare = _tables(run.config), is_local(run.spark)
    places = {"users": (USER, run.out.users), "items": (ITEM, run.out.items)}
    with beside(lambda: {name: run.read(table, name) for name, table in tables.items()}, spare) as read:
        raw = run.read(run.config.log, "log")
        frames = read()
    users, items = (_columns(frames[name]) if name in frames else [] for name in ("users", "items"))

    def staged() -> dict[str, StagedTable]:
        return {name: stage_table(frames[name], tables[name], *places[name], run.out.quarantine, run.limit)
                for name in counted("ingest: tables", frames)}

    try:
        with beside(staged, spare) as tabled:
            return _events(run, raw, kept_columns(run.config, _columns(raw), users, items), tabled)
    finally:
        for folder in (run.out.events, *(folder for _, folder in places.values())):
            shutil.rmtree(staging_of(folder), ignore_errors=True)


def checked_day(config: Config, day: str | None) -> str | None:
    """As YYYY-MM-DD, as partitions are named, however ISO 8601 lets it be written (20260103). Raises ConfigError."""
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


def _events(
    run: IngestRun, raw: DataFrame, kept: Sequence[str], tables: Callable[[], dict[str, StagedTable]]
) -> Ingested:
    """Marks, counts, sets aside, deduplicates, labels, checks, and only then publishes, the `tables` too."""
    path, columns = run.config.path(run.config.log, run.data), _columns(raw)
    marked, undated = _of_day(run, _identified(run, _marked(run.config, raw), columns))
    with explained("log", path):
        report("ingest: rows are checked")
        counts = quarantine.count(marked)
        check_readable(run.config.log, counts, path, run.day)
        quarantine.write(marked, counts, columns, run.out.quarantine, "log", F.col(DAY), run.only)
        quarantine.check_share(counts.by_reason, counts.rows, run.limit, "log", run.out.quarantine)
        clean = _numbered(run, quarantine.clean(marked), columns)
        staging, repeats, clicks = _staged(run, clean, columns, counts, kept)
        without_day = None if undated is None else undated.count()
    days = _checked_days(run, staging, counts, repeats)
    found = tables()
    return Ingested(
        rows_in=counts.rows, duplicates=repeats, quarantined=counts.bad, reasons=counts.by_reason,
        events=sum(day.events for day in days.values()), positives=sum(day.positives for day in days.values()),
        days=days, written=tuple(publish(run.spark, staging, run.out.events, run.only)), clicks=clicks,
        undated=without_day, **{name: one.publish() for name, one in found.items()},
    )


def _staged(
    run: IngestRun, clean: DataFrame, columns: Sequence[str], counts: quarantine.Counts, kept: Sequence[str]
) -> tuple[Path, int, ClickRows | None]:
    """Where the labelled events lie beside their place, how many copies they are without, and the clicks' figures."""
    report(f"ingest: copies among {counts.rows:,} rows are looked for")
    with beside(lambda: _clicks(run), counts.rows <= BESIDE_ROWS) as clicked:
        repeats = find_repeats(clean) if _may_repeat(run) else Repeats(0, None)
        labelled, clicks = _labelled(run, drop_duplicates(clean, columns, repeats), clicked())
    report(f"ingest: {counts.rows - counts.bad - repeats.rows:,} events are written")
    staging = stage(labelled.select(*_reserved(labelled), *kept, DAY), run.out.events)
    if clicks and run.day is None:
        clicks = clicks.model_copy(update={"unknown_impression": labels.take_strays(staging)})
    return staging, repeats.rows, clicks


def _checked_days(run: IngestRun, staging: Path, counts: quarantine.Counts, duplicates: int) -> dict[str, DayEvents]:
    """The events as staged. Raises when rows are unaccounted for or there is nothing to learn from."""
    staged = read_table(run.spark, staging) if any(staging.glob(f"{DAY}=*")) else None
    figures = {} if staged is None else figures_of_days(staged, run.config)
    check_accounted(counts.rows, sum(day.events for day in figures.values()), duplicates, counts.bad,
                    run.out.quarantine)
    if run.day is None:
        check_classes(run.config, figures)
    return {name: DayEvents(events=day.events, positives=day.positives) for name, day in figures.items()}


def _marked(config: Config, raw: DataFrame) -> DataFrame:
    frame = roles.add_roles(raw, config.log)
    if config.windows.test_where is not None:
        frame = add_test_rows(frame, config.windows.test_where)
    rules = roles.rules(frame, config.log)
    if config.label.positives_only:
        frame = frame.withColumn(LABEL, F.lit(1.0).cast("float"))
    elif config.label.expression is not None:
        frame = labels.add_expression(frame, config.label.expression)
        rules += labels.expression_rules()
    elif config.log.event_time is None:
        raise ConfigError("label.clicks needs log.event_time: a click counts within a window of its impression")
    else:
        frame = labels.add_join_keys(frame, config.label.clicks.on, "log")  # type: ignore[union-attr]
    return quarantine.mark(frame, rules)


def _may_repeat(run: IngestRun) -> bool:
    """Whether equal rows are copies of one event; those of a table without key and times are rows of their own."""
    return bool(run.config.log.key or run.config.log.event_time)


def _identified(run: IngestRun, marked: DataFrame, columns: Sequence[str]) -> DataFrame:
    """With `_row`, where equal rows are copies of one event."""
    return add_row(marked, run.config.log.key, columns) if _may_repeat(run) else marked


def _numbered(run: IngestRun, clean: DataFrame, columns: Sequence[str]) -> DataFrame:
    """With `_row`, where equal rows are rows of their own."""
    return clean if _may_repeat(run) else number_copies(clean, columns)


def _of_day(run: IngestRun, marked: DataFrame) -> tuple[DataFrame, DataFrame | None]:
    """(rows of the day, rows without a readable day); the whole log when no day is asked for."""
    if run.until is not None:
        marked = run.until.rows(marked, TIME, KNOWN)
    if run.day is None:
        return marked, None
    start = datetime.combine(date.fromisoformat(run.day), datetime.min.time(), UTC)
    inside = (F.col(TIME) >= F.lit(start)) & (F.col(TIME) < F.lit(start + timedelta(days=1)))  # readers prune by it
    return marked.where(inside & (F.col(DAY) == run.day)), marked.where(F.isnull(TIME)).select(TIME, CORRUPT)


def _labelled(
    run: IngestRun, unique: DataFrame, clicked: tuple[DataFrame, ClickRows] | None
) -> tuple[DataFrame, ClickRows | None]:
    """The unique events with `_label` and `_label_time`, of the whole log with its stray clicks, and the figures of the
    clicks.
    """
    config = run.config.label.clicks
    if config is None or clicked is None:  # the one is where the other is
        return (unique.withColumn(LABEL_TIME, F.col(KNOWN)) if KNOWN in unique.columns else unique), None
    clicks, figures = clicked
    return labels.add_clicks(unique, clicks, config.on, config.window, strays=run.day is None), figures


def _clicks(run: IngestRun) -> tuple[DataFrame, ClickRows] | None:
    """Distinct clicks, of the day where one is asked for, and their figures; None where labels are no clicks."""
    config = run.config.label.clicks
    if config is None:
        return None
    path = run.config.path(config, run.data)
    raw = run.read(config, "label.clicks")
    marked = quarantine.mark(labels.add_click_roles(raw, config), labels.click_rules(config))
    if run.until is not None:
        marked = run.until.rows(marked, CLICK_TIME, labels.CLICK_KNOWN)
    if run.day is not None:
        marked = _clicks_of_day(marked, run.day, config)
    with explained("label.clicks", path):
        counts = quarantine.count(marked)
        if run.day is None:
            quarantine.write(marked, counts, _columns(raw), run.out.quarantine, "clicks")
        quarantine.check_share(counts.by_reason, counts.rows, run.limit, "clicks", run.out.quarantine)
        clicks = labels.distinct_clicks(quarantine.clean(marked), config.on)
        figures = ClickRows(
            rows_in=counts.rows, quarantined=counts.bad, reasons=counts.by_reason,
            duplicates=counts.rows - counts.bad - clicks.count(),
        )
    return clicks, figures


def _clicks_of_day(marked: DataFrame, day: str, config: Clicks) -> DataFrame:
    start = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC)
    end = start + timedelta(days=1, seconds=config.window)
    return marked.where((F.col(CLICK_TIME) >= F.lit(start)) & (F.col(CLICK_TIME) < F.lit(end)))


def _reserved(frame: DataFrame) -> list[str]:
    check_columns(frame, {ROW: "bigint", LABEL: "float", DAY: "string"}, "output of ingest")
    order = [ROW, LABEL, LABEL_TIME, CLICK_TIME, TIME, KNOWN, USER, ITEM, *roles.OPTIONAL, TEST_ROW]
    return [name for name in order if name in frame.columns]
