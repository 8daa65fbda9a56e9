"""Items whose vectors the codes of an index cannot say: each is scored as it is.

8-bit codes span what the bundle's own vectors did. A bid of ten times the highest, or of nothing, lies beyond; its code
would be that of the last one within.
"""

from __future__ import annotations

import numpy as np

MOST = 8192  # every search scores all of them


class UncodedRows:
    """`rows` [m], rising; another array once something is put. One thread puts."""

    def __init__(self) -> None:
        self.rows = np.empty(0, dtype=np.int64)

    def taken(self, rows: np.ndarray, beyond: np.ndarray) -> np.ndarray:
        """bool [n]: for which of the rows `beyond` what the codes can say, bool [n], there is room."""
        more = beyond & ~np.isin(rows, self.rows)
        return beyond & ~(more & (np.cumsum(more) > MOST - len(self.rows)))

    def put(self, rows: np.ndarray, uncoded: np.ndarray) -> None:
        """Whether each of the rows [n], each once, is among them from now on."""
        if uncoded.any() or np.isin(rows, self.rows).any():
            self.rows = np.union1d(np.setdiff1d(self.rows, rows, assume_unique=True), rows[uncoded])
