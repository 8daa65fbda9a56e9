"""features/day=D: one row per event with its reserved columns and one column per feature, as known at its time. Of a
log of positives alone the rows are its examples (pipelines/negatives/drawn_rows.py).

    categorical   string, bigint or boolean, by key_type
    numeric       double
    multi_valued  array of keys
    counter       one double per statistic and window        also as NAME@fresh, where the event-fresh
    sequence      array of the target's keys, newest first   twins are asked for

Read events and tables ▶ join the needed columns and times ▶ cast ▶ counters and sequences per clock ▶ write. Where the
Python workers of Apache Spark's local mode write, they look up what small tables tell: no text of theirs goes through
Java once a row.
The embedded engine takes a long log in passes of some days; what counters count and sequences list is read before.
Rate counters are smoothed towards a rate known only at the end of the statistics window; models train on later rows.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import NamedTuple

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import CLICK_TIME, DAY, ITEM, USER, Artifacts
from contracts.config.config import Config
from contracts.config.fields import FieldConfig
from contracts.errors import EmptyLogError
from contracts.summaries.features import FeatureRows
from pipelines.engine.arrow_batches import LookUp
from pipelines.engine.day_partitions import days_in, drop_days, groups_of, in_turn, read_days, rows_in, write_days
from pipelines.engine.embedded import is_embedded
from pipelines.engine.worker_files import workers_write
from pipelines.features.history_features import HistoryFeatures
from pipelines.features.ingested_tables import Impressions, Tables, read_tables
from pipelines.features.kept_clicks import KeptClicks
from pipelines.features.kept_counts import KeptCounts
from pipelines.features.prior_rate import prior_of_run
from pipelines.features.source_columns import RESERVED, Located, SourceColumns, typed
from pipelines.windows.publish_clock import clocks

STATIC = ("categorical", "numeric", "multi_valued")
LOOKED_UP = 200_000  # rows of a table that Python workers hold and look features up in
EMBEDDED_ROWS = 2_000_000  # of a pass: histories of its rows are held in memory until they are joined


def build_features(
    spark: SparkSession, config: Config, out: Artifacts, days: list[str] | None = None, prior: float | None = None,
    rows_at_once: int = EMBEDDED_ROWS,
) -> FeatureRows:
    """Writes the partitions of `days` (all when None), each replaced as a whole; the embedded engine some at a time.

    `prior`: the run's, where it is known. Raises SchemaError on a field without a fitting column, EmptyLogError on a
    day without events, WindowError when rate counters have no statistics window to take their prior from.
    """
    for folder in _kept_folders(out):  # a killed run leaves them
        shutil.rmtree(folder, ignore_errors=True)
    rows_of_day = _rows_of_day(config, out, days)
    prior = prior_of_run(spark, config, out, refit=days is None) if prior is None else prior
    passes = groups_of(rows_of_day, rows_at_once) if is_embedded(spark) else [list(rows_of_day)]
    if days is not None:
        written = [day for group in in_turn("features", passes, rows_of_day)
                   for day in _write(spark, config, out, prior, group)]
    elif len(passes) == 1:
        written = [day for _ in in_turn("features", passes, rows_of_day)
                   for day in _write(spark, config, out, prior, None)]
    else:
        with _kept_history(spark, config, out, prior) as kept:
            written = [day for group in in_turn("features", passes, rows_of_day)
                       for day in _write(spark, config, out, prior, group, kept)]
        drop_days(out.features, sorted(set(days_in(out.features)) - set(rows_of_day)))
    rows_in_all = sum(rows_of_day.values())
    return FeatureRows(rows=rows_in_all, rows_of_day=rows_of_day, prior_rate=prior, written=tuple(written))


class _Kept(NamedTuple):
    """What passes read in place of older days."""

    counts: KeptCounts
    clicks: KeptClicks


def _kept_folders(out: Artifacts) -> tuple[Path, Path]:
    """Of counts and of clicks."""
    name = out.features.name
    return out.features.with_name(f".{name}.counts"), out.features.with_name(f".{name}.clicks")


@contextmanager
def _kept_history(spark: SparkSession, config: Config, out: Artifacts, prior: float) -> Iterator[_Kept]:
    """Of all days, for as long as passes read it."""
    found = _sources(spark, config, out, prior, None)
    counts, clicks = _kept_folders(out)
    kept = _Kept(KeptCounts(counts, found.history), KeptClicks(clicks, found.history))
    try:
        shown = {day: rows_in(out.events / f"{DAY}={day}") for day in days_in(out.events)}
        if found.chosen is None:
            kept.counts.write(found.impressions, found.rows, shown, sum(_rows_of_day(config, out, None).values()))
        else:
            kept.counts.write(found.impressions, found.chosen, shown)
        kept.clicks.write(found.impressions)
        yield kept
    finally:
        kept.counts.remove()
        kept.clicks.remove()


class _Sources(NamedTuple):
    """What features of some days are made from; `chosen`: where the rows are impressions, which of them they are."""

    tables: Tables
    history: HistoryFeatures
    impressions: Impressions
    rows: DataFrame
    chosen: Column | None


def _sources(
    spark: SparkSession, config: Config, out: Artifacts, prior: float, days: Sequence[str] | None,
    kept: bool = False,
) -> _Sources:
    """Of all days without `days`; `kept`: the history of these is known.

    Nothing is cached between queries: each reads the few columns that it needs, which takes less than to keep them all.
    """
    tables = read_tables(spark, config, out, days or (), kept)
    columns = tables.columns(config)
    history = HistoryFeatures(config, columns, prior, events=rows_in(out.events))
    needed = [*history.sources(), *of_log(static_sources(config, columns))]
    impressions = Impressions(tables, tables.impressions(of_log(needed), config.label_window))
    if config.label.positives_only:
        drawn = read_days(spark, out.drawn, days or days_in(out.drawn))
        rows = tables.timed(drawn, needed, config.label_window)
        return _Sources(tables, history, impressions, rows, None)
    chosen = F.col(DAY).isin(list(days)) if days else F.lit(True)
    rows = (impressions.where(chosen) if days else impressions).of(needed)
    return _Sources(tables, history, impressions, rows, chosen)


def _write(
    spark: SparkSession, config: Config, out: Artifacts, prior: float, days: Sequence[str] | None,
    kept: _Kept | None = None,
) -> list[str]:
    """One pass over what matters to these days, or over everything; the days that changed. What tables of at most
    LOOKED_UP rows tell comes after the rows' way to the workers that write.
    """
    found = _sources(spark, config, out, prior, days, kept=kept is not None)
    rows, made = _point_in_time(found, kept, days or ()), _columns(found)
    tabled = {field.name for field, located in _static(found) if located.origin != "log"}
    narrow = rows.select(*[column for name, column in made.items() if name not in tabled])
    if tabled and max(rows_in(out.users), rows_in(out.items)) <= LOOKED_UP and workers_write(narrow):
        return write_days(narrow, out.features, days, tables_of_fields(found), list(made))
    wide = found.tables.attributes(rows, [located for _, located in _static(found)], found.rows.columns)
    return write_days(wide.select(*made.values()), out.features, days)


def static_sources(config: Config, columns: SourceColumns) -> list[Located]:
    """The columns of the fields without a history."""
    return [columns.of_field(field) for field in config.fields if field.kind in STATIC]


def of_log(columns: list[Located]) -> list[Located]:
    """Those that the log itself has."""
    return [column for column in columns if column.origin == "log"]


def _point_in_time(found: _Sources, kept: _Kept | None, days: Sequence[str]) -> DataFrame:
    """The rows with their histories: narrow while they meet, the tables' columns come last."""
    config, asked = found.history.config, found.rows
    clicks = kept.clicks.read(asked.sparkSession, found.impressions, days) if kept else found.impressions
    for clock in clocks(config.features):
        counted = partial(kept.counts.read, found.rows, clock=clock, days=days) if kept else None
        asked = found.history.add(asked, clicks, clock, found.chosen, counted)
    return asked


def _static(found: _Sources) -> list[tuple[FieldConfig, Located]]:
    """The fields without a history and their columns."""
    config, columns = found.history.config, found.history.columns
    return [(field, columns.of_field(field)) for field in config.fields if field.kind in STATIC]


def _columns(found: _Sources) -> dict[str, Column]:
    """By name: reserved columns, static features and histories, in the order of the configuration's fields."""
    reserved = [name for name in RESERVED if name in found.rows.columns and name != CLICK_TIME]
    static = {field.name: typed(field, located).alias(field.name) for field, located in _static(found)}
    histories = [name for clock in clocks(found.history.config.features) for name in found.history.names(clock)]
    return {**{name: F.col(name) for name in reserved}, **static, **{name: F.col(name) for name in histories}}


def tables_of_fields(found: _Sources) -> list[LookUp]:
    """The static features that the users' and the items' table tell, by user and by item."""
    tables = (USER, "users", found.tables.users), (ITEM, "items", found.tables.items)
    return [LookUp.of(_typed_table(table, key, told).toArrow(), key) for key, origin, table in tables
            if table is not None and (told := [one for one in _static(found) if one[1].origin == origin])]


def _typed_table(table: DataFrame, key: str, fields: Sequence[tuple[FieldConfig, Located]]) -> DataFrame:
    columns = {located.name: F.col(f"`{located.column}`").alias(located.name) for _, located in fields}
    named = table.select(key, *columns.values())
    return named.select(key, *[typed(field, located).alias(field.name) for field, located in fields])


def _rows_of_day(config: Config, out: Artifacts, days: list[str] | None) -> dict[str, int]:
    """Raises EmptyLogError on an asked-for day without events."""
    folder = out.drawn if config.label.positives_only else out.events
    there = days_in(folder)
    missing = sorted(set(days or []) - set(there))
    if missing:
        raise EmptyLogError(f"there are no events on {', '.join(missing)}; ingest that day first, or name another")
    if not there:
        raise EmptyLogError("there are no events to make features of; ingest a log first")
    return {day: rows_in(folder / f"{DAY}={day}") for day in there if days is None or day in days}
