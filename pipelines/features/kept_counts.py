"""What the counters of a log that is taken in passes count, made once over all days and kept in files for the passes.

A pass needs the counts at its own publishes alone. Made pass by pass, they would take as many older days again as
counters reach; made at once, every impression is counted one time. Groups of counters come one after another: what is
counted together is brought together some days at a time, into parts by key, of which so many are taken at once as keep
what is held at ROWS.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY
from contracts.progress import counted
from pipelines.engine.day_partitions import days_in, groups_of, read_places, rows_in
from pipelines.features.history_features import CounterGroup, HistoryFeatures
from pipelines.features.ingested_tables import Impressions
from pipelines.features.measures import MOMENT
from pipelines.features.running_counters import counts_of, keys_above, moves_of
from pipelines.windows.publish_clock import PublishClock, clocks, from_micros, to_micros

ROWS = 8_000_000  # impressions, or what is counted together of them, that are held at once
PART, MOVES = "_part", ".moves"


@dataclass(frozen=True)
class KeptCounts:
    """Counts by group and clock below `folder`, by the day of the publish."""

    folder: Path
    history: HistoryFeatures

    def write(
        self, impressions: Impressions, queries: DataFrame | Column, rows_of_day: Mapping[str, int],
        asked: int = 0, rows_at_once: int = ROWS,
    ) -> None:
        """Of the queries of all days, as `running_counts` takes them; `rows_of_day` are the impressions', `asked` is
        how many queries are none of these.
        """
        parts = -(-max(self.history.events + asked, 1) // rows_at_once)
        self.remove()
        pairs = [(clock, group) for clock in clocks(self.history.config.features) for group in self.history.groups()]
        for clock, group in counted("groups of counters", pairs):
            for days in groups_of(rows_of_day, rows_at_once):
                mine = F.col(DAY).isin(days)
                asking = queries if isinstance(queries, Column) else queries.where(mine)
                shown = impressions.where(mine).of(group.located)
                self._add_moves(moves_of(shown, asking, group.keys, group.measures, clock), group, parts)
            self._count_moves(impressions.frame.sparkSession, group, clock, rows_at_once)

    def _add_moves(self, moves: DataFrame, group: CounterGroup, parts: int) -> None:
        parted = moves.withColumn(PART, F.pmod(F.xxhash64(*group.keys), F.lit(parts)))
        parted.write.mode("append").partitionBy(PART).parquet(str(self.folder / MOVES))

    def _count_moves(self, spark: SparkSession, group: CounterGroup, clock: PublishClock, rows_at_once: int) -> None:
        """Of all parts, some at a time, which go then."""
        place = self.folder / MOVES
        held = {part.name: rows_in(part) for part in place.glob(f"{PART}=*")}
        most = self.history.most
        for names in groups_of(held, rows_at_once):
            moves = read_places(spark, [place / name for name in names])
            rows = sum(held[name] for name in names)
            heavy = keys_above(moves, group.keys, most) if most is not None and rows > most else None
            counts = counts_of(moves, group.keys, group.measures, heavy)
            days = F.date_format(F.timestamp_micros(MOMENT), "yyyy-MM-dd")
            counts.withColumn(DAY, days).write.mode("append").partitionBy(DAY).parquet(str(self._place(group, clock)))
        shutil.rmtree(place, ignore_errors=True)

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
