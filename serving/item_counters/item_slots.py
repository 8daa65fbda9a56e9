"""Which row of the counters' tables an item has: one once something of it was recorded, so that the tables hold the
items that were shown and not those of the catalogue.

Slot 0 is that of all others: nothing of them is counted. An item that the bundle does not know has a slot as well,
which its row finds once a change of the catalogue gives it one.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Protocol

import numpy as np

from serving.bundle.feature_store import FeatureStore

NOBODY = -1
MOST_UNKNOWN = 65_536  # as many new items as there is room for beside a small bundle
log = logging.getLogger("sluice.serving")


class Slots(Protocol):
    """Slots of keys, which are held; and the `count` rows of the counters' tables: of item rows, of slots."""

    of_row: np.ndarray
    count: int

    def of(self, keys: Sequence[str]) -> np.ndarray: ...
    def counted(self, slots: np.ndarray) -> np.ndarray: ...
    def link(self) -> None: ...
    def names(self) -> Callable[[], list[str]]: ...


class ItemSlots:
    """`of_row` int32 [I + 1], the slot of each row of `items`; `count` slots are given. One thread gives them, others
    read `of_row` meanwhile."""

    def __init__(self, items: FeatureStore) -> None:
        self._items, self.count = items, 1
        self.of_row = np.zeros(len(items) + 1, dtype=np.int32)
        self._unknown: dict[str, int] = {}
        self._linked, self._full = 0, False

    def names(self) -> Callable[[], list[str]]:
        """What makes the item of each slot as of now, "" without one: for any thread, since it takes long."""
        return partial(_names, self._items, self.of_row.copy(), self.count, dict(self._unknown))

    def of(self, keys: Sequence[str]) -> np.ndarray:
        """int32 [n], new ones given where they are needed; NOBODY of an unknown item for which there is no room."""
        if not keys:
            return np.empty(0, dtype=np.int32)
        self.link()
        rows = self._items.rows(keys)
        found = self.of_row[rows]
        for place in np.flatnonzero(found == 0).tolist():
            found[place] = self._given(keys[place], int(rows[place]))
        return found

    def counted(self, slots: np.ndarray) -> np.ndarray:
        """Each in a row of its own."""
        return slots

    def _given(self, key: str, row: int) -> int:
        """A row may have been added since `link`, by the thread that follows the catalogue: its slot is that of before
        all the same."""
        if row < 0:
            return self._of_unknown(key)
        if not self.of_row[row]:
            self.of_row[row] = self._unknown.pop(key, 0) or self._new()
        return int(self.of_row[row])

    def _new(self) -> int:
        self.count += 1
        return self.count - 1

    def _of_unknown(self, key: str) -> int:
        if key not in self._unknown:
            if len(self._unknown) >= MOST_UNKNOWN:
                if not self._full:
                    log.error("events name more than %d items that the bundle does not know; those of further ones are "
                              "recorded and not counted before the next bundle", MOST_UNKNOWN)
                self._full = True
                return NOBODY
            self._unknown[key] = self._new()
        return self._unknown[key]

    def link(self) -> None:
        """Items that have been given a row keep the slot that they had without one."""
        for key in self._items.added_keys(self._linked):
            self._linked += 1
            slot = self._unknown.pop(key, 0)
            if slot:
                self.of_row[self._items.row(key)] = slot


def _names(items: FeatureStore, of_row: np.ndarray, count: int, unknown: Mapping[str, int]) -> list[str]:
    found, rows = [""] * count, np.flatnonzero(of_row)
    for slot, key in zip(of_row[rows].tolist(), items.keys_of(rows), strict=True):
        found[slot] = key
    for key, slot in unknown.items():
        found[slot] = key
    return found
