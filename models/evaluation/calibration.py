"""Logits -> probabilities that come true: isotonic regression or Platt scaling, as one strictly increasing curve.

Both kinds are kept as knots of a curve from logit to calibrated log-odds: linear between knots, straight on with
`slope` beyond the ends. A curve that strictly increases never makes two candidates tie, so calibration leaves every
ranking as it was.

    platt      one knot: log-odds = a logit + b                             Platt 1999
    isotonic   pool adjacent violators over bins of at least 10 rows of     Zadrozny and Elkan 2002
               each class; knots are the blocks' mean logits and log-odds;
               slope 1 beyond them; one common shift makes the mean
               prediction equal the label rate
    identity   log-odds = logit + ln(w), what undoes keeping a share w of the negatives in training

Of a log of positives alone, each negative stands for 1 / draws of its like, so that the curve speaks of all items.

Probabilities lie in [SMALLEST, 1 - SMALLEST].
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from contracts.errors import DataError
from models.evaluation.metrics import checked, require_both_classes

SMALLEST = 1e-7
LIMIT = math.log((1 - SMALLEST) / SMALLEST)  # of log-odds
ROWS_OF_EACH_CLASS = 10


@dataclass(frozen=True, eq=False)
class Calibration:
    """`logits` (strictly increasing) and `log_odds` (non-decreasing) are the knots, `slope` > 0."""

    logits: np.ndarray
    log_odds: np.ndarray
    slope: float

    def __post_init__(self) -> None:
        rising = len(self.logits) > 0 and (np.diff(self.logits) > 0).all() and (np.diff(self.log_odds) >= 0).all()
        if self.logits.shape != self.log_odds.shape or not rising or not self.slope > 0:
            raise DataError(f"a calibration of {self.logits.size} knots and slope {self.slope} does not increase; "
                            "fit it again with `sluice train`")

    def apply(self, logits: np.ndarray, log_draws: np.ndarray | float | None = None) -> np.ndarray:
        """Probabilities, float64, of the same shape; with `log_draws`, those among rows drawn for positives."""
        log_odds = self._curve(np.asarray(logits, dtype=np.float64))
        return _sigmoid(log_odds if log_draws is None else log_odds - log_draws)

    def _curve(self, logits: np.ndarray) -> np.ndarray:
        if len(self.logits) == 1:
            return self.log_odds[0] + self.slope * (logits - self.logits[0])
        beyond = logits - np.minimum(np.maximum(logits, self.logits[0]), self.logits[-1])
        return np.interp(logits, self.logits, self.log_odds) + self.slope * beyond

    def undrawn(self, log_draws: float) -> Calibration:
        """Of a network that learned from rows drawn for positives, every item alike: log odds among all items."""
        return Calibration(self.logits, self.log_odds + log_draws, self.slope)

    def arrays(self) -> dict[str, np.ndarray]:
        """What `from_arrays` reads back; stored as calibration.safetensors."""
        return {"logits": self.logits, "log_odds": self.log_odds, "slope": np.array([self.slope])}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Calibration:
        """Raises DataError when an array is missing or the curve does not increase."""
        missing = {"logits", "log_odds", "slope"} - arrays.keys()
        if missing:
            raise DataError(f"a stored calibration has no array {sorted(missing)[0]!r}; fit it with `sluice train`")
        return cls(np.asarray(arrays["logits"]), np.asarray(arrays["log_odds"]), float(arrays["slope"][0]))


def identity(negative_rate: float = 1.0) -> Calibration:
    """The network's own probabilities, with a share `negative_rate` of the negatives kept in training undone."""
    return Calibration(np.zeros(1), np.array([math.log(negative_rate)]), 1.0)


def fit(
    kind: Literal["isotonic", "platt"], logits: np.ndarray, labels: np.ndarray, log_draws: np.ndarray | None = None
) -> Calibration:
    """`log_draws`: of rows drawn for positives, of which a negative stands for 1 / draws of its like.

    Raises OneClassError on labels of one class; for platt also DataError when the logits rank backwards.
    """
    labels, logits = checked(labels, logits)
    require_both_classes(labels, "calibration")
    weights = np.ones(len(labels)) if log_draws is None else np.where(labels > 0, 1.0, np.exp(-log_draws))
    return _platt(logits, labels, weights) if kind == "platt" else _isotonic(logits, labels, weights)


def _platt(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Calibration:
    """Targets are smoothed as Platt did: (P + 1) / (P + 2) and 1 / (N + 2), so that separable data have an answer."""
    from sklearn.linear_model import LogisticRegression

    positives, centre, spread = labels.sum(), logits.mean(), logits.std() or 1.0
    target = np.where(labels == 1, (positives + 1) / (positives + 2), 1 / (weights[labels == 0].sum() + 2))
    scaled = np.concatenate([logits, logits])[:, None]
    model = LogisticRegression(C=1e6).fit(
        (scaled - centre) / spread, np.repeat([1, 0], len(labels)),
        sample_weight=np.concatenate([weights * target, weights * (1 - target)]),
    )
    slope = float(model.coef_[0, 0]) / spread
    if slope <= 0:
        raise DataError(f"Platt scaling found slope {slope:.3g}: higher logits click less in the calibration rows; "
                        "train longer, or use train.calibration = 'isotonic'")
    return Calibration(np.array([centre]), np.array([float(model.intercept_[0])]), slope)


def _isotonic(logits: np.ndarray, labels: np.ndarray, weights: np.ndarray) -> Calibration:
    from sklearn.isotonic import isotonic_regression

    order = np.argsort(logits, kind="stable")
    logits, labels, weights = logits[order], labels[order], weights[order]
    starts = _bins(logits, labels)
    rows = np.add.reduceat(weights, starts)
    rate = isotonic_regression(np.add.reduceat(labels * weights, starts) / rows, sample_weight=rows)
    _, block = np.unique(rate, return_inverse=True)
    centres = np.bincount(block, weights=np.add.reduceat(logits * weights, starts)) / np.bincount(block, weights=rows)
    rate = np.bincount(block, weights=rate * rows) / np.bincount(block, weights=rows)
    curve = Calibration(centres, np.log(rate) - np.log1p(-rate), 1.0)
    return Calibration(centres, curve.log_odds + _shift(curve._curve(logits), weights, labels @ weights), 1.0)


def _bins(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Starts of the finest runs of sorted rows that hold ROWS_OF_EACH_CLASS of each class; equal logits stay together.

    The last run takes what is left. With fewer rows of a class there is one run.
    """
    ends = np.append(np.flatnonzero(np.diff(logits)) + 1, len(logits))
    ones = np.cumsum(labels)[ends - 1]
    zeros = ends - ones
    starts, ones_before, zeros_before = [0], 0.0, 0.0
    while True:
        last = max(np.searchsorted(ones, ones_before + ROWS_OF_EACH_CLASS),
                   np.searchsorted(zeros, zeros_before + ROWS_OF_EACH_CLASS))
        if last == len(ends):
            return np.array(starts[:-1] or [0])
        starts.append(int(ends[last]))
        ones_before, zeros_before = ones[last], zeros[last]


def _shift(log_odds: np.ndarray, weights: np.ndarray, positives: float) -> float:
    """b with sum(weights sigmoid(log_odds + b)) = positives, by bisection."""
    low, high = -20.0, 20.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if _sigmoid(log_odds + middle) @ weights < positives else (low, middle)
    return (low + high) / 2


def _sigmoid(log_odds: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-np.minimum(np.maximum(log_odds, -LIMIT), LIMIT)))
