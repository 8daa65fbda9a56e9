"""What the counters of a log that is taken in passes count, made once over all days and kept in files for the passes.

A pass needs the counts at its own publishes alone. Made pass by pass, they would take as many older days again as
counters reach; made at once, every impression is counted one time. Groups of counters come one after another, each in
as many parts of its keys as keep what is held at ROWS impressions.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from contracts.artifacts import DAY
from pipelines.engine.day_partitions import days_in, read_places
from pipelines.features.history_features import CounterGroup, HistoryFeatures
from pipelines.features.ingested_tables import Impressions
from pipelines.features.measures import MOMENT
from pipelines.features.running_counters import running_counts
from pipelines.windows.publish_clock import PublishClock, clocks, from_micros, to_micros

ROWS = 8_000_000  # impressions of the keys that are counted at once


@dataclass(frozen=True)
class KeptCounts:
    """Counts by group and clock below `folder`, by the day of the publish."""

    folder: Path
    history: HistoryFeatures

    def write(self, impressions: Impressions, queries: DataFrame | Column, rows_at_once: int = ROWS) -> None:
        """Of the queries of all days, as `running_counts` takes them."""
        self.remove()
        parts = -(-max(self.history.events, 1) // rows_at_once)
        for clock in clocks(self.history.config.features):
            for group in self.history.groups():
                shown = impressions.of(group.located)
                for part in range(parts):
                    mine = F.pmod(F.xxhash64(*group.keys), F.lit(parts)) == part
                    asking = queries if isinstance(queries, Column) else queries.where(mine)
                    self._add(shown.where(mine), asking, group, clock)

    def _add(
        self, shown: DataFrame, asking: DataFrame | Column, group: CounterGroup, clock: PublishClock
    ) -> None:
        counts = running_counts(shown, asking, group.keys, group.measures, clock, self.history.most)
        days = F.date_format(F.timestamp_micros(MOMENT), "yyyy-MM-dd")
        counts.withColumn(DAY, days).write.mode("append").partitionBy(DAY).parquet(str(self._place(group, clock)))

    def read(self, rows: DataFrame, group: CounterGroup, clock: PublishClock, days: Sequence[str]) -> DataFrame:
        """Those that `rows`, of these days, ask for: `keys`, MOMENT and the measures."""
        place = self._place(group, clock)
        first, last = first_publish(min(days), clock), max(days)
        kept = [place / f"{DAY}={day}" for day in days_in(place) if first <= day <= last]
        columns = [*group.keys, MOMENT, *(measure.column for measure in group.measures)]
        if kept:
            return read_places(rows.sparkSession, kept).select(*columns)
        none = [F.lit(None).cast("bigint").alias(name) for name in columns[len(group.keys):]]  # keys are missing
        return rows.where(F.lit(False)).select(*group.keys, *none)

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def _place(self, group: CounterGroup, clock: PublishClock) -> Path:
        return self.folder / "-".join([str(clock.period), *group.keys])


def first_publish(day: str, clock: PublishClock) -> str:
    """The day of the publish that the first moment of `day` asks for."""
    start = to_micros(datetime.fromisoformat(day).replace(tzinfo=UTC))
    return from_micros(start - start % clock.period).date().isoformat()
