"""FIVES as a network: the fields of a row are nodes of a graph whose edges are learned (KDD 2021, arXiv 2007.14573).

    n_i(0)          embedding of the row's value of field i
    n_i(k)          n_i(k-1) * mean over j of W_j n_j(0), weighted by the soft adjacency A_ij(k)
    logit           linear weights of the values + MLP([nodes; dense inputs])

The MLP reads the nodes of all layers, or of the last one alone as in the paper; with the last alone the products
of small embeddings give the structure next to no gradient at the start.
"""

from __future__ import annotations

from typing import ClassVar, Literal

import torch
from torch import Tensor, nn

from contracts.config.section import Numbers
from contracts.features.feature_spec import FeatureSpec, IdSlot
from models.examples.batches import ExampleSet, FeatureBlock
from models.layers.embedding import BlockReader, FusedEmbedding
from models.layers.item_prior import ItemPrior
from models.layers.losses import prior_logit
from models.layers.mlp import Mlp
from models.networks.edge_tensor import EdgeTensor, extend

TRANSFORM_STD = 0.05
Readout = Literal["all", "last"]


class Fives(nn.Module):
    """`allowed` [N, N] bool over the nodes in the order of `nodes(spec)`; without it all pairs of different fields."""

    per_field: ClassVar[dict[str, tuple[str, ...]]] = {
        "edges.structure": ("", "slots", "slots"), "transforms": ("slots", "", ""),
        "mlp.first.request": ("", "numbers"), "mlp.first.candidate": ("", "states"),
    }

    def __init__(
        self, spec: FeatureSpec, dim: int, hidden: tuple[int, ...], dropout: float, layers: int,
        readout: Readout = "all", allowed: Tensor | None = None, numbers: Numbers = "plain",
    ) -> None:
        super().__init__()
        self.dim, self.readout = dim, readout
        self.embedding = FusedEmbedding(spec, dim + 1, numbers=numbers)
        self.prior = ItemPrior(spec)
        with torch.no_grad():
            self.embedding.weight[:, -1] = 0.0
        slots = nodes(spec)
        count = len(slots)
        self.edges = EdgeTensor(different_fields(slots) if allowed is None else allowed, layers)
        noise = torch.randn(count, dim, dim) * TRANSFORM_STD
        self.transforms = nn.Parameter(torch.eye(dim).repeat(count, 1, 1) + noise)
        further = self.embedding.request.width + self.embedding.candidate.width - count * (dim + 1)
        self.mlp = Mlp(further, count * dim * (layers + 1 if readout == "all" else 1), hidden, dropout=dropout)

    def layouts(self) -> dict[str, list[str]]:
        """states: what the MLP reads of the nodes."""
        slots = [*self.embedding.request.slots, *self.embedding.candidate.slots]
        layers = range(len(self.edges.structure) + 1 if self.readout == "all" else 1)
        return {"states": [f"{layer} {slot.name}[{place}]" for layer in layers for slot in slots
                           for place in range(self.dim)]}

    def prepare(self, examples: ExampleSet) -> None:
        """Starts the output at the click rate of the training window."""
        nn.init.constant_(self.mlp.output_bias, prior_logit(examples))

    @torch.no_grad()
    def rescale(self, scale: float, shift: float) -> None:
        """What the network adds to the prior of the item becomes scale * that + shift."""
        self.mlp.rescale_output(scale, shift)
        self.embedding.weight[:, self.dim].mul_(scale)

    def forward(self, request: FeatureBlock, candidate: FeatureBlock) -> Tensor:
        """request of 1 or B rows, candidate of B rows -> logits [B]."""
        left, right = self.embedding(request, candidate)
        left_nodes, left_dense = self._split(left, self.embedding.request)
        right_nodes, right_dense = self._split(right, self.embedding.candidate)
        rows = len(right)
        start = torch.cat([left_nodes.expand(rows, -1, -1), right_nodes], dim=1)
        dense = torch.cat([left_dense.expand(rows, -1), right_dense], dim=1)
        vectors = start[..., : self.dim]
        states = self.propagate(vectors, self.edges())
        read = torch.cat(states, dim=1) if self.readout == "all" else states[-1]
        linear = start[..., self.dim].sum(dim=1)
        return self.mlp(dense, read.flatten(1)).squeeze(1) + linear + self.prior(candidate)

    def propagate(self, vectors: Tensor, adjacency: list[Tensor]) -> list[Tensor]:
        """Vectors [B, N, D] and one [N, N] per layer -> the states [B, N, D] of layers 0, 1, ..."""
        transformed = torch.einsum("bnd,nde->bne", vectors, self.transforms.to(vectors.dtype))
        states = [vectors]
        for one in adjacency:
            states.append(extend(states[-1], transformed, one))
        return states

    def _split(self, inputs: Tensor, reader: BlockReader) -> tuple[Tensor, Tensor]:
        """[R, S x (D + 1) + dense] -> nodes [R, S, D + 1], dense inputs."""
        slots, width = len(reader.slots), self.dim + 1
        return inputs[:, : slots * width].view(len(inputs), slots, width), inputs[:, slots * width :]


def nodes(spec: FeatureSpec) -> list[IdSlot]:
    """The id slots in the order of the network's nodes: per block those of one column first."""
    blocks = (spec.block_ids("request"), spec.block_ids("candidate"))
    return [slot for block in blocks for single in (True, False) for slot in block if (slot.width == 1) == single]


def different_fields(slots: list[IdSlot]) -> Tensor:
    """[N, N] bool: not the same field, which two granularities of one column are."""
    return torch.tensor([[a.field != b.field for b in slots] for a in slots])
