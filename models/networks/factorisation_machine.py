"""Factorisation machine (Rendle, ICDM 2010): a weight per value and the inner product of every pair of values' vectors.

    logit = b + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j,   the last = ((sum_i v_i x_i)^2 - sum_i (v_i x_i)^2) / 2

x is 1 for an id, 1/n for each of the n values of a list, and the value itself for numbers (dense inputs, pair rates,
entries of product crosses). A history and its target have weights and vectors of their own. The sums of the request
block are computed once per request.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import INITIAL_STD, BlockReader, FusedEmbedding
from models.layers.item_prior import ItemPrior
from models.layers.losses import prior_logit
from models.networks.logistic_regression import STEP_SCALE

START = 0.1  # of the usual spread of embeddings: products of large random vectors are noise that must be unlearned


class FactorisationMachine(nn.Module):
    """Vector and, last, linear weight of a value are one row [D + 1] of the embedding."""

    step_scale = STEP_SCALE  # of weights and bias

    def __init__(self, spec: FeatureSpec, dim: int, numbers: Numbers = "plain") -> None:
        super().__init__()
        self.dim = dim
        self.embedding = FusedEmbedding(spec, dim + 1, tie=False, numbers=numbers)
        self.prior = ItemPrior(spec)
        with torch.no_grad():
            self.embedding.weight.mul_(START)
            self.embedding.weight[:, dim] = 0.0
        self.request_numbers = nn.Parameter(self._factors(self.embedding.request))
        self.candidate_numbers = nn.Parameter(self._factors(self.embedding.candidate))
        self.bias = nn.Parameter(torch.zeros(1))

    def _factors(self, reader: BlockReader) -> Tensor:
        """[numbers, D + 1]: a vector and a weight of each number of a block."""
        numbers = reader.width - len(reader.slots) * (self.dim + 1)
        factors = torch.randn(numbers, self.dim + 1) * INITIAL_STD * START
        factors[:, self.dim] = 0.0
        return factors

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the bias at the click rate of the training window."""
        nn.init.constant_(self.bias, prior_logit(examples) / self.step_scale)

    @torch.no_grad()
    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift; scale > 0."""
        for table in (self.embedding.weight, self.request_numbers, self.candidate_numbers):
            table[:, : self.dim].mul_(scale**0.5)
            table[:, self.dim].mul_(scale)
        self.bias.mul_(scale).add_(shift / self.step_scale)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        return self.interactions(*self.embedding(request, candidate)) + self.prior(candidate)

    def interactions(self, of_request: Tensor, of_candidate: Tensor) -> Tensor:
        """Inputs [1 or B, request.width] and [B, candidate.width] -> bias, weights and pairs [B]."""
        left = self.terms(of_request, self.embedding.request, self.request_numbers)
        right = self.terms(of_candidate, self.embedding.candidate, self.candidate_numbers)
        sums = left[..., : self.dim].sum(dim=1) + right[..., : self.dim].sum(dim=1)
        squares = left[..., : self.dim].square().sum(dim=(1, 2)) + right[..., : self.dim].square().sum(dim=(1, 2))
        weights = left[..., self.dim].sum(dim=1) + right[..., self.dim].sum(dim=1)
        return (sums.square().sum(dim=1) - squares) / 2 + self.step_scale * (weights + self.bias)

    def terms(self, inputs: Tensor, reader: BlockReader, factors: Tensor) -> Tensor:
        """v_i x_i and, last, w_i x_i of every input of a block: [R, width] -> [R, inputs, D + 1]."""
        ids = len(reader.slots) * (self.dim + 1)
        vectors = inputs[:, :ids].view(len(inputs), -1, self.dim + 1)
        return torch.cat([vectors, inputs[:, ids:, None] * factors.to(inputs.dtype)], dim=1)
