"""What the validation window says after an epoch, and which of its figures decides when training stops.

Logits have the position bias in them: at position 1, by which a server ranks, a network that takes what the position
did for what the item did would look better than it is.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from models.evaluation.metrics import auc, gauc

Monitor = Literal["auc", "gauc", "log_loss"]


@dataclass(frozen=True)
class Validated:
    """`loss`: mean per term; the others are None where they are not defined, or not wanted."""

    loss: float
    auc: float | None = None
    gauc: float | None = None

    def score(self, monitor: Monitor) -> float:
        """The larger the better: the figure wanted, where it is defined; else the loss with its sign turned."""
        found = {"auc": self.auc, "gauc": self.gauc, "log_loss": None}[monitor]
        return -self.loss if found is None else found


def validated(loss: float, labels: np.ndarray, logits: np.ndarray, users: np.ndarray, monitor: Monitor) -> Validated:
    """Flat arrays of equal length; logits that are not finite have no AUC, nor has one class."""
    usable = 0 < labels.sum() < len(labels) and bool(np.isfinite(logits).all())
    return Validated(
        loss, auc(labels, logits) if usable else None,
        gauc(labels, logits, users).value if usable and monitor == "gauc" else None)
