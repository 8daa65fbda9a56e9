"""FinalMLP: two MLPs that see the inputs through gates of their own, joined by a bilinear form.

Mao et al., AAAI 2023, arXiv 2304.00902; among the best of the BARS tables on Criteo and Avazu.

    g_1 = 2 sigmoid(MLP(request)),  g_2 = 2 sigmoid(MLP(candidate))      over all inputs x = [request; candidate]
    o_k = ReLU perceptron_k(g_k * x)                                            [B, H], k = 1, 2
    logit = b + w_1 . o_1 + w_2 . o_2 + sum over heads h of o_1h^T W_h o_2h     o_kh: the h-th of HEADS pieces of o_k

As in the paper one gate sees the user (here with the context) and the other the item. What the first gate needs is
computed once per request.
"""

from __future__ import annotations

import math
from typing import ClassVar

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

GATE_HIDDEN = 64
HEADS = 8


class BilinearFusion(nn.Module):
    """Two vectors of one width -> a logit. Heads keep the form small: width x width / heads weights."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.heads = math.gcd(HEADS, width)
        piece = width // self.heads
        self.left = nn.Linear(width, 1)
        self.right = nn.Linear(width, 1, bias=False)
        self.form = nn.Parameter(torch.randn(self.heads, piece, piece) / piece)

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        """[B, H] and [B, H] -> [B]."""
        pieces = [part.view(len(part), self.heads, -1) for part in (left, right)]
        joint = torch.einsum("bhi,hij,bhj->b", pieces[0], self.form.to(left.dtype), pieces[1])
        return (self.left(left) + self.right(right)).squeeze(1) + joint


class Gate(nn.Module):
    """Context [R, C] -> weights between 0 and 2 of all inputs [R, X]; without any context the weights are learned."""

    def __init__(self, context: int, inputs: int) -> None:
        super().__init__()
        layers = (Linear(context, GATE_HIDDEN), nn.ReLU(), Linear(GATE_HIDDEN, inputs)) if context else ()
        self.layers = nn.Sequential(*layers)
        self.constant = None if context else nn.Parameter(torch.zeros(1, inputs))

    def forward(self, context: Tensor) -> Tensor:
        """[R, C] -> [R, X], or [1, X] without any context."""
        return 2 * torch.sigmoid(self.layers(context) if self.constant is None else self.constant)


class FinalMlp(nn.Module):
    """The last width of `hidden` is that of the two streams, which the fusion joins."""

    per_field: ClassVar[dict[str, tuple[str, ...]]] = {
        "gates.0.layers.0.weight": ("", "request"), "gates.1.layers.0.weight": ("", "candidate"),
        **{f"gates.{gate}.{key}": axes for gate in (0, 1) for key, axes in (
            ("layers.2.weight", ("both", "")), ("layers.2.bias", ("both",)), ("constant", ("", "both")))},
        **{f"streams.{stream}.first.{block}": ("", block) for stream in (0, 1) for block in ("request", "candidate")},
    }

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, numbers: Numbers = "plain"
    ) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim, numbers=numbers)
        self.prior = ItemPrior(spec)
        request, candidate = self.embedding.request.width, self.embedding.candidate.width
        self.gates = nn.ModuleList(Gate(context, request + candidate) for context in (request, candidate))
        self.streams = nn.ModuleList(
            Mlp(request, candidate, hidden[:-1], out=hidden[-1], dropout=dropout) for _ in range(2))
        self.fusion = BilinearFusion(hidden[-1])

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.fusion.left.bias, prior_logit(examples))

    @torch.no_grad()
    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift."""
        for parameter in self.fusion.parameters():
            parameter.mul_(scale)
        self.fusion.left.bias.add_(shift)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        left, right = self.embedding(request, candidate)
        outputs = []
        for stream, gate, context in zip(self.streams, self.gates, (left, right), strict=True):
            weights = gate(context)
            outputs.append(torch.relu(stream(left * weights[:, : left.shape[1]], right * weights[:, left.shape[1] :])))
        return self.fusion(*outputs) + self.prior(candidate)
