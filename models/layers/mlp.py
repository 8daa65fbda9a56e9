"""An MLP over [request; candidate] whose first layer is kept as two blocks: the request half is computed once.

    first layer   W [r; c] + b = W_request r + (W_candidate c + b)

`request` has B rows in training and 1 row in serving, where its product is broadcast over the candidates.
"""

from __future__ import annotations

import itertools
import math

import torch
from torch import Tensor, nn

from models.layers.linear import Linear, linear
from models.layers.norm_relu_dropout import norm_relu_dropout


class SplitLinear(nn.Module):
    """request [1 or B, R], candidate [B, C] -> [B, out]; initialised as nn.Linear(R + C, out) is (fan-in R + C)."""

    def __init__(self, request_in: int, candidate_in: int, out: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(max(request_in + candidate_in, 1))
        self.request = nn.Parameter(torch.empty(out, request_in).uniform_(-bound, bound))
        self.candidate = nn.Parameter(torch.empty(out, candidate_in).uniform_(-bound, bound))
        self.bias = nn.Parameter(torch.empty(out).uniform_(-bound, bound))

    def forward(self, request: Tensor, candidate: Tensor, biased: bool = True) -> Tensor:
        """Without its bias where that is known to be zero: to add it is a walk over the outputs."""
        bias = self.bias if biased else None
        if len(request) == len(candidate) > 1:
            return linear(torch.cat([request, candidate], 1), torch.cat([self.request, self.candidate], 1), bias)
        return linear(candidate, self.candidate, bias) + linear(request, self.request)


class Mlp(nn.Module):
    """Linear, ReLU and dropout for each width of `hidden`, then a linear layer to `out` values.

    `norms` are there while it is trained with batch normalisation (models/layers/batch_norm.py), one per hidden width;
    the biases of hidden layers are zero then.
    """

    norms: nn.ModuleList | None

    def __init__(
        self, request_in: int, candidate_in: int, hidden: tuple[int, ...], out: int = 1, dropout: float = 0
    ) -> None:
        super().__init__()
        widths = [*hidden, out]
        self.hidden = hidden
        self.norms = None
        self.first = SplitLinear(request_in, candidate_in, widths[0])
        self.rest = nn.Sequential()
        for before, after in itertools.pairwise(widths):
            self.rest.extend([nn.ReLU(), nn.Dropout(dropout), Linear(before, after)])

    def forward(self, request: Tensor, candidate: Tensor) -> Tensor:
        """request [1 or B, R], candidate [B, C] -> [B, out]."""
        return self.after_first(self.first(request, candidate, biased=self.norms is None))

    def after_first(self, x: Tensor) -> Tensor:
        """The first layer's outputs [B, H] -> [B, out]."""
        if self.norms is None:
            return self.rest(x)
        layers = list(self.rest)
        for norm, dropout, layer in zip(self.norms, layers[1::3], layers[2::3], strict=True):
            x = norm_relu_dropout(x, norm, dropout.p)  # type: ignore[arg-type]
            x = layer(x) if layer is layers[-1] else linear(x, layer.weight)  # type: ignore[arg-type]
        return x

    def hidden_layers(self) -> list[SplitLinear | nn.Linear]:
        """The layers whose outputs are hidden units: what batch normalisation goes behind."""
        layers: list[SplitLinear | nn.Linear] = [self.first]
        layers += [layer for layer in self.rest if isinstance(layer, nn.Linear)]
        return layers[: len(self.hidden)]

    @torch.no_grad()
    def rescale_output(self, scale: float, shift: float) -> None:
        """Outputs become scale * outputs + shift."""
        for parameter in (self.rest[-1] if len(self.rest) else self.first).parameters():
            parameter.mul_(scale)
        self.output_bias.add_(shift)

    @property
    def output_bias(self) -> nn.Parameter:
        """[out] of the last layer."""
        last = self.rest[-1] if len(self.rest) else self.first
        return last.bias  # type: ignore[return-value]
