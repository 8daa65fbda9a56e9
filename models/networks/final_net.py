"""FinalNet: layers that multiply instead of an MLP (Zhu et al., SIGIR 2023, FINAL: factorized interaction layer for CTR
prediction, https://doi.org/10.1145/3539618.3591988), with one block.

    g     = 2 sigmoid(W_g e + b_g)              a gate per slot, from the vectors of all slots; numbers have none
    x_0   = [g * slots; numbers]                                                              [B, X]
    x_l   = dropout(ReLU(BN(h (1 + k)))),       h, k linear forms of x_(l-1)                  [B, H_l]
    logit = w . x_L + b

Each layer doubles the order of the crosses, so that few are needed. h and k are the two halves of one linear layer.
Among the best of the CTR tables of BARS (Criteo, Avazu, MovieLens, Frappe). It serves as it is, in torch.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import BlockReader, FusedEmbedding
from models.layers.factorised_layers import FactorisedLayers
from models.layers.item_prior import ItemPrior
from models.layers.losses import prior_logit


class SlotGates(nn.Module):
    """A weight between 0 and 2 of each slot's vector, by what all slots hold; 1 at the start."""

    def __init__(self, request: BlockReader, candidate: BlockReader, dim: int) -> None:
        super().__init__()
        self.counts, self.dim = (len(request.slots), len(candidate.slots)), dim
        slots = sum(self.counts)
        self.linear = nn.Linear(slots * dim, slots)
        nn.init.zeros_(self.linear.weight)
        nn.init.zeros_(self.linear.bias)

    def forward(self, request: Tensor, candidate: Tensor) -> tuple[Tensor, Tensor]:
        """Inputs [1 or B, R] and [B, C] of both blocks -> the same, gated, of B rows each."""
        request = request.expand(len(candidate), -1)
        vectors, numbers = zip(*(part.split([count * self.dim, part.shape[1] - count * self.dim], dim=1)
                                 for part, count in zip((request, candidate), self.counts, strict=True)), strict=True)
        gates = 2 * torch.sigmoid(self.linear(torch.cat(vectors, dim=1)))
        wide = gates.repeat_interleave(self.dim, dim=1).split([part.shape[1] for part in vectors], dim=1)
        gated = [torch.cat([vector * gate, number], dim=1)
                 for vector, gate, number in zip(vectors, wide, numbers, strict=True)]
        return gated[0], gated[1]


class FinalNet(nn.Module):
    """`hidden` are the widths of the layers."""

    per_field: ClassVar[dict[str, tuple[str, ...]]] = {
        "gates.linear.weight": ("slots", "vectors"), "gates.linear.bias": ("slots",),
        "layers.layers.0.linear.request": ("", "request"), "layers.layers.0.linear.candidate": ("", "candidate"),
    }

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, numbers: Numbers = "plain"
    ) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim, numbers=numbers)
        self.prior = ItemPrior(spec)
        request, candidate = self.embedding.request, self.embedding.candidate
        self.gates = SlotGates(request, candidate, dim)
        self.layers = FactorisedLayers(request.width, candidate.width, hidden, dropout)
        self.output = nn.Linear(hidden[-1], 1)

    def layouts(self) -> dict[str, list[str]]:
        """vectors: what the gates read."""
        slots = [*self.embedding.request.slots, *self.embedding.candidate.slots]
        return {"vectors": [f"{slot.name}[{place}]" for slot in slots for place in range(self.embedding.dim)]}

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.output.bias, prior_logit(examples))

    @torch.no_grad()
    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift."""
        self.output.weight.mul_(scale)
        self.output.bias.mul_(scale).add_(shift)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        inputs = self.gates(*self.embedding(request, candidate))
        return self.output(self.layers(*inputs)).squeeze(1) + self.prior(candidate)
