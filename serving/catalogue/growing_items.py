"""The bundle's item table with room for items that changes bring: their keys, and the rows that they were given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contracts.errors import DataError
from serving.bundle.feature_store import UNKNOWN_ROW, FeatureStore
from serving.catalogue.table_room import with_last

ALIGNED = 8  # rows to a byte of a bitmap


class GrowingItems(FeatureStore):
    """Rows [0, `count`) are the bundle's, [`first`, `size`) are for new items, and the last one, `size`, is that of an
    item of which nothing is known. `len` counts rows, those that nobody has yet among them."""

    def __init__(self, stored: FeatureStore, room: int) -> None:
        self.count = len(stored)
        self.first = -(-self.count // ALIGNED) * ALIGNED
        self.size = self.first + -(-room // ALIGNED) * ALIGNED
        super().__init__(stored.keys, *(with_last(table, self.size + 1) for table in (stored.ids, stored.dense)))
        self._rows: dict[str, int] = {}
        self._keys: list[str] = []

    def __len__(self) -> int:
        return self.size

    @property
    def added(self) -> int:
        """How many new items have rows."""
        return len(self._keys)

    @property
    def room(self) -> int:
        """How many more can have one."""
        return self.size - self.first - self.added

    @property
    def used(self) -> str:
        """What is to be said once there is no room."""
        return (f"there is room for {self.size - self.first} new items beside this bundle, and it is used; publish a "
                "bundle that knows them")

    def added_keys(self, after: int = 0) -> Sequence[str]:
        return self._keys[after:]

    def add(self, key: str) -> int:
        """The row of an item that has none yet. Raises DataError where there is no room."""
        if not self.room:
            raise DataError(self.used)
        row = self.first + self.added
        self._rows[key] = row
        self._keys.append(key)
        return row

    def key(self, row: int) -> str:
        return super().key(row) if row < self.count else self._keys[row - self.first]

    def keys_of(self, rows: np.ndarray) -> list[str]:
        rows = np.asarray(rows)
        new = np.flatnonzero(rows >= self.first)
        if not len(new):
            return super().keys_of(rows)
        keys = super().keys_of(np.where(rows < self.first, rows, 0))
        for place in new.tolist():
            keys[place] = self._keys[rows[place] - self.first]
        return keys

    def row(self, key: str) -> int:
        found = super().row(key)
        return found if found >= 0 else self._rows.get(key, UNKNOWN_ROW)

    def rows(self, keys: Sequence[str]) -> np.ndarray:
        found = super().rows(keys)
        if self._rows:
            for place in np.flatnonzero(found < 0).tolist():
                found[place] = self._rows.get(keys[place], UNKNOWN_ROW)
        return found
