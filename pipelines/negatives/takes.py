"""The takes of some users as arrays, and what of them a user has at a moment."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from contracts.artifacts import ITEM, ROW
from pipelines.windows.publish_clock import AT, ENTER


class Takes(NamedTuple):
    """Numbers of item, of user and of holder (the user; where takes repeat, the user at a moment); microseconds of the
    take and from which on it counts; row hashes. All int64 [takes]."""

    item: np.ndarray
    user: np.ndarray
    holder: np.ndarray
    at: np.ndarray
    enter: np.ndarray
    row: np.ndarray

    @classmethod
    def read(cls, table: pa.Table, user: np.ndarray, names: pa.Array, repeat: bool) -> Takes:
        """Of columns ITEM, AT, ENTER and ROW; an item's number is its place in `names`."""
        at, enter, row = (table.column(name).to_numpy() for name in (AT, ENTER, ROW))
        item = pc.index_in(table.column(ITEM).combine_chunks(), value_set=names).to_numpy().astype(np.int64)
        return cls(item, user, _moments(user, at) if repeat else user, at, enter, row)

    def of(self, chosen: np.ndarray) -> Takes:
        return Takes(*(values[chosen] for values in self))


class Taken:
    """What each holder has, since when: of equal takes the first, by time and then by hash."""

    def __init__(self, takes: Takes, items: int) -> None:
        self.items = items
        codes = self._codes(takes.holder, takes.item)
        order = np.lexsort([takes.row, takes.at, codes])
        firsts = order[np.diff(codes[order], prepend=-1) != 0]
        self.first = np.zeros(len(codes), dtype=bool)
        self.first[firsts] = True
        self._held, self._since = codes[firsts], takes.at[firsts]

    def _codes(self, holder: np.ndarray, item: np.ndarray) -> np.ndarray:
        return holder * self.items + item

    def has(self, holder: np.ndarray, item: np.ndarray, at: np.ndarray) -> np.ndarray:
        """Whether the holder has taken the item at or before the moment."""
        codes = self._codes(holder, item)
        place = np.minimum(np.searchsorted(self._held, codes), len(self._held) - 1)
        return (self._held[place] == codes) & (self._since[place] <= at)


def _moments(group: np.ndarray, at: np.ndarray) -> np.ndarray:
    """A number for each moment of each user."""
    order = np.lexsort([at, group])
    changes = (np.diff(group[order], prepend=-1) != 0) | (np.diff(at[order], prepend=at[order[:1]]) != 0)
    found = np.empty_like(group)
    found[order] = np.cumsum(changes)
    return found
