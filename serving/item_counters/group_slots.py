"""Which row of the counters' tables an item has where items are counted together: that of its group, as the bundle's
table of items says; items that the bundle does not know are of none."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence

import numpy as np

from serving.bundle.feature_store import FeatureStore
from serving.item_counters.item_slots import NOBODY

CHUNK = 1 << 16  # items


class GroupSlots:
    """As ItemSlots; `groups` int32 [I], -1 of an item of none."""

    def __init__(self, items: FeatureStore, groups: np.ndarray) -> None:
        self._items, self._groups = items, groups
        self.of_row = np.zeros(len(items) + 1, dtype=np.int32)
        self.of_row[: len(groups)] = groups + 1
        self.count = int(groups.max(initial=-1)) + 2

    @property
    def mark(self) -> str:
        """Of which item is of which group: only where that is the same a slot is of the same group."""
        found = hashlib.sha256(self._groups.astype(np.int32).tobytes())
        for start in range(0, len(self._groups), CHUNK):
            found.update(json.dumps(self._items.keys.keys(start, start + CHUNK).to_pylist()).encode())
        return found.hexdigest()

    def names(self) -> Callable[[], list[str]]:
        """None: slots are the bundle's."""
        return list

    def of(self, keys: Sequence[str]) -> np.ndarray:
        """int32 [n]; NOBODY of an item of no group."""
        if not keys:
            return np.empty(0, dtype=np.int32)
        found = self.of_row[self._items.rows(keys)]
        return np.where(found > 0, found, np.int32(NOBODY))

    def link(self) -> None:
        """A new item is of no group."""
