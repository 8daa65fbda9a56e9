"""The pre-ranker: a small MLP over the two tower vectors, cheap enough for every retrieved candidate.

    logit = MLP([u; u * v, v, u . v])     u once per request

Trained on impressions with the towers frozen: unlike the towers' inner product it returns a click logit.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.losses import prior_logit
from models.layers.mlp import Mlp
from models.networks.two_tower import TwoTower


class PreRanker(nn.Module):
    """Reads vectors of the towers, whatever made them."""

    def __init__(self, tower_dim: int, hidden: tuple[int, ...]) -> None:
        super().__init__()
        self.mlp = Mlp(tower_dim, 2 * tower_dim + 1, hidden)
        self.scale = tower_dim**0.5  # coordinates of a unit vector are of size 1/sqrt(d): brought to size 1

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.mlp.output_bias, prior_logit(examples))

    def forward(self, user_vector: Tensor, item_vector: Tensor) -> Tensor:
        """user_vector [1 or B, d], item_vector [B, d] -> logits [B]."""
        user, item = user_vector * self.scale, item_vector * self.scale
        product = user * item
        candidate = torch.cat([product, item, product.mean(dim=1, keepdim=True)], dim=1)
        return self.mlp(user, candidate).squeeze(1)


class TowersPreRanker(nn.Module):
    """Towers and pre-ranker as one network over the blocks of a row, as every ranker is."""

    def __init__(self, towers: TwoTower, pre_ranker: PreRanker) -> None:
        super().__init__()
        self.towers, self.pre_ranker = towers, pre_ranker

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        return self.pre_ranker(self.towers.user_vector(request), self.towers.item_vector(candidate))
