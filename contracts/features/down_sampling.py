"""Undoes the effect of training on a share of the negatives.

Keeping negatives with probability w multiplies the odds by 1/w; dividing them again gives q = p / (p + (1 - p) / w)
(He et al. 2014, "Practical Lessons from Predicting Clicks on Ads at Facebook", section 6.3).
"""

from __future__ import annotations

import numpy as np

from contracts.errors import DataError


def undo(probability: np.ndarray, rate: float) -> np.ndarray:
    """Probabilities of a model trained with negatives kept at `rate` -> probabilities on all rows; same shape.

    Raises DataError unless 0 < rate <= 1.
    """
    if not 0.0 < rate <= 1.0:
        raise DataError(f"negatives cannot have been kept at rate {rate:g}; it lies in (0, 1]")
    return probability / (probability + (1.0 - probability) / rate)
