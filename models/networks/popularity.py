"""Popularity: the smoothed click rate of the item in the training window, for everyone alike. The trivial baseline.

    rate(i) = (clicks_i + STRENGTH * r) / (impressions_i + STRENGTH),   r the overall click rate
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from contracts.errors import OneClassError
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import item_slot
from models.layers.item_prior import item_counts

STRENGTH = 20.0


class Popularity(nn.Module):
    """Without a categorical field of the item every row gets the overall rate. Nothing in it is trained."""

    logit: Tensor

    def __init__(self, spec: FeatureSpec) -> None:
        super().__init__()
        self.slot = item_slot(spec)
        self.register_buffer("logit", torch.zeros(self.slot.size if self.slot else 1))

    def prepare(self, examples: ExampleSet) -> None:
        """Counts the training window. Raises OneClassError when all labels are equal."""
        found = item_counts(examples, self.slot)
        overall = found.clicks.sum() / examples.rows
        if not 0.0 < overall < 1.0:
            raise OneClassError(f"{examples.folder}: all {examples.rows} labels are {overall:g}; widen the window")
        rate = (found.clicks + STRENGTH * overall) / (found.shown + STRENGTH)
        drawn = found.draws.sum() / examples.rows + found.log_draws()
        self.logit.copy_(torch.from_numpy(np.log(rate) - np.log1p(-rate) + drawn))

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        ids = candidate.ids[:, self.slot.start] if self.slot else candidate.ids.new_zeros(len(candidate.dense))
        return self.logit[ids.long()]
