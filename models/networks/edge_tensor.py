"""The soft adjacency tensor of FIVES (Xie et al., KDD 2021, arXiv 2007.14573, eq. 7 and 8).

    A(k) = D(k-1)^-1 T(k-1) sigmoid(H(k)),   T(0) = I,   D the row sums of T
    A_ij <- sigmoid(logit(A_ij) / tau)
    T(k) = [A(k) > 1/2], a row without an entry keeps T(k-1)

A_ij(k) in (0, 1): "extend what node i carries by field j in layer k". H [layers, N, N] are free parameters.
The paper's recursion takes phi(A(k-1)) for T(k-1): a row that binarises to nothing would have degree zero and never
come back, so such a row keeps its last entries here.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

THRESHOLD = 0.5  # the fixed point of eq. 8
CLAMP = 1e-6
INITIAL_STD = 0.01  # of H: exactly 0 would sit on the threshold


class EdgeTensor(nn.Module):
    """`allowed` [N, N] bool: pairs that may be joined; all other entries are 0."""

    allowed: Tensor
    temperature: Tensor

    def __init__(self, allowed: Tensor, layers: int) -> None:
        super().__init__()
        nodes = len(allowed)
        self.structure = nn.Parameter(torch.randn(layers, nodes, nodes) * INITIAL_STD)
        self.register_buffer("allowed", allowed.float())
        self.register_buffer("temperature", torch.ones(1))

    def forward(self) -> list[Tensor]:
        """Per layer the soft adjacency [N, N], row i = what node i is extended by."""
        tail = torch.eye(len(self.allowed), dtype=self.structure.dtype, device=self.structure.device)
        layers = []
        for free in self.structure:
            mean = (tail / tail.sum(dim=1, keepdim=True)) @ torch.sigmoid(free)
            soft = sharpen(mean, self.temperature) * self.allowed
            layers.append(soft)
            hard = (soft.detach() > THRESHOLD).to(soft.dtype)
            tail = torch.where(hard.sum(dim=1, keepdim=True) > 0, hard, tail)
        return layers


def sharpen(soft: Tensor, temperature: Tensor | float) -> Tensor:
    """Eq. 8: towards 0 and 1 as the temperature falls; 1/2 stays where it is."""
    return torch.sigmoid(torch.logit(soft.clamp(CLAMP, 1.0 - CLAMP)) / temperature)


def extend(states: Tensor, transformed: Tensor, adjacency: Tensor) -> Tensor:
    """Eq. 2: n_i * mean over j of W_j n_j(0), weighted by A_ij.

    states, transformed [B, N, D], adjacency [N, N] soft or hard -> [B, N, D]. A row of zeros carries its state forward.
    """
    degree = adjacency.sum(dim=1, keepdim=True)
    weights = adjacency / degree.clamp(min=CLAMP)
    mean = torch.einsum("ij,bjd->bid", weights.to(transformed.dtype), transformed)
    return torch.where(degree > 0, states * mean, states)
