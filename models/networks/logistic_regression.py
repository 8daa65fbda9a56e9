"""Logistic regression: one weight per id (mean over a slot of several), one per dense input, and a bias."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Block, ExampleSet
from models.layers.embedding import FusedEmbedding
from models.layers.losses import prior_logit

STEP_SCALE = 10.0  # Adam moves a weight by about the learning rate a step: too little where the weight is the effect


class LogisticRegression(nn.Module):
    def __init__(self, spec: FeatureSpec) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim=1, tie=False)
        nn.init.zeros_(self.embedding.weight)
        self.shared_dense = nn.Parameter(torch.zeros(len(spec.block_dense("shared"))))
        self.own_dense = nn.Parameter(torch.zeros(self.embedding.own_numbers))
        self.bias = nn.Parameter(torch.zeros(1))

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the bias at the click rate of the training window."""
        nn.init.constant_(self.bias, prior_logit(examples) / STEP_SCALE)

    def forward(self, shared: Block, own: Block) -> Tensor:
        """shared of 1 or B rows, own of B rows -> logits [B]."""
        left, right = self.embedding(shared, own)
        return STEP_SCALE * (_side(left, self.shared_dense) + _side(right, self.own_dense) + self.bias)


def _side(inputs: Tensor, weights: Tensor) -> Tensor:
    ids = inputs.shape[1] - len(weights)
    return inputs[:, :ids].sum(dim=1) + inputs[:, ids:] @ weights.to(inputs.dtype)
