"""The log as it stood when a day ended: what had happened and was known by then, as far back as the history reaches.

A run of a past day, made again later, reads the same rows, whatever has come since.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from pyspark.sql import DataFrame
from pyspark.sql import functions as F


@dataclass(frozen=True)
class KnownBy:
    """Rows of [start, end) that were known before `end`; `start` None is the beginning of the log."""

    end: datetime
    start: datetime | None = None

    @classmethod
    def end_of(cls, day: str, history: int | None) -> KnownBy:
        """`history` in seconds before the end of `day` ("YYYY-MM-DD", UTC)."""
        end = datetime.combine(date.fromisoformat(day), datetime.min.time(), UTC) + timedelta(days=1)
        return cls(end, None if history is None else end - timedelta(seconds=history))

    def rows(self, frame: DataFrame, time: str, known: str) -> DataFrame:
        """Rows whose times cannot be read stay: they are malformed, and counted as such."""
        end = F.lit(self.end)
        held = (F.col(time) < end) & (F.col(known) < end)
        if self.start is not None:
            held &= F.col(time) >= F.lit(self.start)
        return frame.where(F.coalesce(held, F.lit(True)))
