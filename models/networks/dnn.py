"""Embeddings and dense inputs through a perceptron: the plain deep ranker."""

from __future__ import annotations

from torch import Tensor, nn

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import Block, ExampleSet
from models.layers.embedding import FusedEmbedding
from models.layers.losses import prior_logit
from models.layers.mlp import Mlp


class Dnn(nn.Module):
    def __init__(self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim)
        self.mlp = Mlp(self.embedding.shared.width, self.embedding.own.width, hidden, dropout=dropout)

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.mlp.output_bias, prior_logit(examples))

    def forward(self, shared: Block, own: Block) -> Tensor:
        """shared of 1 or B rows, own of B rows -> logits [B]."""
        return self.mlp(*self.embedding(shared, own)).squeeze(1)
