"""DeepFM (Guo et al., IJCAI 2017, arXiv 1703.04247): a factorisation machine and an MLP that share the values' vectors.

    logit = b + sum_i w_i x_i + sum_{i<j} <v_i, v_j> x_i x_j + MLP(x)

The MLP reads the rows as the machine does: of each value its vector and, as one more entry, its weight; numbers as they
are.
"""

from __future__ import annotations

import torch
from torch import Tensor

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import FeatureBlock
from models.layers.mlp import Mlp
from models.networks.factorisation_machine import FactorisationMachine


class DeepFm(FactorisationMachine):
    """The bias is that of the machine; the MLP's own starts near zero.

    Weights move as vectors do: with the steps of a machine alone they run ahead of the MLP, which reads them, too.
    """

    step_scale = 1.0

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, numbers: Numbers = "plain"
    ) -> None:
        super().__init__(spec, dim, numbers)
        self.mlp = Mlp(self.embedding.request.width, self.embedding.candidate.width, hidden, dropout=dropout)

    @torch.no_grad()
    def rescale(self, scale: float, shift: float) -> None:
        """As the machine's; the MLP's first layer makes up for what happens to the vectors that both share."""
        super().rescale(scale, shift)
        first, width = self.mlp.first, self.dim + 1
        for matrix, reader in ((first.request, self.embedding.request), (first.candidate, self.embedding.candidate)):
            of_values = matrix[:, : len(reader.slots) * width].view(len(matrix), -1, width)
            of_values[..., : self.dim].div_(scale**0.5)
            of_values[..., self.dim].div_(scale)
        self.mlp.rescale_output(scale, 0.0)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        inputs = self.embedding(request, candidate)
        return self.mlp(*inputs).squeeze(1) + self.interactions(*inputs) + self.prior(candidate)
