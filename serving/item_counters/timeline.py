"""One event of impressions (shown, closed or clicked) as it enters and leaves the windows that count it.

By contracts/features/event_clock.py an impression of `at` whose event enters at `entry` counts in a window W

    from entry to at + W      where entry < at + W, else never

All windows share the order of `at`, in which impressions leave them, and the order of `entry`, in which they enter.
So an impression is held once: until it enters in the one, and from then on in the other, until the longest window has
passed, with a bit for each window that counts it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contracts.features.event_clock import SECOND
from serving.item_counters.sorted_runs import Columns, SortedRuns

BEFORE_ALL = np.iinfo(np.int64).min


class Change(NamedTuple):
    """Of the impressions that a window counts: `by` more for each of `slots` [n], which may name one several times."""

    window: int
    slots: np.ndarray
    by: int


class Timeline:
    """Of windows in seconds; `slots` say whose impressions they are."""

    def __init__(self, windows: Sequence[int]) -> None:
        self._windows, self._moment = tuple(windows), 0
        self._bits = np.min_scalar_type(2 ** len(windows) - 1)
        self._waiting = SortedRuns(np.int64, np.int64, np.int32)  # entry, at, slot
        self._leaving = SortedRuns(np.int64, np.int32, self._bits)  # at, slot, windows

    def __len__(self) -> int:
        """Impressions that wait or count."""
        return len(self._waiting) + len(self._leaving)

    def add(self, at: np.ndarray, entry: np.ndarray, slots: np.ndarray) -> None:
        """Impressions, in any order; those whose event lies before the present moment enter at the next."""
        self._waiting.add(entry, at, slots)

    def advance(self, moment: int) -> list[Change]:
        """What changes until then: `moment` in microseconds, never before the last."""
        found = [self._left(window, moment) for window in self._windows]
        found += self._entered(self._waiting.between(BEFORE_ALL, moment), moment)
        self._waiting.forget(moment)
        self._leaving.forget(moment - max(self._windows, default=0) * SECOND)
        self._moment = moment
        return found

    def _left(self, window: int, moment: int) -> Change:
        _, slots, bits = self._leaving.between(self._moment - window * SECOND, moment - window * SECOND)
        return Change(window, slots[(bits & self._bit(window)) != 0], -1)

    def _entered(self, rows: Columns, moment: int) -> list[Change]:
        entry, at, slots = rows
        bits, found = np.zeros(len(at), dtype=self._bits), list[Change]()
        for window in self._windows:
            leaves = at + window * SECOND
            counts = (entry < leaves) & (leaves > moment)
            bits[counts] |= self._bit(window)
            found.append(Change(window, slots[counts], 1))
        kept = bits != 0
        self._leaving.add(at[kept], slots[kept], bits[kept])
        return found

    def _bit(self, window: int) -> np.generic:
        return self._bits.type(1 << self._windows.index(window))
