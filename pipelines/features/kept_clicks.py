"""The clicks of a log that is taken in passes, read once over all days and kept in narrow files for the passes.

A sequence may list any click before it. Found pass by pass, clicks would cost every pass all older days, of which they
are a few percent. A pass takes those of its own users, so that what it holds does not grow with users who stay away.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from contracts.artifacts import DAY, USER
from pipelines.engine.day_partitions import days_in, read_places
from pipelines.features.history_features import HistoryFeatures
from pipelines.features.ingested_tables import Impressions, of_users
from pipelines.features.sequences import ORDER
from pipelines.windows.publish_clock import LEARNED


@dataclass(frozen=True)
class KeptClicks:
    """Clicks with what sequences take from them, below `folder`, by the day of their impression."""

    folder: Path
    history: HistoryFeatures

    def write(self, impressions: Impressions) -> None:
        """Those of all days; nothing where the configuration has no sequence."""
        self.remove()
        if not self.history.sequences:
            return
        located = self.history.listed()
        columns = dict.fromkeys([USER, *ORDER, *(column.name for column in located), DAY])
        known = F.col(USER).isNotNull() & F.col(LEARNED).isNotNull()
        clicks = impressions.where(known).of(located).select(*columns)
        clicks.write.partitionBy(DAY).parquet(str(self.folder))

    def read(self, spark: SparkSession, impressions: Impressions, days: Sequence[str]) -> Impressions:
        """Those that sequences of `days` may list, of whom `impressions`, of these days, are; where there are none,
        these impressions, without a click as well.
        """
        kept = [self.folder / f"{DAY}={day}" for day in days_in(self.folder) if day <= max(days)]
        if not kept:
            return impressions
        return Impressions(impressions.tables, of_users(read_places(spark, kept), impressions.frame))

    def remove(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
