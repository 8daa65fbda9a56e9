"""Adam for the fused embedding weight: only the rows of the batch move.

    m, v    as Adam (Kingma & Ba, 2015), kept and corrected per row by the number of steps in which the row was seen
    w       <- w - lr * (m' / (sqrt(v') + eps) + decay * w)

A row that the batch lacks keeps its weight, moments and count, so that a step costs what the batch touches and not the
size of the table, and decay falls on ids as often as they are seen. Equal rows are summed after one sort of their ids:
faster on a CPU than `coalesce`, and at a million rows than a dense gradient.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

BETA1, BETA2, EPSILON = 0.9, 0.999, 1e-8


class RowGradient(NamedTuple):
    """rows [U], distinct, of the weight; values [U, D]."""

    rows: Tensor
    values: Tensor


def row_gradient(gradient: Tensor) -> RowGradient:
    """A sparse gradient [N, D] with rows in any order and number -> one sum per row."""
    rows, values = gradient._indices()[0], gradient._values()
    distinct, inverse = torch.unique(rows, return_inverse=True)
    return RowGradient(distinct, values.new_zeros(len(distinct), values.shape[1]).index_add_(0, inverse, values))


class RowAdam:
    """Keeps the moments of one embedding weight [N, D]."""

    def __init__(self, weight: torch.nn.Parameter, learning_rate: float, decay: float) -> None:
        self.weight, self.learning_rate, self.decay = weight, learning_rate, decay
        self.mean, self.square = torch.zeros_like(weight), torch.zeros_like(weight)
        self.seen = torch.zeros(len(weight), 1, dtype=weight.dtype, device=weight.device)

    @torch.no_grad()
    def step(self, rows: Tensor, gradient: Tensor) -> None:
        """rows [U] distinct, gradient [U, D]."""
        mean = torch.lerp(self.mean[rows], gradient, 1.0 - BETA1)
        square = torch.lerp(self.square[rows], gradient.square(), 1.0 - BETA2)
        seen = self.seen[rows] + 1.0
        self.mean[rows], self.square[rows], self.seen[rows] = mean, square, seen
        root = (square / (1.0 - BETA2**seen)).sqrt_().add_(EPSILON)
        old = self.weight[rows]
        step = (mean / (1.0 - BETA1**seen)) / root + self.decay * old
        self.weight[rows] = old - self.learning_rate * step
