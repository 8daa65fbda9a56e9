"""Calibration of a trained model: fitted on the half of the validation window that did not stop its training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch

from contracts.artifacts import LABEL
from models.evaluation.calibration import Calibration
from models.evaluation.metrics import auc
from models.evaluation.slot_calibration import fit_curve, telling
from models.examples.validation_half import halves
from models.jobs.training_task import TrainingTask
from models.training import fitting


class Calibrated(NamedTuple):
    """`auc` and `logits` [N], at position 1, are those of the whole validation window."""

    curve: Calibration
    auc: float
    logits: np.ndarray


def calibrate(
    task: TrainingTask, network: torch.nn.Module, position_bias: Sequence[float], fresh: bool = False
) -> Calibrated:
    """The curve is fitted on validation half 1, or what of it tells of position 1."""
    validation = task.examples("validation", fresh)
    logits = fitting.predict(network, validation)
    rows = telling(validation, position_bias, halves(validation) == 1)
    curve = fit_curve(task.config.train, validation, logits, position_bias, rows)
    return Calibrated(curve, auc(validation.column(LABEL), logits), logits)
