"""One gate per field: learnable keep probabilities, relaxed so that gradients reach them (arXiv 2105.07706).

    u ~ U(0, 1),  z_j = sigmoid((logit delta_j + logit u) / t),  t = 0.1      concrete relaxation; E[z] = delta +- .003
    penalty = sum_j alpha_j delta_j,  alpha_j = c_j                           on delta: the mean of z

alpha_j = log(1 - theta_j) - log(theta_j) with theta_j = 1 - sigmoid(c_j) is c_j itself: taken as such, because
the logarithms overflow for costs beyond 17 in float32. Logits start at 0, which is delta = 0.5.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

TEMPERATURE = 0.1
LARGEST = 3.0  # of a logit: beyond it the penalty's slope, delta (1 - delta), is too small for a field ever to leave


class Gates(nn.Module):
    """What a trainer asks of gates."""

    def sample(self, rows: int, generator: torch.Generator) -> Tensor:
        """Masks [rows, F]."""
        raise NotImplementedError

    def penalty(self) -> Tensor:
        """A number, in units of cost."""
        raise NotImplementedError

    def clamp(self) -> None:
        """Called after each step."""


class ConcreteGates(Gates):
    """`costs` c [F], in the order of the fields."""

    alpha: Tensor

    def __init__(self, costs: Tensor) -> None:
        super().__init__()
        self.logits = nn.Parameter(torch.zeros(len(costs)))
        self.register_buffer("alpha", costs.float())

    @property
    def delta(self) -> Tensor:
        """Keep probabilities [F]."""
        return self.logits.sigmoid()

    def sample(self, rows: int, generator: torch.Generator) -> Tensor:
        """z [rows, F] in (0, 1)."""
        noise = torch.rand(rows, len(self.logits), generator=generator).clamp(1e-6, 1.0 - 1e-6).to(self.logits.device)
        return ((self.logits + noise.logit()) / TEMPERATURE).sigmoid()

    def penalty(self) -> Tensor:
        """Expected cost: sum of c_f delta_f."""
        return (self.alpha * self.delta).sum()

    @torch.no_grad()
    def clamp(self) -> None:
        """Keeps every gate where a gradient can still move it."""
        self.logits.clamp_(-LARGEST, LARGEST)

    def kept(self) -> Tensor:
        """bool [F]: delta > 0.5."""
        return self.logits > 0.0
