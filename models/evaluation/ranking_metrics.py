"""Quality of the top k of each group (a request, a user): NDCG.

Ties share their places: a tied row counts with the mean over all orders of its tie (McSherry and Najork, ECIR 2008), so
that the figure does not depend on the order of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.errors import DataError
from models.evaluation.metrics import checked, tie_starts


class _Sorted(NamedTuple):
    """Rows by group, best first. `shares` are the rows' mean discounts within their ties."""

    group: np.ndarray
    labels: np.ndarray
    shares: np.ndarray
    groups: int


def ndcg_at_k(labels: np.ndarray, scores: np.ndarray, groups: np.ndarray, k: int) -> float | None:
    """Mean over groups with a positive of DCG@k / ideal DCG@k; DCG@k = sum over places r <= k of y / log2(r + 1).

    Järvelin and Kekäläinen 2002. None when no group has a positive. Raises DataError for k < 1.
    """
    places = np.arange(1, _checked_k(k) + 1)
    total = np.concatenate(([0.0], np.cumsum(1.0 / np.log2(places + 1))))
    rows = _sorted(labels, scores, groups, total)
    positives = np.bincount(rows.group, weights=rows.labels, minlength=rows.groups).astype(np.int64)
    gained = np.bincount(rows.group, weights=rows.labels * rows.shares, minlength=rows.groups)
    return _mean_ratio(gained, total[np.minimum(positives, k)])


def _checked_k(k: int) -> int:
    if k < 1:
        raise DataError(f"k is {k}; a top list has at least 1 place")
    return k


def _mean_ratio(gained: np.ndarray, possible: np.ndarray) -> float | None:
    kept = possible > 0
    return float(np.mean(gained[kept] / possible[kept])) if kept.any() else None


def _sorted(labels: np.ndarray, scores: np.ndarray, groups: np.ndarray, total: np.ndarray) -> _Sorted:
    """`total[r]` is the discount of the first r places together; places beyond its end add nothing."""
    labels, scores = checked(labels, scores)
    names, group = np.unique(groups, return_inverse=True)
    order = np.lexsort((-scores, group))
    group, scores = group[order], scores[order]
    rows = np.bincount(group, minlength=len(names))
    starts = tie_starts(group, scores)
    sizes = np.diff(np.append(starts, len(scores)))
    before = starts - (np.cumsum(rows) - rows)[group[starts]]
    last = len(total) - 1
    share = (total[np.minimum(before + sizes, last)] - total[np.minimum(before, last)]) / sizes
    return _Sorted(group, labels[order], np.repeat(share, sizes), len(names))
