"""Free vectors of field values, without a graph: matrix factorisation, and a two-tower net.

    factorisation   the value's own vector; with the dot head: w . (u * v) + effects of u and v, as in biased
                    matrix factorisation (Koren et al., 2009)
    two_tower       MLP_slot(value vector + slot vector), one hidden layer, with the same head

Both see the edges whose rate is learned and nothing else, and are fitted by the same loop on the same loss as the
graph network.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.layers.own_rows import drawn
from models.pair_rates.graph import PairGraph

INITIAL_STD = 0.05


class Factorisation(nn.Module):
    """`width` is one more than `dim`: the last number is the value's own effect. A value never seen is zero."""

    head = "dot"

    def __init__(self, graph: PairGraph, dim: int) -> None:
        super().__init__()
        self.width = dim + 1
        self.values = nn.Parameter(drawn(graph.nodes, self.width, INITIAL_STD))

    def forward(self, graph: PairGraph, rows: Tensor, excluded: Tensor, generator: torch.Generator) -> Tensor:
        """Vectors [n, D] of distinct rows [n]."""
        return graph.seen[rows].float()[:, None] * F.embedding(rows, self.values, sparse=True)

    @torch.no_grad()
    def all_vectors(self, graph: PairGraph) -> Tensor:
        """[N, width] of every value."""
        return graph.seen.float()[:, None] * self.values


class TwoTowerPairs(nn.Module):
    """A value never seen is its slot's vector through the tower."""

    head = "dot"

    def __init__(self, graph: PairGraph, dim: int) -> None:
        super().__init__()
        self.width = dim + 1
        self.values = nn.Parameter(drawn(graph.nodes, dim, INITIAL_STD))
        self.slots = nn.Parameter(torch.randn(len(graph.slots), dim) * INITIAL_STD)
        self.towers = nn.ModuleList(
            nn.Sequential(nn.Linear(dim, 2 * dim), nn.ReLU(), nn.Linear(2 * dim, self.width)) for _ in graph.slots
        )

    def forward(self, graph: PairGraph, rows: Tensor, excluded: Tensor, generator: torch.Generator) -> Tensor:
        """Vectors [n, D] of distinct rows [n]."""
        owner = graph.slot_of[rows]
        start = self.slots[owner] + graph.seen[rows].float()[:, None] * F.embedding(rows, self.values, sparse=True)
        order = torch.argsort(owner, stable=True)
        counts = torch.bincount(owner, minlength=len(self.towers)).tolist()
        parts = [tower(part) for tower, part in zip(self.towers, start[order].split(counts), strict=True)]
        return torch.cat(parts)[torch.argsort(order)]

    @torch.no_grad()
    def all_vectors(self, graph: PairGraph) -> Tensor:
        """[N, width] of every value."""
        rows = torch.arange(graph.nodes, device=graph.device)
        return self(graph, rows, rows[:0], torch.Generator(graph.device))
