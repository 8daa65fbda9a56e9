"""How well logits rank clicks, and how surprised the labels are by the probabilities.

All functions take flat arrays of equal length; labels are 0 or 1. Ties count half, so that no figure depends on the
order of the rows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from contracts.errors import DataError, OneClassError


class Gauc(NamedTuple):
    """`value` is None when no user has both classes."""

    value: float | None
    users: int
    skipped: int


def checked(labels: np.ndarray, scores: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Labels as float64 0/1 and finite scores as float64. Raises DataError on anything else."""
    labels, scores = np.asarray(labels, dtype=np.float64), np.asarray(scores, dtype=np.float64)
    if labels.shape != scores.shape or labels.ndim != 1:
        raise DataError(f"labels have shape {labels.shape}, scores {scores.shape}; both must be flat and equally long")
    if not np.isin(labels, (0.0, 1.0)).all():
        raise DataError(f"a label is {labels[~np.isin(labels, (0.0, 1.0))][0]}; labels must be 0 or 1")
    if not np.isfinite(scores).all():
        raise DataError(f"{int((~np.isfinite(scores)).sum())} of {len(scores)} scores are not finite; the model "
                        "diverged: lower train.learning_rate or train.clip_norm")
    return labels, scores


def require_both_classes(labels: np.ndarray, where: str) -> None:
    """Raises OneClassError with the counts when `labels` are all 0, all 1, or none."""
    rows, positives = len(labels), int(np.sum(labels))
    if positives in (0, rows):
        raise OneClassError(f"{where}: {positives} of {rows} labels are positive; at least one of each class is "
                            "needed: widen the window or check the label")


def tie_starts(*keys: np.ndarray) -> np.ndarray:
    """Indices at which runs of equal rows start, in arrays sorted by `keys`."""
    rows = len(keys[0])
    changed = np.zeros(rows, dtype=bool)
    changed[:1] = True
    for key in keys:
        changed[1:] |= key[1:] != key[:-1]
    return np.flatnonzero(changed)


def auc(labels: np.ndarray, scores: np.ndarray) -> float:
    """P(score of a positive > score of a negative) + P(equal) / 2 = (R - P(P + 1) / 2) / (P N), Mann and Whitney 1947.

    R is the sum of the positives' ranks (ties share their mean rank), P and N count the classes.
    Raises OneClassError when one of them is 0.
    """
    labels, scores = checked(labels, scores)
    require_both_classes(labels, "AUC")
    order = np.argsort(scores)
    value, _ = _group_aucs(np.zeros(len(order), dtype=np.int64), scores[order], labels[order], 1)
    return float(value[0])


def gauc(labels: np.ndarray, scores: np.ndarray, users: np.ndarray) -> Gauc:
    """AUC per user, averaged with the user's impressions as weights, over users that have both classes."""
    values, rows = user_aucs(labels, scores, users)
    kept = ~np.isnan(values)
    value = float(np.average(values[kept], weights=rows[kept])) if kept.any() else None
    return Gauc(value, int(kept.sum()), int((~kept).sum()))


def user_aucs(labels: np.ndarray, scores: np.ndarray, users: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(AUC, rows) of each user in the order of `np.unique`; NaN marks a user of one class."""
    labels, scores = checked(labels, scores)
    names, user = np.unique(users, return_inverse=True)
    order = np.lexsort((scores, user))
    return _group_aucs(user[order], scores[order], labels[order], len(names))


def _group_aucs(
    group: np.ndarray, scores: np.ndarray, labels: np.ndarray, groups: int
) -> tuple[np.ndarray, np.ndarray]:
    """(AUC, rows) of each group, of rows sorted by group and score; NaN marks a group of one class."""
    rows = np.bincount(group, minlength=groups)
    first = np.cumsum(rows) - rows
    starts = tie_starts(group, scores)
    sizes = np.diff(np.append(starts, len(scores)))
    rank = np.repeat(starts + (sizes + 1) / 2, sizes) - first[group]
    positives = np.bincount(group, weights=labels, minlength=groups)
    sums = np.bincount(group, weights=labels * rank, minlength=groups)
    pairs = positives * (rows - positives)
    above = sums - positives * (positives + 1) / 2
    return np.divide(above, pairs, out=np.full(groups, np.nan), where=pairs > 0), rows


def log_loss(labels: np.ndarray, probabilities: np.ndarray) -> float:
    """-mean(y ln p + (1 - y) ln(1 - p)), in nats. Raises DataError on no rows, or p outside (0, 1)."""
    labels, probabilities = checked(labels, probabilities)
    if len(labels) == 0:
        raise DataError("log loss of no rows is undefined; check that the window holds examples")
    if (probabilities <= 0).any() or (probabilities >= 1).any():
        raise DataError(f"probabilities span [{probabilities.min()}, {probabilities.max()}]; log loss needs them "
                        "inside (0, 1): calibrate first")
    return float(-np.mean(np.where(labels == 1, np.log(probabilities), np.log1p(-probabilities))))
