"""Blocks of a causal sequence encoder, behind one interface: states [U, L, D] -> states [U, L, D].

    "transformer"  x + MHA(LN x), then x + FF(LN x), FF of two layers with ReLU: SASRec (Kang & McAuley, ICDM 2018) with
                   pre-norm
    "ligr"         x + s(W x) * MHA(LN x), then x + s(W' x) * FF(LN x), s the logistic function, FF = SwiGLU: LiGR
                   (Borisyuk et al., 2025), the block of eSASRec (RecSys 2025)
    "hstu"         U, V, Q, K = SiLU(W LN x); x + W'(LN(A V) * U), A = SiLU(Q K^T + b) / row: HSTU (Zhai et al., ICML
                   2024)

`distance` gives every head a learned bias for how many actions ago a state lies. A position sees itself and those
before it alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

VALUES = 1 << 16  # of an int16
LOWEST = -(1 << 63)  # of an int64, of which four are made


class Dropout(nn.Dropout):
    """d x, d = 1 / (1 - p) with probability 1 - p, else 0, from torch's global generator. On a CPU 16 bits decide of
    a number, so that p is a multiple of 2^-16 and below 1: torch draws one by one, in five times the time."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape; `x` itself outside training."""
        dropped = min(round(self.p * VALUES), VALUES - 1)
        if not self.training or not dropped:
            return x
        return F.dropout(x, self.p) if x.device.type != "cpu" else x * self._mask(x, dropped)

    def _mask(self, like: Tensor, dropped: int) -> Tensor:
        """0 with probability `dropped` / VALUES, else what leaves the mean where it was."""
        drawn = torch.empty(-(-like.numel() // 4), dtype=torch.int64).random_(LOWEST, None)
        left = drawn.view(torch.int16)[:like.numel()].view(like.shape) >= dropped - VALUES // 2
        return left.to(like.dtype).mul_(VALUES / (VALUES - dropped))


class DistanceBias(nn.Module):
    """[heads, L, L]: a learned number for i - j, -inf where j lies after i."""

    def __init__(self, heads: int, length: int) -> None:
        super().__init__()
        self.bias = nn.Parameter(torch.zeros(heads, length))

    def forward(self, length: int) -> Tensor:
        """For sequences of `length`."""
        place = torch.arange(length, device=self.bias.device)
        ago = place[:, None] - place
        return self.bias[:, ago.clamp(min=0)].masked_fill(ago < 0, -torch.inf)


class Attention(nn.Module):
    """Softmax attention over the positions before and at each one; D is divided among the heads."""

    def __init__(self, width: int, heads: int, length: int, dropout: float, distance: bool) -> None:
        super().__init__()
        self.heads, self.dropout = heads, Dropout(dropout)
        self.into = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.distance = DistanceBias(heads, length) if distance else None

    def forward(self, x: Tensor) -> Tensor:
        """[U, L, D] -> [U, L, D]."""
        users, length, width = x.shape
        query, key, value = (part.view(users, length, self.heads, -1).transpose(1, 2)
                             for part in self.into(x).split(width, dim=2))
        mask = self.distance(length) if self.distance else None
        mixed = self._mixed(query, key, value, mask) if self.training and x.device.type == "cpu" else \
            F.scaled_dot_product_attention(query, key, value, mask, self.dropout.p if self.training else 0.0,
                                           is_causal=mask is None)
        return self.out(mixed.transpose(1, 2).reshape(users, length, width))

    def _mixed(self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor | None) -> Tensor:
        """[U, heads, L, d] each -> the same: torch's own on a CPU is these products with its slower dropout."""
        if mask is None:
            length = query.shape[2]
            mask = torch.full((length, length), -torch.inf).triu(1)
        scores = (query / math.sqrt(query.shape[3])) @ key.transpose(2, 3) + mask
        return self.dropout(scores.softmax(3)) @ value


class SwiGlu(nn.Module):
    """W'(SiLU(a) * b), a and b halves of W x (Shazeer, 2020)."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.into, self.out = nn.Linear(width, 2 * hidden, bias=False), nn.Linear(hidden, width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] -> [..., D]."""
        gate, value = self.into(x).chunk(2, dim=-1)
        return self.out(F.silu(gate) * value)


class Transformer(nn.Module):
    """"transformer" of the head of this file."""

    def __init__(self, width: int, heads: int, length: int, dropout: float, factor: int, distance: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.attention = Attention(width, heads, length, dropout, distance)
        self.forward_layers = nn.Sequential(
            nn.Linear(width, factor * width), nn.ReLU(), Dropout(dropout), nn.Linear(factor * width, width))
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[U, L, D] -> [U, L, D]."""
        x = x + self.dropout(self.attention(self.norms[0](x)))
        return x + self.dropout(self.forward_layers(self.norms[1](x)))


class Ligr(nn.Module):
    """"ligr" of the head of this file."""

    def __init__(self, width: int, heads: int, length: int, dropout: float, factor: int, distance: bool) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.gates = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.attention = Attention(width, heads, length, dropout, distance)
        self.forward_layers = SwiGlu(width, factor * width)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[U, L, D] -> [U, L, D]."""
        x = x + self.dropout(self.gates[0](x).sigmoid() * self.attention(self.norms[0](x)))
        return x + self.dropout(self.gates[1](x).sigmoid() * self.forward_layers(self.norms[1](x)))


class Hstu(nn.Module):
    """"hstu" of the head of this file; its bias is always of the distance, and `factor` does not concern it."""

    def __init__(self, width: int, heads: int, length: int, dropout: float, factor: int, distance: bool) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.after = nn.LayerNorm(width), nn.LayerNorm(width)
        self.into, self.out = nn.Linear(width, 4 * width), nn.Linear(width, width)
        self.distance = DistanceBias(heads, length)
        self.dropout = Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """[U, L, D] -> [U, L, D]."""
        users, length, width = x.shape
        gate, value, query, key = F.silu(self.into(self.before(x))).split(width, dim=2)
        query, key, value = (part.view(users, length, self.heads, -1).transpose(1, 2) for part in (query, key, value))
        bias = self.distance(length)
        weight = F.silu((query @ key.transpose(2, 3) + bias).masked_fill(bias.isinf(), 0.0))
        weight = weight.masked_fill(bias.isinf(), 0.0) / torch.arange(1, length + 1)[:, None]
        mixed = (weight @ value).transpose(1, 2).reshape(users, length, width)
        return x + self.dropout(self.out(self.after(mixed) * gate))


BLOCKS: dict[str, Callable[..., nn.Module]] = {"transformer": Transformer, "ligr": Ligr, "hstu": Hstu}
