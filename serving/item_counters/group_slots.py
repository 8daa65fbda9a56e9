"""Where items are counted together: an event has the slot of its item, and counts in the row of the item's group, as
the bundle's table of items says; items that the bundle does not know are of none.

What is held is so the same for every bundle, whatever its groups.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from serving.bundle.feature_store import FeatureStore
from serving.item_counters.item_slots import ItemSlots

NO_GROUP = 0


class GroupSlots:
    """As ItemSlots; `groups` int32 [I], -1 of an item of none."""

    def __init__(self, items: FeatureStore, groups: np.ndarray) -> None:
        self._items, self._slots = items, ItemSlots(items)
        self.of_row = np.full(len(items) + 1, NO_GROUP, dtype=np.int32)
        self.of_row[: len(groups)] = groups + 1
        self.count = int(groups.max(initial=-1)) + 2
        self._groups = np.full(1, NO_GROUP, dtype=np.int32)  # of the slots

    def names(self) -> Callable[[], list[str]]:
        return self._slots.names()

    def of(self, keys: Sequence[str]) -> np.ndarray:
        found, before = self._slots.of(keys), len(self._groups)
        if self._slots.count > before:
            more = np.full(self._slots.count - before, NO_GROUP, dtype=np.int32)
            self._groups = np.concatenate([self._groups, more])
            new = np.flatnonzero(found >= before)
            self._groups[found[new]] = self.of_row[self._items.rows([keys[place] for place in new.tolist()])]
        return found

    def counted(self, slots: np.ndarray) -> np.ndarray:
        """Rows of their groups, without those of items of none."""
        found = self._groups.take(slots)
        return found[found != NO_GROUP]

    def link(self) -> None:
        """A new item is of no group."""
        self._slots.link()
