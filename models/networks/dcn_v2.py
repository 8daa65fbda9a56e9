"""DCN V2, cross layers and an MLP (Wang et al., 2021, arXiv 2008.13535), and GDCN, whose crosses pass a gate (Wang et
al., CIKM 2023, arXiv 2311.04635).

    x_0     = [request; candidate]               [B, X]
    x_{l+1} = x_0 * (W_l x_l + b_l) + x_l         W_l = U_l V_l, U_l [X, rank], V_l [rank, X]; of rank 0: W_l [X, X]
    x_{l+1} = x_0 * (W_l x_l + b_l) * sigmoid(G_l x_l) + x_l       GDCN, G_l of the same rank as W_l
    logit   = w . x_L + MLP(x_0)                            parallel: the MLP reads the inputs
    logit   = MLP(x_L)                                      stacked: it reads the crosses

A gate decides per row and input how much of each cross of order l + 1 goes on, so that further layers add less noise.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import FusedEmbedding
from models.layers.item_prior import ItemPrior
from models.layers.linear import Linear
from models.layers.losses import prior_logit
from models.layers.mlp import Mlp


class _Crossed(torch.autograd.Function):
    """x + start * factor: torch.addcmul, which backwards multiplies each of the two by 1 as well."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, start: Tensor, factor: Tensor) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(start, factor)
        return torch.addcmul(x, start, factor)

    @staticmethod
    def backward(ctx: Any, slope: Tensor) -> tuple[Tensor, Tensor, Tensor]:  # type: ignore[override]
        start, factor = ctx.saved_tensors
        return slope, slope * factor, slope * start


class CrossLayer(nn.Module):
    """x_l and x_0 [B, X] -> x_(l+1) [B, X], W of the given rank; 0: of full rank."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__()
        self.down = Linear(width, rank, bias=False) if rank else nn.Identity()
        self.up = Linear(rank or width, width)
        nn.init.zeros_(self.up.bias)

    def forward(self, start: Tensor, x: Tensor) -> Tensor:
        """`start` is x_0."""
        return _Crossed.apply(x, start, self.up(self.down(x)).to(x.dtype))  # type: ignore[no-any-return]


class GatedCrossLayer(CrossLayer):
    """x_l and x_0 [B, X] -> x_(l+1) [B, X]; half of every cross goes on where the gate says nothing."""

    def __init__(self, width: int, rank: int) -> None:
        super().__init__(width, rank)
        self.gate_down = Linear(width, rank, bias=False) if rank else nn.Identity()
        self.gate_up = Linear(rank or width, width, bias=False)

    def forward(self, start: Tensor, x: Tensor) -> Tensor:
        """`start` is x_0."""
        gate = torch.sigmoid(self.gate_up(self.gate_down(x)))
        return _Crossed.apply(x, start, (self.up(self.down(x)) * gate).to(x.dtype))  # type: ignore[no-any-return]


class CrossNetwork(nn.Module):
    """Cross layers, `layer(width, rank)` each, and an MLP read the same inputs, and their outputs are added; `stacked`,
    the MLP reads what the cross layers give."""

    layer: Callable[[int, int], CrossLayer]

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, cross_layers: int, cross_rank: int,
        stacked: bool = False, numbers: Numbers = "plain",
    ) -> None:
        super().__init__()
        self.stacked = stacked
        self.embedding = FusedEmbedding(spec, dim, numbers=numbers)
        self.prior = ItemPrior(spec)
        request, candidate = self.embedding.request.width, self.embedding.candidate.width
        rank = min(cross_rank, request + candidate)
        self.crosses = nn.ModuleList(self.layer(request + candidate, rank) for _ in range(cross_layers))
        self.mlp = Mlp(request, candidate, hidden, dropout=dropout)
        self.cross_output = None if stacked else nn.Linear(request + candidate, 1, bias=False)

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.mlp.output_bias, prior_logit(examples))

    @torch.no_grad()
    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift."""
        self.mlp.rescale_output(scale, shift)
        if self.cross_output is not None:
            self.cross_output.weight.mul_(scale)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        left, right = self.embedding(request, candidate)
        start = torch.cat([left.expand(len(right), -1), right], dim=1)
        x = start
        for cross in self.crosses:
            x = cross(start, x)
        if self.cross_output is None:
            found = self.mlp(*x.split([left.shape[1], right.shape[1]], dim=1))
        else:
            found = self.mlp(left, right) + self.cross_output(x)
        return found.squeeze(1) + self.prior(candidate)


class DcnV2(CrossNetwork):
    """It serves in numpy (models/inference/split_ranker.py), stacked as it is."""

    layer = CrossLayer


class Gdcn(CrossNetwork):
    """It serves as it is."""

    layer = GatedCrossLayer
