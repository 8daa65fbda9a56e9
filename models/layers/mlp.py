"""An MLP over [request; candidate] whose first layer is kept as two blocks: the request half is computed once.

    first layer   W [r; c] + b = W_request r + (W_candidate c + b)

`request` has B rows in training and 1 row in serving, where its product is broadcast over the candidates.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F


class SplitLinear(nn.Module):
    """request [1 or B, R], candidate [B, C] -> [B, out]; initialised as nn.Linear(R + C, out) is (fan-in R + C)."""

    def __init__(self, request_in: int, candidate_in: int, out: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(request_in + candidate_in, 1))
        self.request = nn.Parameter(torch.empty(out, request_in).uniform_(-bound, bound))
        self.candidate = nn.Parameter(torch.empty(out, candidate_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(out).uniform_(-bound, bound))

    def forward(self, request: Tensor, candidate: Tensor) -> Tensor:
        return F.linear(candidate, self.candidate, self.bias) + F.linear(request, self.request)


class Mlp(nn.Module):
    """Linear, ReLU and dropout for each width of `hidden`, then a linear layer to `out` values."""

    def __init__(
        self, request_in: int, candidate_in: int, hidden: tuple[int, ...], out: int = 1, dropout: float = 0
    ) -> None:
        super().__init__()
        widths = [*hidden, out]
        self.first = SplitLinear(request_in, candidate_in, widths[0])
        self.rest = nn.Sequential()
        for before, after in itertools.pairwise(widths):
            self.rest.extend([nn.ReLU(), nn.Dropout(dropout), nn.Linear(before, after)])

    def forward(self, request: Tensor, candidate: Tensor) -> Tensor:
        """request [1 or B, R], candidate [B, C] -> [B, out]."""
        return self.rest(self.first(request, candidate))

    @property
    def output_bias(self) -> nn.Parameter:
        """[out] of the last layer."""
        last = self.rest[-1] if len(self.rest) else self.first
        return last.bias  # type: ignore[return-value]
