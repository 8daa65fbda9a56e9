"""Standard error of an AUC, or of the difference of two AUCs on the same rows, by resampling users.

Rows of one user are not independent, so whole users are drawn with replacement (Field and Welsh 2007, the cluster
bootstrap). Both models of a difference see the same draws, which removes what they have in common.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.errors import DataError
from models.evaluation.metrics import auc, checked, tie_starts

DRAWS = 200


class Bootstrap(NamedTuple):
    """`low` and `high` are the 2.5% and 97.5% points of the resampled value."""

    value: float
    standard_error: float
    low: float
    high: float


def bootstrap(
    labels: np.ndarray, scores: np.ndarray, users: np.ndarray, *, baseline: np.ndarray | None = None,
    draws: int = DRAWS, seed: int = 0,
) -> Bootstrap:
    """AUC of `scores`, minus AUC of `baseline` where one is given.

    Draws that hold one class are left out. Raises OneClassError as `auc` does, DataError when fewer than 2 users or
    fewer than 2 usable draws remain.
    """
    rivals = [scores] if baseline is None else [scores, baseline]
    exact = [auc(labels, rival) for rival in rivals]
    curves = [_SortedRows(labels, rival) for rival in rivals]
    names, user = np.unique(users, return_inverse=True)
    if len(names) < 2:
        raise DataError(f"the bootstrap resamples users and found {len(names)}; at least 2 are needed")
    generator = np.random.default_rng(seed)
    found = []
    for _ in range(draws):
        weight = np.bincount(generator.integers(len(names), size=len(names)), minlength=len(names))[user].astype(float)
        values = [curve.auc(weight) for curve in curves]
        if None not in values:
            found.append(_difference([value for value in values if value is not None]))
    if len(found) < 2:
        raise DataError(f"only {len(found)} of {draws} bootstrap draws hold both classes; more positives are needed")
    low, high = np.quantile(found, (0.025, 0.975))
    return Bootstrap(_difference(exact), float(np.std(found, ddof=1)), float(low), float(high))


def _difference(values: list[float]) -> float:
    return values[0] if len(values) == 1 else values[0] - values[1]


class _SortedRows:
    """Rows sorted once, so that the AUC under other row weights needs no further sort."""

    def __init__(self, labels: np.ndarray, scores: np.ndarray) -> None:
        labels, scores = checked(labels, scores)
        self.order = np.argsort(scores)
        self.labels = labels[self.order]
        self.starts = tie_starts(scores[self.order])

    def auc(self, weight: np.ndarray) -> float | None:
        """sum over ties g of P_g (N below g + N_g / 2), over P N, with weighted counts; None for one class."""
        weight = weight[self.order]
        positives = np.add.reduceat(weight * self.labels, self.starts)
        negatives = np.add.reduceat(weight * (1 - self.labels), self.starts)
        pairs = positives.sum() * negatives.sum()
        if pairs == 0:
            return None
        below = np.cumsum(negatives) - negatives
        return float((positives * (below + negatives / 2)).sum() / pairs)
