"""Layers that multiply: each output is a linear form of the inputs times one more than another linear form of them.

    h = V x + v,   g = U x + u,   z = h + h * g + c = h (1 + g) + c,   y = dropout(ReLU(z))        U, V [H, X]

One layer sees products of two inputs, L layers products of 2^L: the factorised interaction of FinalNet. Batch
normalisation, which goes between z and the ReLU, is folded into V, v and c: s z + t = (s V x + s v)(1 + g) + s c + t.
"""

from __future__ import annotations

import itertools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from models.layers.linear import Linear
from models.layers.mlp import SplitLinear
from models.layers.norm_relu_dropout import norm_relu_dropout


class FactorisedLayer(nn.Module):
    """The inputs of `linear`, which has 2 x `out` outputs -> z [B, out]."""

    def __init__(self, linear: SplitLinear | nn.Linear, out: int) -> None:
        super().__init__()
        self.linear = linear
        self.shift = nn.Parameter(torch.zeros(out))

    def forward(self, *inputs: Tensor) -> Tensor:
        form, gate = self.linear(*inputs).chunk(2, dim=1)
        return torch.addcmul(form, form, gate) + self.shift.to(form.dtype)

    @torch.no_grad()
    def scale(self, by: Tensor, shift: Tensor) -> None:
        """z becomes by * z + shift, both float64 [out]."""
        out, linear = len(by), self.linear
        matrices = (linear.request, linear.candidate) if isinstance(linear, SplitLinear) else (linear.weight,)
        for matrix in matrices:
            matrix[:out] = by[:, None] * matrix[:out].double()
        linear.bias[:out] = by * linear.bias[:out].double()
        self.shift.copy_(by * self.shift.double() + shift)


class FactorisedLayers(nn.Module):
    """A layer for each width of `hidden`; `norms` as in models/layers/mlp.py."""

    norms: nn.ModuleList | None

    def __init__(self, request_in: int, candidate_in: int, hidden: tuple[int, ...], dropout: float = 0) -> None:
        super().__init__()
        self.hidden, self.dropout, self.norms = hidden, dropout, None
        self.layers = nn.ModuleList([FactorisedLayer(SplitLinear(request_in, candidate_in, 2 * hidden[0]), hidden[0])])
        self.layers.extend(FactorisedLayer(Linear(before, 2 * out), out) for before, out in itertools.pairwise(hidden))

    def hidden_layers(self) -> list[FactorisedLayer]:
        """The layers that batch normalisation goes behind."""
        return list(self.layers)  # type: ignore[arg-type]

    def forward(self, request: Tensor, candidate: Tensor) -> Tensor:
        """request [1 or B, R], candidate [B, C] -> [B, last width]."""
        x = candidate
        for number, layer in enumerate(self.layers):
            z = layer(x) if number else layer(request, x)
            if self.norms is None:
                x = F.dropout(torch.relu(z), self.dropout, self.training)
            else:
                x = norm_relu_dropout(z, self.norms[number], self.dropout)  # type: ignore[arg-type]
        return x
