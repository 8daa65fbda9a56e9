"""A perceptron over [shared; own] whose first layer is kept as two blocks, so that the shared half is computed once.

    first layer   W [s; o] + b = W_shared s + (W_own o + b)

`shared` has B rows in training and 1 row in serving, where its product is broadcast over the candidates.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SplitLinear(nn.Module):
    """shared [1 or B, S], own [B, O] -> [B, out]; initialised as one nn.Linear(S + O, out) would be (fan-in S + O)."""

    def __init__(self, shared_in: int, own_in: int, out: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(shared_in + own_in, 1))
        self.shared = nn.Parameter(torch.empty(out, shared_in).uniform_(-bound, bound))
        self.own = nn.Parameter(torch.empty(out, own_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(out).uniform_(-bound, bound))

    def forward(self, shared: Tensor, own: Tensor) -> Tensor:
        return F.linear(own, self.own, self.bias) + F.linear(shared, self.shared)


class Mlp(nn.Module):
    """Linear, ReLU and dropout for each width of `hidden`, then a linear layer to `out` values."""

    def __init__(self, shared_in: int, own_in: int, hidden: tuple[int, ...], out: int = 1, dropout: float = 0) -> None:
        super().__init__()
        widths = [*hidden, out]
        self.first = SplitLinear(shared_in, own_in, widths[0])
        self.rest = nn.Sequential()
        for before, after in itertools.pairwise(widths):
            self.rest.extend([nn.ReLU(), nn.Dropout(dropout), nn.Linear(before, after)])

    def forward(self, shared: Tensor, own: Tensor) -> Tensor:
        """shared [1 or B, S], own [B, O] -> [B, out]."""
        return self.rest(self.first(shared, own))

    @property
    def output_bias(self) -> nn.Parameter:
        last = self.rest[-1] if len(self.rest) else self.first
        return last.bias  # type: ignore[return-value]
