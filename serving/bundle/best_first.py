"""The largest of many values without sorting them all."""

from __future__ import annotations

import numpy as np


def best_first(values: np.ndarray, rows: np.ndarray, keep: int) -> np.ndarray:
    """Positions of the `keep` largest values, best first; equal values in the order of their item rows."""
    if keep < len(values):
        threshold = np.partition(values, len(values) - keep)[len(values) - keep]
        pool = np.flatnonzero(values >= threshold)
    else:
        pool = np.arange(len(values))
    return pool[np.lexsort((rows[pool], -values[pool]))][:keep]
