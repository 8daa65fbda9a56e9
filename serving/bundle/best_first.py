"""The largest of many values without sorting them all."""

from __future__ import annotations

import numpy as np


def best_first(values: np.ndarray, rows: np.ndarray, keep: int) -> np.ndarray:
    """Positions of the `keep` largest values, best first; equal values in the order of their item rows."""
    place = len(values) - keep
    if place <= 0:
        return np.lexsort((rows, -values))
    ordered = values.copy()
    ordered.partition(place)
    pool = (values >= ordered[place]).nonzero()[0]
    return pool[np.lexsort((rows[pool], -values[pool]))][:keep]
