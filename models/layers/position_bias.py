"""The effect of the slot a row was shown in: a logit added in training alone (a shallow tower, PAL-style).

    logit = network(user, item) + bias[position],   bias[1] = 0

so that serving, which asks for position 1, needs nothing of it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from contracts.artifacts import LABEL, POSITION
from models.examples.batches import ExampleSet

STEP_SCALE = 20.0  # a bias of one logit must be in reach of some hundred Adam steps
STRENGTH = 20.0  # impressions at the overall rate added to each position


class PositionBias(nn.Module):
    """`positions` 0 means that the log has none: the bias is 0. Positions beyond the last count as the last."""

    def __init__(self, positions: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(max(positions - 1, 0)))

    @torch.no_grad()
    def start_at(self, examples: ExampleSet) -> None:
        """Smoothed log odds of each position over those of position 1."""
        if not len(self.weight):
            return
        shown = clicked = np.zeros(len(self.weight) + 1)
        for positions, labels in examples.parts(POSITION, LABEL):
            place = np.clip(positions, 1, len(shown)) - 1
            shown = shown + np.bincount(place, minlength=len(shown))
            clicked = clicked + np.bincount(place, weights=labels, minlength=len(shown))
        rate = (clicked + STRENGTH * clicked.sum() / shown.sum()) / (shown + STRENGTH)
        odds = np.log(rate / (1.0 - rate))
        self.weight.copy_(torch.from_numpy((odds[1:] - odds[0]) / STEP_SCALE))

    def values(self) -> Tensor:
        """The bias of positions 1, 2, ..., in logits."""
        return torch.cat([self.weight.new_zeros(1), STEP_SCALE * self.weight])

    def forward(self, position: Tensor) -> Tensor:
        """position [B], from 1 -> [B]."""
        values = self.values()
        return values[(position.long() - 1).clamp(0, len(values) - 1)]
