"""Sums of weights per group up to a moment, from one sort of (group, moment)."""

from __future__ import annotations

import numpy as np


class PrefixSums:
    """Of rows with `group` and `moments`, for queries of `asked_group` at `asked`; all int64, groups from 0 on."""

    def __init__(
        self, group: np.ndarray, moments: np.ndarray, asked_group: np.ndarray, asked: np.ndarray
    ) -> None:
        codes, first, last = group_codes(group, moments, asked_group, asked)
        self._order = np.argsort(codes)
        ordered = codes[self._order]
        self._begin, self._end = np.searchsorted(ordered, first, "left"), np.searchsorted(ordered, last, "right")

    def of(self, weights: np.ndarray) -> np.ndarray:
        """int64 [queries]: sum of the weights of the query's own group whose moment is at or before the one asked."""
        running = np.concatenate([[0], np.cumsum(weights[self._order], dtype=np.int64)])
        return np.asarray(running[self._end] - running[self._begin])


def group_codes(
    group: np.ndarray, moments: np.ndarray, asked_group: np.ndarray, asked: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """int64 codes that order by (group, moment): of the rows, of the start of each query's group, of each query.

    Moments become their ranks where group x span would not fit.
    """
    if len(moments) == 0 or len(asked) == 0:
        return np.zeros(len(moments), np.int64), np.zeros(len(asked), np.int64), np.zeros(len(asked), np.int64)
    low, high = min(moments.min(), asked.min()), max(moments.max(), asked.max())
    groups = int(max(group.max(), asked_group.max())) + 1
    if groups * (int(high) - int(low) + 2) >= 2**62:
        known = np.unique(np.concatenate([moments, asked]))
        moments, asked = np.searchsorted(known, moments), np.searchsorted(known, asked)
        low, high = 0, len(known)
    span = int(high) - int(low) + 2
    return group * span + (moments - low), asked_group * span, asked_group * span + (asked - low)
