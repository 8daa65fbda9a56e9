"""Which process this is, and which rows of a table are its own.

Rows of a table are dealt to the processes by row modulo their number: row r is row r // size of process r % size. Ids
fall in frequency, so that every process gets as many frequent rows as any other.
"""

from __future__ import annotations

from typing import NamedTuple

from torch import Tensor


class World(NamedTuple):
    """This process is number `rank` of `size`."""

    rank: int
    size: int

    def own(self, rows: Tensor) -> Tensor:
        """Those of [N, ...] that are dealt to this process, as a view."""
        return rows[self.rank :: self.size]


ALONE = World(0, 1)
