"""What a model may read of an action beside its item: how long it was until the next one, and values of columns.

    id of a gap = FIRST_ID + floor(log2(1 + seconds)), the longest GAPS - 1; the last one's reaches to the request

Ids as everywhere: 0 is padding, 1 is unknown, which is what is not told. Moments are int64 microseconds, 0 where
unknown.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.features.feature_spec import FIRST_ID, UNKNOWN

TIME = "time"  # among names of columns: the gaps
GAPS = 32
SECOND = 1_000_000


class Told(NamedTuple):
    """Of A actions: `values` int64 [A, C] ids of columns, with `sizes` rows of an embedding of each; `gaps`: whether
    the times between them are read."""

    gaps: bool
    values: np.ndarray
    sizes: tuple[int, ...] = ()

    @property
    def tables(self) -> tuple[int, ...]:
        """Rows of an embedding of each input: E of them, gaps first."""
        return (*([FIRST_ID + GAPS] if self.gaps else []), *self.sizes)

    def at(self, places: np.ndarray) -> Told:
        """Of a mask or of places [n] of the actions."""
        return self._replace(values=self.values[places])


def gap_ids(times: np.ndarray, until: np.ndarray) -> np.ndarray:
    """[n] and [n] -> int64 [n]; where the later moment lies before, as clocks do, the gap is none."""
    seconds = np.maximum(until - times, 0) / SECOND
    ids = FIRST_ID + np.minimum(np.log2(1 + seconds).astype(np.int64), GAPS - 1)
    return np.where((times > 0) & (until > 0), ids, UNKNOWN)


def inputs(times: np.ndarray | None, values: np.ndarray, now: int) -> np.ndarray:
    """One user's: times [n] (None: gaps are not read), values [n, C], oldest first, asked at `now` -> int64 [n, E]."""
    if times is None:
        return values
    return np.column_stack([gap_ids(times, np.append(times[1:], now)), values])
