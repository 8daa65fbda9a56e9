"""How much better one model ranks than another on the same rows: difference in GAUC, resampled by user.

    GAUC = sum over users u with both classes of n_u AUC_u / sum of n_u          n_u: the user's impressions

Whole users are drawn with replacement (the cluster bootstrap, Field and Welsh 2007); both models see the same draws,
and a user's two AUCs are computed once, since a draw only changes how often a user counts.
"""

from __future__ import annotations

import numpy as np

from contracts.errors import OneClassError
from models.evaluation.auc_bootstrap import Bootstrap
from models.evaluation.metrics import user_aucs


def gauc_difference(
    labels: np.ndarray, scores: np.ndarray, baseline: np.ndarray, users: np.ndarray, *, draws: int = 500, seed: int = 0
) -> Bootstrap:
    """GAUC of `scores` minus GAUC of `baseline`. Raises OneClassError with fewer than two users of both classes."""
    ours, rows = user_aucs(labels, scores, users)
    theirs, _ = user_aucs(labels, baseline, users)
    kept = ~np.isnan(ours)
    if kept.sum() < 2:
        raise OneClassError(f"{int(kept.sum())} of {len(rows)} users have rows of both classes, and at least 2 are "
                            "needed to compare rankings: widen the test window")
    gain, weight = (ours - theirs)[kept], rows[kept].astype(np.float64)
    generator, count = np.random.default_rng(seed), int(kept.sum())
    found = np.empty(draws)
    for draw in range(draws):
        times = np.bincount(generator.integers(count, size=count), minlength=count) * weight
        found[draw] = times @ gain / times.sum()
    low, high = np.quantile(found, (0.025, 0.975))
    return Bootstrap(float(np.average(gain, weights=weight)), float(np.std(found, ddof=1)), float(low), float(high))


def calibration_interval(
    labels: np.ndarray, probabilities: np.ndarray, users: np.ndarray, *, draws: int = 500, seed: int = 0
) -> Bootstrap:
    """Sum of predictions over sum of labels, users resampled in the same way; draws without a positive are left out.

    Raises OneClassError when no label is positive.
    """
    if not labels.any():
        raise OneClassError(f"none of {len(labels)} labels is positive; predictions cannot be held against them")
    _, user = np.unique(users, return_inverse=True)
    predicted, observed = np.bincount(user, weights=probabilities), np.bincount(user, weights=labels)
    generator, count, found = np.random.default_rng(seed), len(predicted), []
    for _ in range(draws):
        times = np.bincount(generator.integers(count, size=count), minlength=count)
        if times @ observed:
            found.append(times @ predicted / (times @ observed))
    low, high = np.quantile(found, (0.025, 0.975))
    value = float(predicted.sum() / observed.sum())
    return Bootstrap(value, float(np.std(found)), float(low), float(high))
