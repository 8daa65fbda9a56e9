"""What one field alone says about the label, and what the others can say without it.

    rate(v)   = (positives of v + STRENGTH r) / (rows of v + STRENGTH),   r the overall rate
    s(row)    = mean over the row's values v of ln rate(v) / (1 - rate(v))          the tiny model of a field
    z(row)    = b + sum over fields f of w_f s_f(row)                               all fields together

The three steps use three disjoint parts of the rows: one for the rates, one for w, one for evaluation.
"""

from __future__ import annotations

import numpy as np

from models.leakage.field_columns import FieldColumn

STRENGTH, RIDGE, STEPS = 20.0, 1.0, 12


def scores(column: FieldColumn, label: np.ndarray, fit: np.ndarray) -> np.ndarray:
    """s [N] of all rows by the rates of the rows `fit` (mask)."""
    overall = label[fit].mean()
    codes = column.codes[fit]
    shown = np.bincount(codes.ravel(), minlength=column.size)
    positives = np.bincount(codes.ravel(), np.repeat(label[fit], codes.shape[1]), minlength=column.size)
    rate = (positives + STRENGTH * overall) / (shown + STRENGTH)
    odds = np.log(rate) - np.log1p(-rate)
    if column.codes.shape[1] == 1:
        return odds[column.codes[:, 0]]
    used = column.codes > 0
    total = np.where(used, odds[column.codes], 0.0).sum(axis=1)
    return np.where(used.any(axis=1), total / np.maximum(used.sum(axis=1), 1), odds[0])


def stack(inputs: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Weights [F + 1] of a ridge logistic regression on [N, F] standardised inputs, bias last; Newton's method."""
    wide = np.column_stack([inputs, np.ones(len(inputs))])
    penalty = np.diag([*[RIDGE] * inputs.shape[1], 1e-9])
    weights = np.zeros(wide.shape[1])
    for _ in range(STEPS):
        chance = 1 / (1 + np.exp(-np.clip(wide @ weights, -30, 30)))
        slope = wide.T @ (label - chance) - penalty @ weights
        curve = (wide * (chance * (1 - chance))[:, None]).T @ wide + penalty
        weights = weights + np.linalg.solve(curve, slope)
    return weights


def together(inputs: np.ndarray, label: np.ndarray, fit: np.ndarray, evaluated: np.ndarray) -> np.ndarray:
    """z of the rows `evaluated`, with weights of the rows `fit` (masks); inputs [N, F]."""
    centre, spread = inputs[fit].mean(axis=0), inputs[fit].std(axis=0)
    scaled = (inputs - centre) / np.where(spread > 0, spread, 1.0)
    weights = stack(scaled[fit], label[fit])
    return scaled[evaluated] @ weights[:-1] + weights[-1]
