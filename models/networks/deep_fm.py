"""DeepFM (Guo et al., IJCAI 2017, arXiv 1703.04247): a factorisation machine and an MLP that share the values' vectors.

    logit = b + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j + MLP(x)

The MLP reads the rows as the machine does: of each value its vector and, as one more entry, its weight; numbers as they
are.
"""

from __future__ import annotations

from torch import Tensor

from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import FeatureBlock
from models.layers.mlp import Mlp
from models.networks.factorisation_machine import FactorisationMachine


class DeepFm(FactorisationMachine):
    """The bias is that of the machine; the MLP's own starts near zero."""

    def __init__(self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float) -> None:
        super().__init__(spec, dim)
        self.mlp = Mlp(self.embedding.request.width, self.embedding.candidate.width, hidden, dropout=dropout)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        inputs = self.embedding(request, candidate)
        return self.mlp(*inputs).squeeze(1) + self.interactions(*inputs) + self.prior(candidate)
