"""Rows of the items' vectors, which may be the first columns of wider ones (serving/bundle/item_index.py).

Of a view numpy's `take` copies everything first, and indexing takes twice as long as `take` of whole rows.
"""

from __future__ import annotations

import numpy as np


class VectorRows:
    """Of `vectors` [I, d]."""

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors, self._width = np.asarray(vectors), vectors.shape[1]
        self._whole = _whole_rows(self._vectors)

    def __len__(self) -> int:
        return len(self._vectors)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """[K, d]"""
        if self._whole is None:
            return self._vectors[rows]
        return self._whole.take(rows, axis=0)[:, : self._width]


def _whole_rows(vectors: np.ndarray) -> np.ndarray | None:
    """The array without gaps whose first columns these are, itself or one that it is a view of; None without one."""
    found: object = vectors
    while isinstance(found, np.ndarray):
        if (found.ndim == 2 and found.flags.c_contiguous and len(found) == len(vectors)
                and found.strides == vectors.strides and found.ctypes.data == vectors.ctypes.data):
            return np.asarray(found)
        found = found.base
    return None
