"""A number column of items that change: the bundle's own order, corrected for the items whose number is another one."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from serving.bundle.item_set import ItemSet
from serving.bundle.loaded_bundle import Numbers
from serving.bundle.number_column import BY_ROWS, bounds, scanned
from serving.changing_index.changing_set import ChangingSet


class _Changed(NamedTuple):
    """The rows [n] that changed, and the set of all others."""

    rows: np.ndarray
    others: ItemSet


class ChangingNumbers:
    """Of the rows of `values`, the first of which are those of `stored`; NaN where there is none. Who writes `values`
    tells which rows by `put`; requests find them after `publish`."""

    def __init__(self, stored: Numbers, values: np.ndarray) -> None:
        self._stored, self.values = stored, values
        self._others, self._unseen = ChangingSet(np.ones(len(values), dtype=bool)), list[np.ndarray]()
        self._changed = _Changed(np.empty(0, dtype=np.int64), self._others.taken())

    def put(self, rows: np.ndarray) -> None:
        new = np.unique(rows[self._others.members[rows]])
        if len(new):
            self._others.put(new, False)
            self._unseen.append(new)

    def publish(self) -> None:
        if self._unseen:
            rows, self._unseen = np.concatenate([self._changed.rows, *self._unseen]), []
            self._changed = _Changed(rows, self._others.taken())

    def within(self, least: float, most: float) -> ItemSet:
        """Items whose number lies within, bounds included."""
        now, size = self._changed, len(self.values)
        if len(now.rows) > BY_ROWS * size:
            return scanned(self.values, least, most)
        bits, stored = np.zeros(-(-size // 8), dtype=np.uint8), self._stored.within(least, most).bits
        bits[: len(stored)] = stored
        bits &= now.others.bits
        low, high = bounds(least, most, self.values.dtype)
        own = self.values[now.rows]
        rows = now.rows[(own >= low) & (own <= high)]
        np.bitwise_or.at(bits, rows >> 3, (1 << (rows & 7)).astype(np.uint8))
        return ItemSet(bits, size)
