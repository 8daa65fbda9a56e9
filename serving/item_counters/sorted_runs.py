"""Rows in the order of a time, added in batches and read by intervals, without ever sorting all of them again.

A batch is sorted and kept as a run; a run that is not twice as long as the one behind it is merged with it, so that n
rows are O(log n) runs and each row is moved O(log n) times (the logarithmic method: Bentley and Saxe, 1980). A run of
LONGEST rows is merged no more: no turn takes longer than its merge.
"""

from __future__ import annotations

import numpy as np

LONGEST = 1 << 17
Columns = tuple[np.ndarray, ...]


class SortedRuns:
    """Parallel columns of the given types; the first is the time, int64."""

    def __init__(self, *types: np.dtype | type) -> None:
        self._empty = tuple(np.empty(0, dtype=kind) for kind in types)
        self._runs: list[Columns] = []

    def __len__(self) -> int:
        return sum(len(run[0]) for run in self._runs)

    @property
    def runs(self) -> list[Columns]:
        """As they are now; what is added or forgotten later changes none of them."""
        return list(self._runs)

    def add(self, *columns: np.ndarray) -> None:
        """Rows of any times."""
        if not len(columns[0]):
            return
        self._runs.append(_sorted(tuple(column.astype(empty.dtype, copy=False)
                                        for column, empty in zip(columns, self._empty, strict=True))))
        while len(self._runs) > 1 and _together(*self._runs[-2:]):
            last, before = self._runs.pop(), self._runs.pop()
            self._runs.append(_sorted(tuple(map(np.concatenate, zip(before, last, strict=True)))))

    def between(self, after: int, until: int) -> Columns:
        """Rows of times in (`after`, `until`]."""
        parts = [tuple(column[first:last] for column in run) for run in self._runs
                 for first, last in [np.searchsorted(run[0], (after, until), side="right").tolist()] if last > first]
        return tuple(map(np.concatenate, zip(*parts, strict=True))) if parts else self._empty

    def forget(self, until: int) -> None:
        """Rows of times up to and with `until` are there no more."""
        kept = [(run, int(np.searchsorted(run[0], until, side="right"))) for run in self._runs]
        self._runs = [tuple(column[first:] for column in run) if first else run
                      for run, first in kept if first < len(run[0])]


def _together(before: Columns, last: Columns) -> bool:
    return len(before[0]) < 2 * len(last[0]) and len(before[0]) + len(last[0]) <= LONGEST


def _sorted(columns: Columns) -> Columns:
    times = columns[0]
    if bool((times[1:] >= times[:-1]).all()):
        return columns
    order = np.argsort(times, kind="stable")
    return tuple(column.take(order) for column in columns)
