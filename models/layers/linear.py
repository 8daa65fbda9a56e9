"""Linear layers, multiplied by what is fastest here.

torch gives float32 products on a CPU to MKL, which on processors that are not Intel's leaves half of each register
empty; oneDNN, which torch has as well and gives bf16 to, does not: about twice as fast on an AMD EPYC with AVX-512,
forwards and backwards, in the same float32. On Intel's MKL is the faster one: a third less time for the products of a
DCNv2's step. Intel's, small products, other devices and precisions, a torch without oneDNN, and what torch compiles (it
chooses by itself, and refuses this operator on weights that may change) take torch's own way.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F

LARGE = 1 << 20  # multiplications from which a call of oneDNN is worth its 10 microseconds


class Linear(nn.Linear):
    """nn.Linear by `linear`."""

    def forward(self, x: Tensor) -> Tensor:  # type: ignore[override]
        """x [..., in] -> [..., out]."""
        return linear(x, self.weight, self.bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """x [..., in], weight [out, in] -> x W^T + b [..., out]."""
    plain = torch.compiler.is_compiling() or not _large(x, weight) or torch.is_autocast_enabled(x.device.type)
    if plain or not available():
        return F.linear(x, weight, bias)
    return _Product.apply(x, weight, bias)  # type: ignore[no-any-return]


def _large(x: Tensor, weight: Tensor) -> bool:
    plain = x.device.type == "cpu" and x.dtype == weight.dtype == torch.float32 and x.dim() == 2
    return plain and len(x) * weight.numel() >= LARGE


def available() -> bool:
    """Whether torch has oneDNN, with the operator asked here, on a processor with 512-bit registers that is not one of
    Intel's, where torch has MKL."""
    return bool(torch.backends.mkldnn.enabled) and not (intel() and torch.backends.mkl.is_available()) and found_here()


@cache
def intel() -> bool:
    """Whether the processor says so, as Linux reads it."""
    known = Path("/proc/cpuinfo")
    return known.exists() and "GenuineIntel" in known.read_text(encoding="utf-8")


@cache
def found_here() -> bool:
    """The same, whether or not torch is told to use it; asked once a process."""
    if not torch.backends.mkldnn.is_available() or "AVX512" not in torch.backends.cpu.get_cpu_capability():
        return False
    x, bias = torch.arange(6.0).view(2, 3), torch.ones(2)
    try:
        return torch.allclose(_product(x, x.flip(0), bias), F.linear(x, x.flip(0), bias))
    except (AttributeError, RuntimeError, TypeError):
        return False


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """Matrices may be transposed, a bias may not have gaps: the operator does not look."""
    bias = None if bias is None else bias.contiguous()
    return torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")  # type: ignore[no-any-return]


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:  # type: ignore[override]
        ctx.save_for_backward(x, weight)
        return _product(x, weight, bias)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, dy: Tensor) -> tuple[Tensor | None, ...]:  # type: ignore[override]
        x, weight = ctx.saved_tensors
        wanted = ctx.needs_input_grad
        return (_product(dy, weight.T) if wanted[0] else None, _of_weight(dy, x) if wanted[1] else None,
                dy.sum(0) if wanted[2] else None)


def _of_weight(dy: Tensor, x: Tensor) -> Tensor:
    """dy^T x. The operator copies its first matrix where that is transposed: the narrower of the two."""
    return _product(dy.T, x.T) if dy.shape[1] <= x.shape[1] else _product(x.T, dy.T).T
