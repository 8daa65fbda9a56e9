"""A table of later events beside the log, which tells which of its impressions were positive."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from sluice.init.column_types import Column
from sluice.table_samples.table_sample import TableSample

HOUR, SOON = 3600, 0.99


@dataclass(frozen=True)
class Clicks:
    """A table of later events beside the log: `on` are the columns that join them to their impressions, `window` how
    long after these they count."""

    sample: TableSample
    columns: Sequence[Column]
    on: tuple[str, ...]
    time: Column
    window: Literal["1h", "1d"] = "1d"

    def truth(self, log: Sequence[Column]) -> tuple[bool, ...]:
        """Of every row of the log's sample, without regard to the time between."""
        own = set(self._keys(self.columns))
        return tuple(key in own for key in self._keys(log))

    def within_an_hour(self, log: Sequence[Column], time: Column) -> bool:
        """Whether nearly all events come so soon after the sampled impressions of theirs."""
        shown = dict(zip(self._keys(log), _moments(time), strict=True))
        delays = [moment - shown[key] for key, moment in zip(self._keys(self.columns), _moments(self.time), strict=True)
                  if key in shown]
        return sum(delay <= HOUR for delay in delays) >= SOON * len(delays)

    def _keys(self, columns: Sequence[Column]) -> Iterator[tuple[str, ...]]:
        values = {column.name: column.values for column in columns}
        return zip(*(map(str, values[name]) for name in self.on), strict=True)


def _moments(time: Column) -> Iterator[float]:
    """Seconds since 1970, nan where there is none."""
    for value in time.values:
        read = time.moment(value) if time.moment is not None and value is not None else None
        yield math.nan if read is None else read
