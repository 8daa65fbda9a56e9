"""What a retrieval would have put before a user at the moment of a take: the other half of where negatives come from.

Candidates of a positive at t are the nearest items (pipelines/negatives/neighbours.py, as of the midnight before) of
each of the latest RECENT takes of its user that count at t (Linden et al., IEEE Internet Computing 2003), each once,
without what the user may not get (pipelines/negatives/draw.py).
"""

from __future__ import annotations

from typing import NamedTuple, Self

import numpy as np

from pipelines.features.prefix_sums import group_codes
from pipelines.negatives.neighbours import Neighbours
from pipelines.negatives.takes import Taken, Takes

RECENT = 10


class Candidates(NamedTuple):
    """Of positives [R]: `item` [sum of sizes] int64 ascending within each positive, `offsets` [R + 1] into them; `own`
    bool [R]: the item taken was retrieved itself."""

    item: np.ndarray
    offsets: np.ndarray
    own: np.ndarray

    @classmethod
    def none(cls, positives: int) -> Self:
        empty: np.ndarray = np.zeros(0, np.int64)
        return cls(empty, np.zeros(positives + 1, np.int64), np.zeros(positives, bool))

    @property
    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)

    def at(self, positive: np.ndarray, chance: np.ndarray) -> np.ndarray:
        """The candidate of each positive [n] that a chance [n] in [0, 1) hits; each must have one."""
        return self.item[self.offsets[positive] + (chance * self.sizes[positive]).astype(np.int64)]

    def among(self, positive: np.ndarray, item: np.ndarray, items: int) -> np.ndarray:
        """bool [n]: whether the item is a candidate of the positive; `items`: how many there are."""
        return _holds(np.repeat(np.arange(len(self.own)), self.sizes) * items + self.item, positive * items + item)


class Retrieval:
    """Asked for takes of some users, of whom `takes` are all."""

    def __init__(self, takes: Takes, taken: Taken, neighbours: Neighbours) -> None:
        self.takes, self.taken, self.neighbours = takes, taken, neighbours
        codes, first, last = group_codes(takes.user, takes.enter, takes.user, takes.at)
        self._order = np.lexsort([takes.row, codes])
        ordered = codes[self._order]
        self._begin, self._end = np.searchsorted(ordered, first, "left"), np.searchsorted(ordered, last, "right")

    def latest(self, places: np.ndarray) -> np.ndarray:
        """int64 [n, RECENT]: places of the user's takes that count at each take, the last first; -1 behind them."""
        spots = self._end[places][:, None] - np.arange(1, RECENT + 1)
        return np.where(spots >= self._begin[places][:, None], self._order[np.maximum(spots, 0)], -1)

    def candidates(self, places: np.ndarray) -> Candidates:
        """Of takes by their places [n]."""
        asking, recent, items = self.takes.of(places), self.latest(places), self.taken.items
        of, column = np.nonzero(recent >= 0)
        near = self.neighbours.as_of(self.takes.item[recent[of, column]], asking.at[of])
        codes = np.sort((of[:, None] * items + near)[near >= 0])
        codes = codes[np.diff(codes, prepend=-1) != 0]  # numpy's own, by hashes, is slow on such numbers
        own = _holds(codes, np.arange(len(places)) * items + asking.item)
        of, item = np.divmod(codes, items)
        free = ~self.taken.has(asking.holder[of], item, asking.at[of])
        sizes = np.bincount(of[free], minlength=len(places))
        return Candidates(item[free], np.concatenate([[0], np.cumsum(sizes)]), own)


def _holds(codes: np.ndarray, asked: np.ndarray) -> np.ndarray:
    """bool [n]: whether each is one of the codes, which ascend."""
    if not len(codes):
        return np.zeros(len(asked), bool)
    return np.asarray(codes[np.minimum(np.searchsorted(codes, asked), len(codes) - 1)] == asked)
