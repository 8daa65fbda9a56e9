"""Embeddings and dense inputs through an MLP: the plain deep ranker."""

from __future__ import annotations

from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import FusedEmbedding
from models.layers.item_prior import ItemPrior
from models.layers.losses import prior_logit
from models.layers.mlp import Mlp


class Dnn(nn.Module):
    """logit = MLP([request inputs; candidate inputs]) + prior of the item."""

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, numbers: Numbers = "plain"
    ) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim, numbers=numbers)
        self.prior = ItemPrior(spec)
        self.mlp = Mlp(self.embedding.request.width, self.embedding.candidate.width, hidden, dropout=dropout)

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.mlp.output_bias, prior_logit(examples))

    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift."""
        self.mlp.rescale_output(scale, shift)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        return self.mlp(*self.embedding(request, candidate)).squeeze(1) + self.prior(candidate)
