"""CrossNet: the vectors of two values -> the logit of their rate. One head per pair of fields.

    dot   w . (u * v) + a u_D + c v_D + b              the last number of a vector is the value's own effect
    mlp   linear in [u, v, u * v] + MLP(u, v, u * v)   one hidden layer

Both start at the rate of the pair as a whole. Shapes: [..., D], [..., D] -> [...]; leading axes are broadcast.
"""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn

Head = Literal["dot", "mlp"]


class DotHead(nn.Module):
    """`weight` [D - 1] of the products; `left` and `right` weigh the values' own effects."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim - 1))
        self.left, self.right = nn.Parameter(torch.ones(1)), nn.Parameter(torch.ones(1))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        together = (left[..., :-1] * right[..., :-1]) @ self.weight
        return together + self.left[0] * left[..., -1] + self.right[0] * right[..., -1] + self.bias[0]


class MlpHead(nn.Module):
    """The first layer is kept as three parts: in a request, that of the requester is computed once."""

    def __init__(self, dim: int) -> None:
        super().__init__()
        self.left, self.right, self.product = (nn.Linear(dim, dim + 1, bias=False) for _ in range(3))
        self.hidden_bias = nn.Parameter(torch.zeros(dim))
        self.output = nn.Parameter(torch.zeros(dim))
        self.bias = nn.Parameter(torch.zeros(1))

    def forward(self, left: Tensor, right: Tensor) -> Tensor:
        mixed = self.left(left) + self.right(right) + self.product(left * right)
        return mixed[..., 0] + torch.relu(mixed[..., 1:] + self.hidden_bias) @ self.output + self.bias[0]


def build(kind: str, dim: int) -> nn.Module:
    """The head of vectors [D]; `kind` is "dot" or "mlp"."""
    return DotHead(dim) if kind == "dot" else MlpHead(dim)
