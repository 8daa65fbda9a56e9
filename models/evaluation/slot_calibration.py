"""Probabilities of position 1 from labels that were observed where a row was shown.

With a bias of positions the curve is fitted on, and read at, the logit of each row's slot; a network that learned none
is told of position 1 by the rows shown there alone.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from contracts.artifacts import LABEL, POSITION
from contracts.config.training import Train
from models.evaluation import calibration
from models.evaluation.calibration import Calibration
from models.examples.batches import ExampleSet
from models.examples.validation_half import halves

ENOUGH = 10  # times what one step of a curve needs


def fit_curve(
    settings: Train, validation: ExampleSet, logits: np.ndarray, position_bias: Sequence[float], rows: np.ndarray
) -> Calibration:
    """On `rows` (bool [N]) of the window; `logits` [N] at position 1."""
    shown, labels = logits + position_logit(validation, position_bias), validation.column(LABEL)
    draws = validation.log_draws()[rows] if validation.drawn else None
    return calibration.fit(settings.calibration, shown[rows], labels[rows], draws)


def pre_ranker_curve(
    settings: Train, validation: ExampleSet, logits: np.ndarray, position_bias: Sequence[float]
) -> Calibration:
    """On half 1 of the validation window, or what of it tells."""
    rows = telling(validation, position_bias, halves(validation) == 1)
    return fit_curve(settings, validation, logits, position_bias, rows)


def telling(examples: ExampleSet, position_bias: Sequence[float], rows: np.ndarray) -> np.ndarray:
    """bool [N]: those of `rows` whose labels tell of position 1: all with a bias; without one those shown there, where
    the log has positions and enough of both classes are there."""
    if len(position_bias) > 1 or not examples.spec.has_position:
        return rows
    first, clicked = rows & (examples.column(POSITION) == 1), examples.column(LABEL) > 0
    fewest = min((first & clicked).sum(), (first & ~clicked).sum())
    return first if fewest >= ENOUGH * calibration.ROWS_OF_EACH_CLASS else rows


def position_logit(examples: ExampleSet, bias: Sequence[float]) -> np.ndarray:
    """[N] what the slot of each row adds to its logit; positions beyond the last count as the last."""
    if len(bias) < 2:
        return np.zeros(examples.rows)
    return np.asarray(bias)[np.clip(examples.column(POSITION).astype(np.int64) - 1, 0, len(bias) - 1)]
