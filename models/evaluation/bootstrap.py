"""How certain a figure is: whole users are drawn with replacement and the figure is computed again (95% intervals).

Rows of one user are not independent, so users are the unit (Field and Welsh 2007, the cluster bootstrap). Where models
differ by what they hold of items, rows of one item are not independent either: users and items are then both drawn, and
a row counts as often as its user times its item (Owen 2007, the pigeonhole bootstrap, which errs towards wide). Both
models of a difference see the same draws, which removes what they have in common.

    AUC            of all rows together, or of those of each group, or the difference of two models' AUCs
    GAUC           sum over users u with both classes of n_u AUC_u / sum of n_u,   n_u: the user's impressions
    calibration    sum of predicted / sum of observed clicks
    mean           of any figure of a row
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from contracts.errors import DataError, OneClassError
from models.evaluation.metrics import auc, checked, tie_starts, user_aucs

DRAWS = 200


class Bootstrap(NamedTuple):
    """`value` on the rows as they are; `low` and `high` are the 2.5% and 97.5% points of the resampled value."""

    value: float
    standard_error: float
    low: float
    high: float


def auc_bootstrap(
    labels: np.ndarray, scores: np.ndarray, users: np.ndarray, *, baseline: np.ndarray | None = None,
    items: np.ndarray | None = None, within: np.ndarray | None = None, draws: int = DRAWS, seed: int = 0,
) -> Bootstrap:
    """AUC of `scores`, minus AUC of `baseline` where one is given, or of rows `within` the same group [N] alone.
    `items` [N] are drawn as well where they are given.

    Draws that hold one class are left out. Raises OneClassError as `auc` does, DataError when fewer than 2 users or
    fewer than 2 usable draws remain.
    """
    compared = [scores] if baseline is None else [scores, baseline]
    exact = [auc_within(labels, each, within) for each in compared]
    curves = [SortedRows(labels, each, within) for each in compared]
    drawn = [np.unique(units, return_inverse=True) for units in (users, items) if units is not None]
    if len(drawn[0][0]) < 2:
        raise DataError(f"the bootstrap resamples users and found {len(drawn[0][0])}; at least 2 are needed")
    generator = np.random.default_rng(seed)
    resampled = []
    for _ in range(draws):
        weight = np.ones(len(labels))
        for names, unit in drawn:
            weight *= _times_drawn(generator, len(names))[unit]
        values = [curve.auc(weight) for curve in curves]
        if None not in values:
            resampled.append(_difference([value for value in values if value is not None]))
    if len(resampled) < 2:
        raise DataError(f"only {len(resampled)} of {draws} bootstrap draws hold both classes; more positives are "
                        "needed")
    return _bootstrap(_difference(exact), resampled)


def gauc_difference(
    labels: np.ndarray, scores: np.ndarray, baseline: np.ndarray, users: np.ndarray, *, draws: int = 500, seed: int = 0
) -> Bootstrap:
    """GAUC of `scores` minus GAUC of `baseline`. Raises OneClassError with fewer than two users of both classes.

    A user's two AUCs are computed once, since a draw only changes how often a user counts.
    """
    ours, rows = user_aucs(labels, scores, users)
    theirs, _ = user_aucs(labels, baseline, users)
    kept = ~np.isnan(ours)
    if kept.sum() < 2:
        raise OneClassError(f"{int(kept.sum())} of {len(rows)} users have rows of both classes, and at least 2 are "
                            "needed to compare rankings: widen the window")
    gain, weight = (ours - theirs)[kept], rows[kept].astype(np.float64)
    generator, count = np.random.default_rng(seed), int(kept.sum())
    resampled = []
    for _ in range(draws):
        times = _times_drawn(generator, count) * weight
        resampled.append(float(times @ gain / times.sum()))
    return _bootstrap(float(np.average(gain, weights=weight)), resampled)


def mean_bootstrap(values: np.ndarray, users: np.ndarray, *, draws: int = DRAWS, seed: int = 0) -> Bootstrap:
    """The mean of values [N]. Raises DataError when there are fewer than 2 users."""
    _, user = np.unique(users, return_inverse=True)
    totals, rows = np.bincount(user, weights=values), np.bincount(user)
    if len(rows) < 2:
        raise DataError(f"the bootstrap resamples users and found {len(rows)}; at least 2 are needed")
    generator = np.random.default_rng(seed)
    drawn = (_times_drawn(generator, len(rows)) for _ in range(draws))
    return _bootstrap(float(values.mean()), [float(times @ totals / (times @ rows)) for times in drawn])


def calibration_interval(
    labels: np.ndarray, probabilities: np.ndarray, users: np.ndarray, *, draws: int = 500, seed: int = 0
) -> Bootstrap:
    """Sum of predictions over sum of labels; draws without a positive are left out.

    Raises OneClassError when no label is positive.
    """
    if not labels.any():
        raise OneClassError(f"none of {len(labels)} labels is positive; predictions cannot be held against them")
    _, user = np.unique(users, return_inverse=True)
    predicted, observed = np.bincount(user, weights=probabilities), np.bincount(user, weights=labels)
    generator = np.random.default_rng(seed)
    resampled = []
    for _ in range(draws):
        times = _times_drawn(generator, len(predicted))
        if times @ observed:
            resampled.append(float(times @ predicted / (times @ observed)))
    return _bootstrap(float(predicted.sum() / observed.sum()), resampled, lost_degrees=0)


def _times_drawn(generator: np.random.Generator, users: int) -> np.ndarray:
    """[users] how often each is drawn when as many are drawn with replacement."""
    return np.bincount(generator.integers(users, size=users), minlength=users)


def _bootstrap(value: float, resampled: Sequence[float], lost_degrees: int = 1) -> Bootstrap:
    low, high = np.quantile(resampled, (0.025, 0.975))
    return Bootstrap(value, float(np.std(resampled, ddof=lost_degrees)), float(low), float(high))


def _difference(values: list[float]) -> float:
    return values[0] if len(values) == 1 else values[0] - values[1]


def auc_within(labels: np.ndarray, scores: np.ndarray, within: np.ndarray | None) -> float:
    """AUC of rows of the same group [N] alone, of all without groups. Raises OneClassError as `auc` does, and where no
    group has both classes."""
    if within is None:
        return auc(labels, scores)
    found = SortedRows(labels, scores, within).auc(np.ones(len(labels)))
    if found is None:
        raise OneClassError("no group of rows has both classes, and AUC compares the two; widen the window")
    return found


def of_each_class(labels: np.ndarray, most: int) -> np.ndarray:
    """Rows in file order: all, or at most so many, every m-th positive (half of them at most) and every n-th negative.
    An AUC's expectation does not depend on how many there are of each, its error on the rarer ones."""
    if len(labels) <= most:
        return np.arange(len(labels))
    positives = _every_nth(np.flatnonzero(labels > 0), most // 2)
    negatives = _every_nth(np.flatnonzero(labels <= 0), most - len(positives))
    return np.sort(np.concatenate([positives, negatives]))


def _every_nth(rows: np.ndarray, most: int) -> np.ndarray:
    return rows[:: max(-(-len(rows) // most), 1)]


class SortedRows:
    """Rows sorted once, so that the AUC under other row weights needs no further sort. With groups `within` [N] only
    rows of one group are compared."""

    def __init__(self, labels: np.ndarray, scores: np.ndarray, within: np.ndarray | None = None) -> None:
        labels, scores = checked(labels, scores)
        groups = np.zeros(len(labels), dtype=np.int8) if within is None else within
        self.order = np.argsort(scores) if within is None else np.lexsort((scores, groups))
        self.labels = labels[self.order]
        self.starts = tie_starts(scores[self.order], groups[self.order])
        self.groups = tie_starts(groups[self.order][self.starts])  # the first tie of each

    def auc(self, weight: np.ndarray) -> float | None:
        """Sum over ties t of P_t (N below t + N_t / 2), over P N, with weighted counts; both sums over the groups. None
        where no group has both classes."""
        weight = weight[self.order]
        positives = np.add.reduceat(weight * self.labels, self.starts)
        negatives = np.add.reduceat(weight * (1 - self.labels), self.starts)
        pairs = np.add.reduceat(positives, self.groups) @ np.add.reduceat(negatives, self.groups)
        if pairs == 0:
            return None
        below = np.cumsum(negatives) - negatives
        below -= np.repeat(below[self.groups], np.diff(np.append(self.groups, len(below))))
        return float((positives * (below + negatives / 2)).sum() / pairs)
