"""What a column says of the label on held-out rows, as a category and as a quantity, in nats of log loss."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

FOLDS, SMOOTHING, BINS, SHUFFLES = 3, (5.0, 50.0), (10, 100), 7
TELLING = 4.0  # nats that are no chance


@dataclass(frozen=True)
class Said:
    """Gains over the base rate, summed over `rows` held-out rows.

    category  a smoothed rate per value
    quantity  a smoothed rate per quantile bin, the better of BINS
    order     what few bins gain beyond the best of SHUFFLES bins over values in random order: above 0 only where
              neighbours behave alike, which neighbours in a list of codes do not
    """

    category: float
    quantity: float
    order: float
    rows: int

    @property
    def as_category(self) -> bool:
        return self.category > self.quantity + TELLING

    @property
    def as_quantity(self) -> bool:
        return self.quantity > self.category + TELLING

    @property
    def ordered(self) -> bool:
        return self.order > TELLING


def said_of(values: Sequence[float], label: Sequence[bool], seed: int = 7919) -> Said:
    """Of rows whose value is known."""
    random = np.random.default_rng(seed)
    truth, fold = np.asarray(label, dtype=float), random.integers(0, FOLDS, len(label))
    distinct, place = np.unique(np.asarray(values, dtype=float), return_inverse=True)
    gain = _Gain(truth, fold)
    coarse = int(np.clip(len(distinct) // 3, 3, 12))
    shuffled = [gain(_bins(random.permutation(len(distinct))[place], coarse)) for _ in range(SHUFFLES)]
    return Said(
        category=gain(place), quantity=max(gain(_bins(place, bins)) for bins in BINS),
        order=gain(_bins(place, coarse)) - max(shuffled), rows=len(truth),
    )


def _bins(place: np.ndarray, count: int) -> np.ndarray:
    """Equally full bins of values known by their rank; equal values share one."""
    edges = np.unique(np.quantile(place, np.linspace(0, 1, count + 1)[1:-1], method="lower"))
    return np.searchsorted(edges, place, side="right")


class _Gain:
    """Log loss that the rates of groups take off the base rate's, each row's rate from the other folds."""

    def __init__(self, truth: np.ndarray, fold: np.ndarray) -> None:
        self._truth, self._fold, self._base = truth, fold, float(np.clip(truth.mean(), 1e-6, 1 - 1e-6))

    def __call__(self, groups: np.ndarray) -> float:
        return max(self._smoothed(groups, strength) for strength in SMOOTHING)

    def _smoothed(self, groups: np.ndarray, strength: float) -> float:
        size = int(groups.max()) + 1
        gained = 0.0
        for fold in range(FOLDS):
            held = self._fold == fold
            shown = np.bincount(groups[~held], minlength=size)
            positive = np.bincount(groups[~held], self._truth[~held], minlength=size)
            rate = ((positive + strength * self._base) / (shown + strength))[groups[held]]
            truth = self._truth[held]
            gained += float(np.sum(truth * np.log(rate / self._base)
                                   + (1 - truth) * np.log((1 - rate) / (1 - self._base))))
        return gained
