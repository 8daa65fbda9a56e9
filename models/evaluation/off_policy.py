"""What another policy would have earned, estimated from the log of the policy that ran.

    w_n = pi(a_n | x_n) / b(a_n | x_n)

    IPS     mean of w_n r_n                                 Horvitz and Thompson, 1952: unbiased
    SNIPS   sum of w_n r_n / sum of w_n                     Swaminathan and Joachims, 2015: a bias of order 1/N
    DR      mean of q(x_n, pi) + w_n (r_n - q(x_n, a_n))    Dudik et al., 2011: unbiased if b or q is right

pi is the policy in question, b the one that logged, a_n what it showed in context x_n, r_n what that earned. q(x, a) is
a model's guess of the reward, q(x, pi) = sum over a of pi(a | x) q(x, a); it must come from other rows than those it is
used on. Intervals are of 95%, from the spread of the terms summed by group (the rows of one request or user); for SNIPS
by the delta method. They are as wide as the weights are uneven (`effective_rows`), and too narrow where hardly any
row that pi might have shown earned something (`rewarded` below about 20). What the logging policy never shows cannot
be estimated: pi must not show it either.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from contracts.errors import DataError

Z = 1.959963984540054  # 97.5% point of the normal distribution
FEWEST_GROUPS = 2


@dataclass(frozen=True)
class Logged:
    """One entry per row [N]: `logging` and `target` are the probabilities with which b and pi show what was shown.

    `group` names rows that are not independent of each other; None: every row is. Raises DataError on probabilities
    that are none, or on a shown action that the logging policy never shows.
    """

    reward: np.ndarray
    logging: np.ndarray
    target: np.ndarray
    group: np.ndarray | None = None

    def __post_init__(self) -> None:
        shapes = {self.reward.shape, self.logging.shape, self.target.shape}
        if len(shapes) != 1 or self.reward.ndim != 1 or not len(self.reward):
            raise DataError(f"rewards and probabilities have shapes {sorted(shapes)}; all must be flat, equally long "
                            "and not empty")
        for name, values in (("logging", self.logging), ("target", self.target)):
            if not np.isfinite(values).all() or values.min() < 0 or values.max() > 1 + 1e-9:
                raise DataError(f"{name} probabilities span {values.min()} to {values.max()}; they must lie in [0, 1]")
        if not self.logging.all():
            raise DataError(f"{int((self.logging == 0).sum())} rows were shown with logging probability 0; such a row "
                            "cannot be: correct the propensities")

    @property
    def weights(self) -> np.ndarray:
        """[N] w_n."""
        return self.target / self.logging


class Estimate(NamedTuple):
    """`low` and `high` bound 95%; `effective_rows` = (sum of w)^2 / sum of w^2, the rows that the weights leave;
    `rewarded` rows have a weight and a reward."""

    value: float
    standard_error: float
    low: float
    high: float
    effective_rows: float
    rewarded: int


def ips(logged: Logged) -> Estimate:
    """Unbiased, and as uncertain as the weights are uneven."""
    terms = logged.weights * logged.reward
    return _estimate(float(terms.mean()), terms - terms.mean(), logged)


def snips(logged: Logged) -> Estimate:
    """Raises DataError where the policy shows nothing that was logged."""
    weights = logged.weights
    if not weights.any():
        raise DataError("the policy never shows what was logged: all its weights are 0; nothing can be estimated")
    value = float(weights @ logged.reward / weights.sum())
    return _estimate(value, weights * (logged.reward - value) / weights.mean(), logged)


def doubly_robust(logged: Logged, shown: np.ndarray, expected: np.ndarray) -> Estimate:
    """`shown` [N] is q(x, a) of what was shown, `expected` [N] is q(x, pi)."""
    if shown.shape != logged.reward.shape or expected.shape != logged.reward.shape:
        raise DataError(f"{len(logged.reward)} rows, but guesses of shapes {shown.shape} and {expected.shape}")
    terms = expected + logged.weights * (logged.reward - shown)
    return _estimate(float(terms.mean()), terms - terms.mean(), logged)


def _estimate(value: float, influence: np.ndarray, logged: Logged) -> Estimate:
    """`influence` [N] is what each row adds to N times the error of the value."""
    error = _standard_error(influence, logged.group)
    weights = logged.weights
    effective = float(weights.sum() ** 2 / (weights @ weights)) if weights.any() else 0.0
    rewarded = int(np.sum((weights > 0) & (logged.reward != 0)))
    return Estimate(value, error, value - Z * error, value + Z * error, effective, rewarded)


def _standard_error(influence: np.ndarray, group: np.ndarray | None) -> float:
    """Of the mean; rows of one group may move together. Raises DataError on fewer than FEWEST_GROUPS groups."""
    rows = len(influence)
    sums = influence if group is None else np.bincount(np.unique(group, return_inverse=True)[1], influence)
    count = len(sums)
    if count < FEWEST_GROUPS:
        raise DataError(f"an interval needs at least {FEWEST_GROUPS} independent groups of rows; there is {count}")
    return float(np.sqrt(np.square(sums).sum() * count / (count - 1)) / rows)
