"""Rows of the items' vectors, which may be the first columns of wider ones (serving/bundle/item_index.py).

Of a view numpy's `take` copies everything first, and indexing takes twice as long as `take` of whole rows.
"""

from __future__ import annotations

import numpy as np


class VectorRows:
    """Of `vectors` [I, d]."""

    def __init__(self, vectors: np.ndarray) -> None:
        self._vectors, self._width = np.asarray(vectors), vectors.shape[1]
        base = self._vectors.base
        if isinstance(base, np.ndarray) and self._within(base):
            self._vectors = np.asarray(base)

    def __len__(self) -> int:
        return len(self._vectors)

    def take(self, rows: np.ndarray) -> np.ndarray:
        """[K, d]"""
        return self._vectors.take(rows, axis=0)[:, : self._width]

    def _within(self, base: np.ndarray) -> bool:
        ours = self._vectors
        return (base.ndim == 2 and base.flags.c_contiguous and len(base) == len(ours) and base.dtype == ours.dtype
                and base.strides == ours.strides and base.ctypes.data == ours.ctypes.data)
