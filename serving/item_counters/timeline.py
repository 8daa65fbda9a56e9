"""One event of impressions (shown, closed or clicked) as it enters and leaves the windows that count it.

By contracts/features/event_clock.py an impression of `at` whose event enters at `entry` counts in a window W

    from entry to at + W      where entry < at + W, else never

All windows share the order of `at`, in which impressions leave them, and the order of `entry`, in which they enter.
So an impression is held once: until it enters in the one, and from then on in the other, until the longest window has
passed, with a bit for each window that counts it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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


class Held(NamedTuple):
    """What a timeline holds at `moment`, in microseconds: runs of (entry, at, slot) that wait, and of (at, slot,
    windows) that count or have counted. What counts follows from them."""

    moment: int
    waiting: Iterable[Columns]
    leaving: Iterable[Columns]


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

    def held(self) -> Held:
        """To go on from elsewhere; it stays as it is."""
        return Held(self._moment, self._waiting.runs, self._leaving.runs)

    def resume(self, held: Held) -> Iterator[Change]:
        """Goes on from there, where nothing was held before; what counts then, run by run."""
        self._moment = held.moment
        for run in held.waiting:
            self._waiting.add(*run)
        for run in held.leaving:
            self._leaving.add(*run)
            yield from (self._counting(window, run) for window in self._windows)

    def _counting(self, window: int, run: Columns) -> Change:
        at, slots, bits = run
        return Change(window, slots[((bits & self._bit(window)) != 0) & (at > self._moment - window * SECOND)], 1)

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
