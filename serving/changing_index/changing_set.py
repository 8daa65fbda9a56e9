"""A set of items that changes, kept as bits too: few changes rewrite few bytes, and not a million flags."""

from __future__ import annotations

import numpy as np

from serving.bundle.item_set import ItemSet

BYTE = 8  # rows


class ChangingSet:
    """`members` bool [size], to be read and not written. What is `put` is in the next set `taken`; one thread at a
    time."""

    def __init__(self, members: np.ndarray) -> None:
        self._padded = np.zeros(-(-len(members) // BYTE) * BYTE, dtype=bool)
        self.members = self._padded[: len(members)]
        self.members[:] = members
        self._bits = np.packbits(self._padded, bitorder="little")
        self._taken: ItemSet | None = None

    def put(self, rows: np.ndarray, members: np.ndarray | bool) -> None:
        """Whether each of the rows [n] is in it from now on; of a row that comes twice the last one counts."""
        if not len(rows):
            return
        self.members[rows] = members
        places = np.unique(rows >> 3)
        self._bits[places] = np.packbits(self._padded.reshape(-1, BYTE)[places], axis=1, bitorder="little")[:, 0]
        self._taken = None

    def taken(self) -> ItemSet:
        """As it is now; the same object until something is put."""
        if self._taken is None:
            self._taken = ItemSet(self._bits.copy(), len(self.members))
        return self._taken
