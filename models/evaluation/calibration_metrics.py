"""Do predicted probabilities come true? Expected calibration error, reliability bins, predicted over observed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.errors import DataError
from models.evaluation.metrics import checked

BINS = 20


class Reliability(NamedTuple):
    """One entry per bin, in order of probability."""

    predicted: np.ndarray
    observed: np.ndarray
    rows: np.ndarray


class Slice(NamedTuple):
    """`ratio` is None where nothing was observed."""

    ratio: float | None
    rows: int
    positives: int


def reliability(labels: np.ndarray, probabilities: np.ndarray, bins: int = BINS) -> Reliability:
    """Mean prediction and label rate of at most `bins` bins of equal mass; equal predictions share a bin.

    Raises DataError on no rows or on probabilities outside [0, 1].
    """
    labels, probabilities = _probabilities(labels, probabilities)
    edges = np.quantile(probabilities, np.arange(1, bins) / bins, method="inverted_cdf")
    _, place = np.unique(np.searchsorted(edges, probabilities, side="left"), return_inverse=True)
    rows = np.bincount(place)
    predicted, observed = np.bincount(place, weights=probabilities), np.bincount(place, weights=labels)
    return Reliability(predicted / rows, observed / rows, rows)


def ece(labels: np.ndarray, probabilities: np.ndarray, bins: int = BINS) -> float:
    """sum over bins b of rows_b / rows x |mean p_b - mean y_b| (Naeini et al. 2015), bins of equal mass."""
    curve = reliability(labels, probabilities, bins)
    return float(np.average(np.abs(curve.predicted - curve.observed), weights=curve.rows))


def predicted_over_observed(labels: np.ndarray, probabilities: np.ndarray) -> float | None:
    """sum p / sum y; 1 is right on average, above 1 promises too much. None without a positive."""
    labels, probabilities = _probabilities(labels, probabilities)
    return float(probabilities.sum() / labels.sum()) if labels.any() else None


def predicted_over_observed_by(labels: np.ndarray, probabilities: np.ndarray, slices: np.ndarray) -> dict[str, Slice]:
    """The same within each value of `slices`, keyed by that value as text."""
    labels, probabilities = _probabilities(labels, probabilities)
    names, place = np.unique(slices, return_inverse=True)
    predicted, observed = np.bincount(place, weights=probabilities), np.bincount(place, weights=labels)
    rows = np.bincount(place)
    return {
        str(name): Slice(float(predicted[i] / observed[i]) if observed[i] else None, int(rows[i]), int(observed[i]))
        for i, name in enumerate(names)
    }


def _probabilities(labels: np.ndarray, probabilities: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    labels, probabilities = checked(labels, probabilities)
    if len(labels) == 0:
        raise DataError("the calibration of no rows is undefined; check that the window holds examples")
    if (probabilities < 0).any() or (probabilities > 1).any():
        raise DataError(f"probabilities span [{probabilities.min()}, {probabilities.max()}]; they must lie in [0, 1]: "
                        "pass probabilities, not logits")
    return labels, probabilities
