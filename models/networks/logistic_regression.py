"""Logistic regression: one weight per id (mean over a slot of several), one per dense input, and a bias."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import FusedEmbedding
from models.layers.item_prior import ItemPrior
from models.layers.losses import prior_logit

STEP_SCALE = 10.0  # Adam moves a weight by about the learning rate a step: too little where the weight is the effect


class LogisticRegression(nn.Module):
    """The embedding is one number wide: it is the weight of a value."""

    def __init__(self, spec: FeatureSpec, numbers: Numbers = "plain") -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim=1, tie=False, numbers=numbers)
        self.prior = ItemPrior(spec)
        nn.init.zeros_(self.embedding.weight)
        self.request_dense = nn.Parameter(torch.zeros(self.embedding.request_numbers))
        self.candidate_dense = nn.Parameter(torch.zeros(self.embedding.candidate_numbers))
        self.bias = nn.Parameter(torch.zeros(1))

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the bias at the click rate of the training window."""
        nn.init.constant_(self.bias, prior_logit(examples) / STEP_SCALE)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        left, right = self.embedding(request, candidate)
        effects = _side(left, self.request_dense) + _side(right, self.candidate_dense) + self.bias
        return STEP_SCALE * effects + self.prior(candidate)


def _side(inputs: Tensor, weights: Tensor) -> Tensor:
    ids = inputs.shape[1] - len(weights)
    return inputs[:, :ids].sum(dim=1) + inputs[:, ids:] @ weights.to(inputs.dtype)
