"""What a cross adds to a model that lacks it: the log loss it takes off rows it was not fitted on.

The base is a logistic regression on all single columns. A cross gets one weight per code, fitted on the residual of the
fit rows by Newton steps with a ridge penalty, and is evaluated on the holdout:

    g = y - p, h = p (1 - p)      w_code <- w_code + (sum g - ridge w_code) / (sum h + ridge)
    gain = loss(z) - loss(z + w)  in nats, summed over the rows of the holdout

Rows of one user stand or fall together. A cross that names users (an area and the weekday on which its one user came)
wins and loses by whole users, by tens of nats either way, so that the best of hundreds always gains. In a log with
users a gain counts where it is more than CERTAIN standard errors, sqrt(sum over users of (a user's gain)^2), which no
gain is with fewer than five users in the holdout: what so few have in common says nothing of others, and no cross is
kept.

One pass of counting per cross, so that hundreds take seconds. Selection is greedy in increasing order of the
crosses: pairs on the base, then triples on what the pairs leave, so that a triple has to say more than its pairs; a
longer cross is looked at only where it extends one that was kept. Gains are kept and recomputed only when a cross comes
to the top (lazily), for they mostly shrink.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from contracts.progress import counted
from models.cross_search import ridge_logistic
from models.cross_search.columns import CrossColumns
from models.cross_search.derivation import Cross
from models.cross_search.ridge_logistic import Column

RIDGES = (5.0, 20.0)
BASE_RIDGE = 5.0
NEWTON_STEPS = 3
CERTAIN = 2.0


@dataclass(frozen=True)
class Fold:
    """`fit` and `holdout` are rows of the columns: slices where they lie together, which saves copies."""

    fit: slice | np.ndarray
    holdout: slice | np.ndarray


@dataclass(frozen=True)
class Selected:
    """gain in nats on the holdout given the crosses selected before; support = codes with enough rows."""

    cross: Cross
    gain: float
    ridge: float
    support: int


def folds_of(holdout: np.ndarray | None, rows: int, seed: int, count: int = 3) -> list[Fold]:
    """One fold where `holdout` [N] bool is given (a split in time), else `count` random folds."""
    if holdout is not None:
        return [Fold(_together(np.flatnonzero(~holdout)), _together(np.flatnonzero(holdout)))]
    part = np.random.default_rng(seed).permutation(rows) % count
    return [Fold(np.flatnonzero(part != k), np.flatnonzero(part == k)) for k in range(count)]


def _together(rows: np.ndarray) -> slice | np.ndarray:
    lies_together = len(rows) and rows[-1] - rows[0] + 1 == len(rows)
    return slice(int(rows[0]), int(rows[-1]) + 1) if lies_together else rows


class GainEstimator:
    """Keeps, per fold, the logits of all rows under the base and the crosses accepted so far."""

    def __init__(self, columns: CrossColumns, folds: Sequence[Fold]) -> None:
        self.columns, self.folds = columns, folds
        self.logits = [base_logits(columns, fold.fit) for fold in folds]
        self._slopes = [slopes(logits, columns.label) for logits in self.logits]
        self._users = None if columns.user is None else np.unique(columns.user, return_inverse=True)[1]

    def estimate(self, cross: Cross) -> tuple[float, float]:
        """(gain to second order around the present logits, the ridge that gives it): four counts a fold. The gain is 0
        where it is no more than chance gives."""
        codes, size = self.columns.codes(sorted(cross))
        totals = np.zeros(len(RIDGES))
        for fold, (slope, curvature) in zip(self.folds, self._slopes, strict=True):
            sums = [np.bincount(codes[rows], values[rows], size) for rows in (fold.fit, fold.holdout)
                    for values in (slope, curvature)]
            for index, ridge in enumerate(RIDGES):
                weights = sums[0] / (sums[1] + ridge)
                totals[index] += weights @ sums[2] - 0.5 * np.square(weights) @ sums[3]
        best = int(totals.argmax())
        gain, ridge = float(totals[best]), RIDGES[best]
        return gain if gain > CERTAIN * self._chance(codes, size, gain, ridge) else 0.0, ridge

    def _chance(self, codes: np.ndarray, size: int, gain: float, ridge: float) -> float:
        """The standard error over users of an estimated gain; 0 without users."""
        if self._users is None or gain <= 0.0:
            return 0.0
        of_rows = np.zeros(self.columns.rows)
        for fold, (slope, curvature) in zip(self.folds, self._slopes, strict=True):
            pull, stiffness = (np.bincount(codes[fold.fit], values[fold.fit], size) for values in (slope, curvature))
            weights = (pull / (stiffness + ridge))[codes[fold.holdout]]
            of_rows[fold.holdout] = weights * (slope[fold.holdout] - 0.5 * weights * curvature[fold.holdout])
        return float(np.sqrt(np.square(np.bincount(self._users, of_rows)).sum()))

    def accept(self, cross: Cross, ridge: float) -> float:
        """Adds the cross to the logits; returns its gain on the holdout."""
        codes, size = self.columns.codes(sorted(cross))
        gain = 0.0
        for index, (fold, logits) in enumerate(zip(self.folds, self.logits, strict=True)):
            after = logits + self._newton(codes, size, fold.fit, logits, ridge)[codes]
            label = self.columns.label[fold.holdout]
            gain += log_loss(logits[fold.holdout], label) - log_loss(after[fold.holdout], label)
            self.logits[index], self._slopes[index] = after, slopes(after, self.columns.label)
        return gain

    def _newton(
        self, codes: np.ndarray, size: int, fit: slice | np.ndarray, logits: np.ndarray, ridge: float
    ) -> np.ndarray:
        kept, start, label = codes[fit], logits[fit], self.columns.label[fit]
        weights = np.zeros(size)
        for _ in range(NEWTON_STEPS):
            slope, curvature = slopes(start + weights[kept], label)
            pull = np.bincount(kept, slope, size) - ridge * weights
            weights += pull / (np.bincount(kept, curvature, size) + ridge)
        return weights

    def support(self, cross: Cross, min_count: int) -> int:
        """Codes with at least `min_count` rows."""
        codes, size = self.columns.codes(sorted(cross))
        return int((np.bincount(codes, minlength=size) >= min_count).sum())


def base_logits(columns: CrossColumns, fit: slice | np.ndarray) -> np.ndarray:
    """Logits [N] of a logistic regression on all single columns and the position, fitted on the rows `fit`."""
    singles = [columns.codes([place]) for place in range(len(columns.slots))]
    singles.append((columns.position, int(columns.position.max()) + 1))
    model = ridge_logistic.fit([Column(codes[fit], size, BASE_RIDGE) for codes, size in singles], columns.label[fit])
    return model.logits([codes for codes, _ in singles])


def select(
    estimator: GainEstimator, proposals: Iterable[Cross], *, budget: int, max_keys: int, min_count: int,
    min_gain: float, limit: int | None = None,
) -> list[Selected]:
    """The crosses kept, largest gain first; one per set of configured fields, whatever their granularities.

    `proposals` come in the order of their importance; of each order the first `limit` are looked at. What gains nothing
    is not kept, whatever `min_gain`.
    """
    chosen: list[Selected] = []
    taken: set[frozenset[str]] = set()
    by_order: dict[int, list[Cross]] = {}
    for cross in proposals:
        by_order.setdefault(len(cross), []).append(cross)
    for order in sorted(by_order):
        shorter = [selected.cross for selected in chosen if len(selected.cross) == order - 1]
        crosses = [c for c in by_order[order] if order == 2 or any(kept < c for kept in shorter)]
        chosen += _select_order(estimator, crosses[:limit], budget, min_count, min_gain, taken)
    return _within(sorted(chosen, key=lambda selected: -selected.gain), budget, max_keys)


def _select_order(
    estimator: GainEstimator, crosses: Sequence[Cross], budget: int, min_count: int, min_gain: float,
    taken: set[frozenset[str]],
) -> list[Selected]:
    heap = [(-gain, sorted(cross), ridge, 0) for cross in counted("gains of crosses", crosses)
            for gain, ridge in [estimator.estimate(cross)]]
    heapq.heapify(heap)
    chosen: list[Selected] = []
    while heap and len(chosen) < budget and -heap[0][0] >= min_gain and heap[0][0] < 0.0:
        _, members, ridge, age = heapq.heappop(heap)
        cross = frozenset(members)
        fields = frozenset(estimator.columns.slots[place].field for place in cross)
        if fields in taken:
            continue
        if age < len(chosen):
            gain, ridge = estimator.estimate(cross)
            heapq.heappush(heap, (-gain, members, ridge, len(chosen)))
            continue
        taken.add(fields)
        chosen.append(Selected(cross, estimator.accept(cross, ridge), ridge, estimator.support(cross, min_count)))
    return chosen


def _within(chosen: Sequence[Selected], budget: int, max_keys: int) -> list[Selected]:
    """Leaves out what would pass `max_keys`, and what comes after the budget."""
    kept: list[Selected] = []
    for selected in chosen:
        if len(kept) < budget and sum(other.support for other in kept) + selected.support <= max_keys:
            kept.append(selected)
    return kept


def slopes(logits: np.ndarray, label: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivative, without its sign, of the log likelihood by the logit: y - p and p (1 - p)."""
    probability = 1.0 / (1.0 + np.exp(-logits))
    return label - probability, probability * (1.0 - probability)


def log_loss(logits: np.ndarray, label: np.ndarray) -> float:
    """Sum over rows, in nats."""
    return float(np.sum(np.logaddexp(0.0, logits) - label * logits))
