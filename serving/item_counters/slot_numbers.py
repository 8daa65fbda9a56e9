"""Slots of counters that were kept -> those of this process, which gives them anew: so that items of which nothing is
held any more take no room, and whatever the bundle."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from serving.item_counters.item_slots import Slots
from serving.item_counters.sorted_runs import Columns

UNASKED = -2


class SlotNumbers:
    """`names` are the items of the kept slots."""

    def __init__(self, names: Sequence[str], slots: Slots) -> None:
        self._names, self._slots = names, slots
        self._given = np.full(len(names), UNASKED, dtype=np.int32)

    def waiting(self, runs: Iterable[Columns]) -> Iterator[Columns]:
        """Of (entry, at, slot), as a timeline holds them; without those of items for which there is no room."""
        for entry, at, kept in runs:
            slots = self._of(kept)
            mine = slots >= 0
            yield entry[mine], at[mine], slots[mine]

    def leaving(self, runs: Iterable[Columns]) -> Iterator[Columns]:
        """The same of (at, slot, windows)."""
        for at, kept, windows in runs:
            slots = self._of(kept)
            mine = slots >= 0
            yield at[mine], slots[mine], windows[mine]

    def _of(self, kept: np.ndarray) -> np.ndarray:
        """Raises IndexError of a slot without a name."""
        new = np.unique(kept[self._given[kept] == UNASKED])
        self._given[new] = self._slots.of([self._names[slot] for slot in new.tolist()])
        return self._given.take(kept)
