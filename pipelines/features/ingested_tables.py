"""What ingestion left, as features are made from it: events by day, users and items with one row per key."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import date, timedelta

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, ITEM, USER, Artifacts
from contracts.config.config import Config
from pipelines.features.source_columns import RESERVED, Located, SourceColumns, joined
from pipelines.windows.publish_clock import with_times

SECONDS_A_DAY = 86_400


@dataclass(frozen=True)
class Tables:
    """`users` and `items` are None where the configuration has no such table."""

    events: DataFrame
    users: DataFrame | None
    items: DataFrame | None

    @property
    def reserved(self) -> list[str]:
        """Reserved columns that the events have."""
        return [name for name in RESERVED if name in self.events.columns]

    def columns(self, config: Config) -> SourceColumns:
        users, items = (table.schema if table is not None else None for table in (self.users, self.items))
        return SourceColumns(config, self.events.schema, users, items)

    def impressions(self, needed: Iterable[Located], label_window: int) -> DataFrame:
        """Events with the needed columns of log and tables, and the two clocks' times."""
        needed = list(needed)
        events = self.events.select(*dict.fromkeys([*self.reserved, *(c.name for c in needed if c.origin == "log")]))
        return with_times(self.attributes(events, needed), label_window)

    def attributes(self, events: DataFrame, needed: Iterable[Located]) -> DataFrame:
        """Events with the needed columns of the users' and the items' table."""
        needed = list(needed)
        return joined(joined(events, self.users, USER, "users", needed), self.items, ITEM, "items", needed)

    def seen_from(self, days: list[str], config: Config) -> Tables:
        """Without the events that no feature of `days` looks at: later ones, and ones older than every window."""
        first, last = min(days), max(days)
        kept = self.events.filter(F.col(DAY) <= last)
        if not any(field.kind == "sequence" for field in config.fields):
            longest = max((window for field in config.fields for window in field.windows), default=0)
            reach = -(-(longest + config.features.publish_every) // SECONDS_A_DAY)
            kept = kept.filter(F.col(DAY) >= (date.fromisoformat(first) - timedelta(days=reach)).isoformat())
        return replace(self, events=kept)


def read_tables(spark: SparkSession, config: Config, out: Artifacts) -> Tables:
    """What the last ingest of the configured tables left."""
    events = spark.read.parquet(str(out.events))
    users = spark.read.parquet(str(out.users)) if config.users else None
    items = spark.read.parquet(str(out.items)) if config.items else None
    return Tables(events.withColumn(DAY, F.col(DAY).cast("string")), users, items)
