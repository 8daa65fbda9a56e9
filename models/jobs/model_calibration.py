"""Calibration of a trained model: fitted on the half of the validation window that did not stop its training.

Labels were observed where a row was shown, so the curve is fitted on, and read at, the logit of that position.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from contracts.artifacts import LABEL, POSITION
from models.evaluation import calibration
from models.evaluation.metrics import auc
from models.examples.batches import ExampleSet
from models.examples.validation_half import halves
from models.jobs.training_task import TrainingTask
from models.training import fitting


class Calibrated(NamedTuple):
    """`auc` and `logits` [N], at position 1, are those of the whole validation window."""

    curve: calibration.Calibration
    auc: float
    logits: np.ndarray


def calibrate(
    task: TrainingTask, network: torch.nn.Module, position_bias: Sequence[float], fresh: bool = False
) -> Calibrated:
    """The curve is fitted on validation half 1."""
    validation = task.examples("validation", fresh)
    logits, labels = fitting.predict(network, validation), validation.column(LABEL)
    half = halves(validation) == 1
    shown = logits + position_logit(validation, position_bias)
    draws = validation.log_draws()[half] if validation.drawn else None
    curve = calibration.fit(task.config.train.calibration, shown[half], labels[half], draws)
    return Calibrated(curve, auc(labels, logits), logits)


def position_logit(examples: ExampleSet, bias: Sequence[float]) -> np.ndarray:
    """[N] what the slot of each row adds to its logit; positions beyond the last count as the last."""
    if len(bias) < 2:
        return np.zeros(examples.rows)
    return np.asarray(bias)[np.clip(examples.column(POSITION).astype(np.int64) - 1, 0, len(bias) - 1)]
