"""The largest of many values without sorting them all."""

from __future__ import annotations

import numpy as np


def best_first(values: np.ndarray, rows: np.ndarray, keep: int) -> np.ndarray:
    """Positions of the `keep` largest values, best first; equal values in the order of their item rows."""
    place = len(values) - keep
    if place <= 0:
        return _sorted(values, rows)
    ordered = values.copy()
    ordered.partition(place)
    pool = (values >= ordered[place]).nonzero()[0]
    return pool[_sorted(values[pool], rows[pool])][:keep]


def _sorted(values: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """By values alone, in half the time of both, where no two are equal."""
    order = (-values).argsort()
    found = values[order]
    return np.lexsort((rows, -values)) if (found[1:] == found[:-1]).any() else order
