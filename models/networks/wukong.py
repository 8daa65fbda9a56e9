"""Wukong: stacked factorisation machines, made to grow (Zhang et al., ICML 2024, arXiv 2403.02545).

    X_0     = a vector [D] per slot, and one for the numbers of each block (a linear layer of them)   [B, N, D]
    FMB(X)  = MLP(LN(X (X^T Y)))       Y [N, K]: all pairs of vectors, projected to K                 [B, K, D]
    LCB(X)  = W X                      W [K, N]                                                       [B, K, D]
    X_(i+1) = LN([FMB(X_i); LCB(X_i)] + R X_i)      R [2 K, N]; the identity where N = 2 K            [B, 2 K, D]
    logit   = MLP(X_L)

Layer i sees crosses of orders 1 to 2^i, and its authors' quality goes on rising with layers and vectors where other
networks have stopped: it is for windows of many millions of rows. X^T Y is computed first, so that the cost is linear
in N. A block's MLP has one hidden layer, as wide as the last of the top MLP. It serves as it is, in torch.
"""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import BlockReader, FusedEmbedding
from models.layers.item_prior import ItemPrior
from models.layers.linear import Linear
from models.layers.losses import prior_logit
from models.layers.mlp import Mlp

SCALE = 10.0  # of values' vectors, which start near zero: their products would not be heard beside those of numbers


class FactorisationBlock(nn.Module):
    """[B, N, D] -> [B, out, D]."""

    def __init__(self, vectors: int, dim: int, out: int, hidden: int) -> None:
        super().__init__()
        self.projection = nn.Parameter(torch.randn(vectors, out) / vectors**0.5)
        self.layers = nn.Sequential(
            nn.LayerNorm(vectors * out), Linear(vectors * out, hidden), nn.ReLU(), Linear(hidden, out * dim))

    def forward(self, x: Tensor) -> Tensor:
        pairs = x @ (x.transpose(1, 2) @ self.projection.to(x.dtype))
        return self.layers(pairs.flatten(1)).view(len(x), -1, x.shape[2])


class WukongLayer(nn.Module):
    """[B, N, D] -> [B, 2 K, D]."""

    def __init__(self, vectors: int, dim: int, width: int, hidden: int) -> None:
        super().__init__()
        self.crosses = FactorisationBlock(vectors, dim, width, hidden)
        self.compression = nn.Linear(vectors, width, bias=False)
        self.residual = nn.Identity() if vectors == 2 * width else nn.Linear(vectors, 2 * width, bias=False)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: Tensor) -> Tensor:
        over_vectors = x.transpose(1, 2)
        joined = torch.cat([self.crosses(x), self.compression(over_vectors).transpose(1, 2)], dim=1)
        return self.norm(joined + self.residual(over_vectors).transpose(1, 2))


class Wukong(nn.Module):
    """`layers` of 2 x `vectors` vectors each: K of the formulas is `vectors`."""

    per_field: ClassVar[dict[str, tuple[str, ...]]] = {
        "numbers.0.weight": ("", "request numbers"), "numbers.1.weight": ("", "candidate numbers"),
        "layers.0.crosses.projection": ("vectors", ""), "layers.0.crosses.layers.0.weight": ("projected",),
        "layers.0.crosses.layers.0.bias": ("projected",), "layers.0.crosses.layers.1.weight": ("", "projected"),
        "layers.0.compression.weight": ("", "vectors"), "layers.0.residual.weight": ("", "vectors"),
    }

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, layers: int, vectors: int,
        numbers: Numbers = "plain",
    ) -> None:
        super().__init__()
        self.embedding = FusedEmbedding(spec, dim, numbers=numbers)
        self.prior = ItemPrior(spec)
        self.dim, self.width = dim, vectors
        readers = (self.embedding.request, self.embedding.candidate)
        widths = [_numbers(reader, dim) for reader in readers]
        self.numbers = nn.ModuleList(nn.Linear(width, dim) if width else nn.Identity() for width in widths)
        count = sum(len(reader.slots) for reader in readers) + sum(width > 0 for width in widths)
        self.layers = nn.Sequential(*(
            WukongLayer(2 * vectors if number else count, dim, vectors, hidden[-1] if hidden else vectors * dim)
            for number in range(layers)))
        self.mlp = Mlp(vectors * dim, vectors * dim, hidden, dropout=dropout)

    def layouts(self) -> dict[str, list[str]]:
        """vectors: what the first layer reads; projected: each of them K times."""
        vectors = list[str]()
        for block, reader in (("request", self.embedding.request), ("candidate", self.embedding.candidate)):
            vectors += [slot.name for slot in reader.slots]
            vectors += [f"numbers of the {block}"] if _numbers(reader, self.dim) else []
        return {"vectors": vectors,
                "projected": [f"{name}[{place}]" for name in vectors for place in range(self.width)]}

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.mlp.output_bias, prior_logit(examples))

    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift."""
        self.mlp.rescale_output(scale, shift)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        left, right = self.embedding(request, candidate)
        parts = [self.vectors(left, 0).expand(len(right), -1, -1), self.vectors(right, 1)]
        crosses, compressed = self.layers(torch.cat(parts, dim=1)).flatten(1).chunk(2, dim=1)
        return self.mlp(crosses, compressed).squeeze(1) + self.prior(candidate)

    def vectors(self, inputs: Tensor, block: int) -> Tensor:
        """Inputs [R, width] of block 0 or 1 -> a vector per slot and, last, that of its numbers: [R, N, D]."""
        slots = len((self.embedding.request, self.embedding.candidate)[block].slots) * self.dim
        vectors = SCALE * inputs[:, :slots].view(len(inputs), -1, self.dim)
        if inputs.shape[1] == slots:
            return vectors
        numbers = self.numbers[block](inputs[:, slots:]).to(vectors.dtype)
        return torch.cat([vectors, numbers[:, None]], dim=1)


def _numbers(reader: BlockReader, dim: int) -> int:
    """Inputs of a block that belong to no slot: dense ones, products of crosses, pair rates."""
    return reader.width - len(reader.slots) * dim
