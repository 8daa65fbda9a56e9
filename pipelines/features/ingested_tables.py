"""What ingestion left, as features are made from it: events by day, users and items with one row per key.

What a feature of a day can depend on: that day's events; older ones as far back as counters reach; and, where there are
sequences, the clicks that the day's users made on any older day.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import ITEM, LABEL, USER, Artifacts
from contracts.config.config import Config
from pipelines.engine.day_partitions import days_in, read_days, read_table
from pipelines.features.source_columns import RESERVED, Located, SourceColumns, joined
from pipelines.windows.publish_clock import with_times

SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Tables:
    """`users` and `items` are None where the configuration has no such table."""

    events: DataFrame
    users: DataFrame | None
    items: DataFrame | None

    def columns(self, config: Config) -> SourceColumns:
        users, items = (table.schema if table is not None else None for table in (self.users, self.items))
        return SourceColumns(config, self.events.schema, users, items)

    def impressions(self, needed: Iterable[Located], label_window: int) -> DataFrame:
        """Events with the needed columns of log and tables, and the two clocks' times."""
        return self.timed(self.events, needed, label_window)

    def timed(self, rows: DataFrame, needed: Iterable[Located], label_window: int) -> DataFrame:
        """As `impressions`, of other rows with the columns of events: those drawn for a log of positives alone."""
        needed = list(needed)
        reserved = [name for name in RESERVED if name in rows.columns]
        narrow = rows.select(*dict.fromkeys([*reserved, *(c.name for c in needed if c.origin == "log")]))
        return with_times(self.attributes(narrow, needed, known=()), label_window)

    def attributes(self, events: DataFrame, needed: Iterable[Located], known: Collection[str]) -> DataFrame:
        """Events with the needed columns of the users' and the items' table, those `known` aside, which they have."""
        needed = [column for column in needed if column.name not in known]
        return joined(joined(events, self.users, USER, "users", needed), self.items, ITEM, "items", needed)


@dataclass(frozen=True)
class Impressions:
    """Events with the two clocks' times; columns of the users' and the items' table are joined for who asks for them.

    frame   `Tables.impressions`, with or without columns of tables
    """

    tables: Tables
    frame: DataFrame

    def of(self, columns: Iterable[Located]) -> DataFrame:
        """With these columns; those of the log are there."""
        return self.tables.attributes(self.frame, columns, self.frame.columns)

    def where(self, condition: Column) -> Impressions:
        """Those of which a condition on the frame's columns holds."""
        return Impressions(self.tables, self.frame.where(condition))


def read_tables(
    spark: SparkSession, config: Config, out: Artifacts, days: Sequence[str] = (), kept: bool = False
) -> Tables:
    """What the last ingest of the configured tables left; where `days` are asked for, events that matter to them.

    kept   what counters count and sequences list is known already
    """
    users = read_table(spark, out.users) if config.users else None
    items = read_table(spark, out.items) if config.items else None
    if days:
        events = read_days(spark, out.events, days) if kept else _events_for(spark, config, out, days)
        return Tables(events, users, items)
    return Tables(read_table(spark, out.events), users, items)


def _events_for(spark: SparkSession, config: Config, out: Artifacts, days: Sequence[str]) -> DataFrame:
    """All events as far back as counters reach, of older ones the clicks of these days' users."""
    reached = first_day(min(days), config)
    known = [day for day in days_in(out.events) if day <= max(days)]
    older = [day for day in known if day < reached]
    events = read_days(spark, out.events, [day for day in known if day >= reached])
    if not older or not any(field.kind == "sequence" for field in config.fields):
        return events
    clicks = read_days(spark, out.events, older).where(F.col(LABEL) == 1)
    theirs = of_users(clicks, read_days(spark, out.events, days))
    return events.unionByName(theirs, allowMissingColumns=True)


def of_users(clicks: DataFrame, rows: DataFrame) -> DataFrame:
    """The clicks of users of whom there are `rows`. The users are the side of the join that is kept in memory."""
    return rows.select(USER).distinct().join(clicks, USER)


def first_day(day: str, config: Config) -> str:
    """The earliest one whose events a counter of `day` may count."""
    longest = max((window for field in config.fields for window in field.windows), default=0)
    reach = -(-(longest + config.features.publish_every) // SECONDS_A_DAY)
    return (date.fromisoformat(day) - timedelta(days=reach)).isoformat()
